"""The messages of the v1 extender API between schedulers and extenders.

The Go types have no JSON tags, so keys are spelled like the Go fields, and Go reads them in any
case. Used by the client of extenders and by the server of `lowtide extender`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import inspect

from lowtide.objects.meta import ObjectMeta, Wire
from lowtide.objects.node import NodeAddress, NodeSpec
from lowtide.objects.pod import Quantities

MOST_PRIORITY = 10  # kube-scheduler does not check this limit; it multiplies whatever it gets

T = TypeVar("T")
PodT = TypeVar("PodT")
VictimT = TypeVar("VictimT")
NodesT = TypeVar("NodesT")

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Words(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    """An object with keys in Go's spelling. WordsDecoder also reads other spellings."""


class NodeList(msgspec.Struct, frozen=True):
    """Whole nodes, undecoded, in the API server's spelling."""

    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    items: Sequence[msgspec.Raw] | None = None


class ExtenderArgs(Words, Generic[PodT], frozen=True):
    """The request of `filter` and `prioritize`. An extender that caches nodes gets only names."""

    pod: PodT
    nodes: NodeList | None = None
    node_names: Sequence[str] | None = None


class FilterResult(Words, Generic[NodesT], frozen=True):
    """The answer to `filter`: nodes in the form of the request, whole or by name."""

    nodes: NodesT | None = None
    node_names: Sequence[str] | None = None
    failed_nodes: Mapping[str, str] | None = None
    failed_and_unresolvable_nodes: Mapping[str, str] | None = None
    error: str = ""


class HostPriority(Words, frozen=True, gc=False):
    host: str = ""
    score: int = 0


class BindingArgs(Words, frozen=True):
    pod_name: str = ""
    pod_namespace: str = ""
    pod_uid: str = msgspec.field(default="", name="PodUID")
    node: str = ""


class BindingResult(Words, frozen=True):
    error: str = ""


class MetaPod(Words, frozen=True):
    uid: str = msgspec.field(default="", name="UID")


class Victims(Words, Generic[VictimT], frozen=True):
    """The victims on one node: whole pods, or only their uids if the extender caches pods."""

    pods: Sequence[VictimT] | None = None
    num_pdb_violations: Int64 = msgspec.field(default=0, name="NumPDBViolations")


class PreemptionArgs(Words, Generic[PodT, VictimT], frozen=True):
    """The request of `preempt`: the victims by node, in one of the two fields."""

    pod: PodT
    node_name_to_victims: Mapping[str, Victims[VictimT] | None] | None = None
    node_name_to_meta_victims: Mapping[str, Victims[MetaPod] | None] | None = None


class PreemptionResult(Words, frozen=True):
    node_name_to_meta_victims: Mapping[str, Victims[MetaPod] | None] | None = None


class NodeStatusSeen(Wire, frozen=True):
    allocatable: Quantities = {}
    addresses: list[NodeAddress] = []
    declared_features: list[str] = []


class NodeSeen(Wire, frozen=True):
    """A node of a request, without its images, which are most of its bytes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatusSeen = NodeStatusSeen()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels


class _Identity(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""


class ObjectNamed(msgspec.Struct, frozen=True):
    """The name and uid of an object; the rest of it is not decoded."""

    metadata: _Identity = _Identity()


class NodesNamed(msgspec.Struct, frozen=True):
    """The names in a node list that an extender sends back."""

    items: Sequence[ObjectNamed] | None = None


class WordsDecoder(Generic[T]):
    """Decodes straight into the type, which is Words or a list of them. Only if that fails, it
    decodes again with keys in any case, without unknown keys and nulls."""

    def __init__(self, kind: type[T]) -> None:
        self._type = inspect.type_info(kind)
        self._decode = msgspec.json.Decoder(kind).decode

    def decode_as_spelled(self, body: bytes | bytearray) -> T:
        """Decode keys in Go's spelling only, without the memory that a second attempt takes."""
        return self._decode(body)

    def decode(self, body: bytes | bytearray | memoryview | msgspec.Raw) -> T:
        """Decode keys in any case. Raises msgspec's errors, with paths in Go's spelling."""
        try:
            return self._decode(body)
        except msgspec.ValidationError:
            return self._decode(_respelled(body, self._type))


def _respelled(data: Any, kind: inspect.Type) -> msgspec.Raw:
    """The same JSON in Go's spelling, at every level that has Words. Values of another type are
    unchanged."""
    if isinstance(kind, inspect.UnionType):
        kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    try:
        match kind:
            case inspect.StructType(fields=fields) if _holds_words(kind):
                return _raw(_fields_in_any_case(_decode_object(data) or {}, fields))
            case inspect.DictType(value_type=inner) if _holds_words(inner):
                given = _decode_object(data) or {}
                return _raw({key: _respelled(each, inner) for key, each in given.items()})
            case inspect.ListType(item_type=inner) if _holds_words(inner):
                return _raw([_respelled(each, inner) for each in _decode_list(data) or []])
    except msgspec.ValidationError:
        pass
    return data if isinstance(data, msgspec.Raw) else msgspec.Raw(data)


def _holds_words(kind: inspect.Type) -> bool:
    match kind:
        case inspect.UnionType(types=types):
            return any(map(_holds_words, types))
        case inspect.StructType(forbid_unknown_fields=is_words):
            return is_words
    return False


def _fields_in_any_case(
    given: Mapping[str, msgspec.Raw], fields: Iterable[inspect.Field]
) -> dict[str, msgspec.Raw]:
    """The known fields in Go's spelling. An exact key wins over others, a later key over earlier
    ones."""
    by_folded = {key.casefold(): raw for key, raw in given.items()}
    found: dict[str, msgspec.Raw] = {}
    for field in fields:
        name = field.encode_name
        raw = given[name] if name in given else by_folded.get(name.casefold())
        if raw is not None and raw != _NULL:
            found[name] = _respelled(raw, field.type)
    return found


def _raw(data: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(data))


_NULL = msgspec.Raw(b"null")
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw] | None).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw] | None).decode
