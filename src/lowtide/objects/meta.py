"""The base class and the metadata of all API objects. Used by every object type in this package."""

import msgspec


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The base of all objects: camelCase in JSON, defaults left out.

    Decoded objects are trees without cycles, so the garbage collector does not track them."""


def as_int32(number: int) -> int:
    """Clamp a weight, a priority or the like to 32 bits, its size in the API. Objects from other
    sources may have more; sums over many objects must fit into 64 bits."""
    return max(-(2**31), min(number, 2**31 - 1))


class OwnerReference(Wire, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


class ObjectMeta(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class LabelRequirement(Wire, frozen=True):
    """One entry of `matchExpressions` in a label selector or node selector."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(Wire, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[LabelRequirement] = []
