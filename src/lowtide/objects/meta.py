"""The metadata every API object carries. Used by each object type in this room."""

import msgspec


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """How every object here is spelled on the wire: camelCase, defaults left out.

    What comes from the wire is a tree, so none of it is ever garbage that has to be looked for."""


def limit_to_int32(wire: Wire, field: str) -> None:
    """For fields that the API server keeps in 32 bits: what somebody else sends is cut to that, so
    that sums over many objects always fit into 64 bits."""
    value = getattr(wire, field)
    if not -(2**31) <= value < 2**31:
        msgspec.structs.force_setattr(wire, field, max(-(2**31), min(value, 2**31 - 1)))


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
    """One `matchExpressions` entry, of a label selector or of a node selector."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(Wire, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[LabelRequirement] = []
