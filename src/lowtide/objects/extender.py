"""What schedulers and extenders say to each other over HTTP: the words of the v1 extender API.

The Go types have no JSON names, so keys are spelled as the fields are in Go, and Go reads them in
any case. Used by the client of extenders."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class _Words(msgspec.Struct, frozen=True, rename="pascal"):
    pass


class NodeList(msgspec.Struct, frozen=True):
    """Nodes as the API server spells them, whole."""

    items: tuple[msgspec.Raw, ...]
    metadata: Mapping[str, str] = {}


class ExtenderArgs(_Words, frozen=True):
    """What `filter` and `prioritize` are asked; nodes by name where the extender knows them."""

    pod: msgspec.Raw
    nodes: NodeList | None = None
    node_names: tuple[str, ...] | None = None


class BindingArgs(_Words, frozen=True):
    pod_name: str
    pod_namespace: str
    pod_uid: str = msgspec.field(name="PodUID")
    node: str = ""


class MetaPod(_Words, frozen=True):
    uid: str = msgspec.field(name="UID")


class Victims(_Words, frozen=True):
    """`pods` are whole pods, or their uids where the extender knows them."""

    pods: tuple[msgspec.Raw | MetaPod, ...]
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations")


class PreemptionArgs(_Words, frozen=True):
    pod: msgspec.Raw
    node_name_to_victims: Mapping[str, Victims] | None = None
    node_name_to_meta_victims: Mapping[str, Victims] | None = None


class _NamedMeta(msgspec.Struct, frozen=True):
    name: str = ""


class NamedNode(msgspec.Struct, frozen=True):
    metadata: _NamedMeta = _NamedMeta()


class NamedNodes(msgspec.Struct, frozen=True):
    """Of a list of nodes that an extender sends back, the names."""

    items: tuple[NamedNode, ...] | None = None


def fields_of(given: Mapping[str, msgspec.Raw], fields: Mapping[str, type[Any]]) -> dict[str, Any]:
    """These fields of a JSON object, whatever the case of their keys; one that is null or not
    there is left out. Raises what msgspec does."""
    by_lower = {key.lower(): raw for key, raw in given.items()}
    found = {
        name: msgspec.json.decode(by_lower[name.lower()], type=kind | None)
        for name, kind in fields.items()
        if name.lower() in by_lower
    }
    return {name: value for name, value in found.items() if value is not None}
