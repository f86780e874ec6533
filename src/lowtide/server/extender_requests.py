"""What other schedulers ask, out of the bodies of their requests. The routes of the extender call
it; a body that cannot be used is a BadRequestError."""

import codecs
import re
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from lowtide.advisor.advice import Asked, AskedPreemption
from lowtide.objects.decoding import ObjectDecoder
from lowtide.objects.extender import (
    BindingArgs,
    ExtenderArgs,
    MetaPod,
    NodeList,
    NodeSeen,
    ObjectNamed,
    PreemptionArgs,
    Victims,
    Words,
    WordsDecoder,
)
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.node_names import NodeNames
from lowtide.objects.pod import Pod
from lowtide.server.bad_request import (
    UNREADABLE,
    BadRequestError,
    TooMuchAskedError,
    shown,
    why_unreadable,
)
from lowtide.server.name_lists import NameLists

T = TypeVar("T")
Body = bytes | bytearray

# In one request, and victims on all of its nodes: Kubernetes is built for 5,000 nodes, and the loop
# waits while they are read.
MOST_NODES: Final = 50_000

_NODES_FORM: Final = "an object with Pod, and Nodes or NodeNames"
_PREEMPTION_FORM: Final = "an object with Pod, and NodeNameToVictims or NodeNameToMetaVictims"
_BINDING_FORM: Final = "an object with PodName, PodNamespace, PodUID and Node"


class _ArgsByNames(Words, frozen=True):
    pod: Pod
    node_names: msgspec.Raw
    nodes: None = None


# As kube-scheduler spells it, the whole body is read in one go.
_decode_args_by_names = msgspec.json.Decoder(_ArgsByNames).decode
_decode_names = msgspec.json.Decoder(list[str]).decode
_decode_usual_args = msgspec.json.Decoder(ExtenderArgs[Pod]).decode
_ARGS = WordsDecoder(ExtenderArgs[msgspec.Raw])
_PREEMPTION = WordsDecoder(PreemptionArgs[msgspec.Raw, ObjectNamed])
_BINDING = WordsDecoder(BindingArgs)
_POD = ObjectDecoder(Pod)
_NODE = ObjectDecoder(NodeSeen)

_encode = msgspec.json.Encoder().encode
_LONG_NUMBER = re.compile(rb"[:\[,]-?[0-9]{10}")
_LEAST_INT32: Final = -(2**31)
_LARGEST_INT32: Final = 2**31 - 1
_CHECKED_AT_ONCE_BYTES: Final = 1024 * 1024
# Names go into paths of the API server, so none that Kubernetes would not give may pass.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_UID = re.compile(r"[-./:\w]*", re.ASCII)  # it goes into the JSON of the binding
_LONGEST_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class NodesRequest:
    """A question of `filter` or `prioritize`, and the nodes as they are to be sent back."""

    asked: Asked
    nodes: NodeList | None
    is_by_name: bool


@dataclass(frozen=True, slots=True)
class PreemptionRequest:
    asked: AskedPreemption
    victims: Mapping[str, Victims[MetaPod]]


@dataclass(frozen=True, slots=True)
class BindingRequest:
    pod: Pod  # name, namespace and uid only
    node_name: str


def nodes_request(body: Body, lists: NameLists) -> NodesRequest:
    """`lists` are of `read_names`."""
    _refuse_other_than_utf8(body)
    by_names = _by_names(body, lists)
    if by_names is not None:
        return by_names
    args = _args(body)
    _refuse_too_many(args.node_names or (), "NodeNames")
    items = (args.nodes and args.nodes.items) or ()
    _refuse_too_many(items, "Nodes.items")
    _refuse_large_numbers(args.pod.spec, "Pod.spec")
    is_by_name = args.node_names is not None
    if args.nodes is None:
        if args.node_names is None:
            raise BadRequestError(
                f"the body has neither Nodes nor NodeNames; right would be {_NODES_FORM}"
            )
        _refuse_unusable_names(args.node_names)
        return NodesRequest(Asked(args.pod, args.node_names), None, is_by_name)
    seen = _nodes_seen(items)
    names = [node.metadata.name for node in seen]
    _refuse_unusable(names, lambda at: f"Nodes.items[{at}].metadata.name", "the name of a node")
    return NodesRequest(Asked(args.pod, names, seen), args.nodes, is_by_name)


def read_names(json: bytes) -> Sequence[str]:
    """Raises what is wrong with them."""
    names: Sequence[str] = NodeNames.of(json) or _decode_names(json)
    _refuse_too_many(names, "NodeNames")
    if not isinstance(names, NodeNames) or not _are_usable(names):
        _refuse_unusable_names(names)
    return names


def preemption_request(body: Body) -> PreemptionRequest:
    _refuse_other_than_utf8(body)
    args = _words(_PREEMPTION, body, _PREEMPTION_FORM)
    pod = _pod(args.pod)
    _refuse_large_numbers(pod.spec, "Pod.spec")
    _refuse_too_many_victims(args)
    victims = _victims(args)
    uids: dict[str, tuple[str, ...]] = {}
    for name, of_node in victims.items():
        uids[name] = tuple(each.uid for each in of_node.pods or ())
        _refuse_unusable(uids[name], _victim_place(name), "the uid of a pod")
    _refuse_unusable(list(uids), lambda _: "a key of the victims by node", "the name of a node")
    return PreemptionRequest(AskedPreemption(pod, uids), victims)


def binding_request(body: Body) -> BindingRequest:
    _refuse_other_than_utf8(body)
    args = _words(_BINDING, body, _BINDING_FORM)
    for field, value in (
        ("PodName", args.pod_name),
        ("PodNamespace", args.pod_namespace),
        ("Node", args.node),
    ):
        if len(value) > _LONGEST_NAME or not _NAME.fullmatch(value):
            problem = f"{field} is {shown(value)}" if value else f"the body has no {field}"
            raise BadRequestError(f"{problem}; right would be a name as Kubernetes has them")
    if len(args.pod_uid) > _LONGEST_NAME or not _UID.fullmatch(args.pod_uid):
        raise BadRequestError(f"PodUID is {shown(args.pod_uid)}; right would be the uid of the pod")
    meta = ObjectMeta(name=args.pod_name, namespace=args.pod_namespace, uid=args.pod_uid)
    return BindingRequest(Pod(metadata=meta), args.node)


def _by_names(body: Body, lists: NameLists) -> NodesRequest | None:
    """As kube-scheduler asks where it sends names; None where that is not so, or where something
    is wrong, for which there are better words."""
    try:
        args = _decode_args_by_names(body)
        names = lists.of(bytes(args.node_names))
    except (*UNREADABLE, BadRequestError):
        return None
    _refuse_large_numbers(args.pod.spec, "Pod.spec")
    return NodesRequest(Asked(args.pod, names), None, is_by_name=True)


def _are_usable(names: NodeNames) -> bool:
    """False also where two of them only may be the same. The lengths come first: to compare names
    takes their number times the length of the longest."""
    lengths = names.lengths
    return bool(lengths.all()) and lengths.max(initial=0) <= _LONGEST_NAME and not names.may_repeat


def _refuse_unusable_names(names: Sequence[str]) -> None:
    _refuse_unusable(names, lambda at: f"NodeNames[{at}]", "the name of a node")


def _args(body: Body) -> ExtenderArgs[Pod]:
    try:
        return _decode_usual_args(body)
    except msgspec.ValidationError:
        args = _words(_ARGS, body, _NODES_FORM)
        return ExtenderArgs(_pod(args.pod), args.nodes, args.node_names)
    except UNREADABLE as error:
        raise why_unreadable(error, body, at="", right=_NODES_FORM) from None


def _words(decoder: WordsDecoder[T], body: Body, right: str) -> T:
    try:
        return decoder.decode(body)
    except UNREADABLE as error:
        raise why_unreadable(error, body, at="", right=right) from None


def _pod(raw: msgspec.Raw) -> Pod:
    try:
        return _POD.decode(raw)
    except UNREADABLE as error:
        raise why_unreadable(error, raw, at="Pod", right="a pod") from None


def _nodes_seen(items: Sequence[msgspec.Raw]) -> list[NodeSeen]:
    seen: list[NodeSeen] = []
    try:
        for item in items:
            seen.append(_NODE.decode(item))  # noqa: PERF401 (how far it came is told)
    except UNREADABLE as error:
        at = len(seen)
        raise why_unreadable(error, items[at], at=f"Nodes.items[{at}]", right="a node") from None
    return seen


def _victims(args: PreemptionArgs[msgspec.Raw, ObjectNamed]) -> dict[str, Victims[MetaPod]]:
    if args.node_name_to_meta_victims is not None:
        brief = args.node_name_to_meta_victims.items()
        return {name: victims or Victims[MetaPod]() for name, victims in brief}
    if args.node_name_to_victims is None:
        raise BadRequestError(
            "the body has neither NodeNameToVictims nor NodeNameToMetaVictims; "
            f"right would be {_PREEMPTION_FORM}"
        )
    return {
        name: Victims(
            [MetaPod(pod.metadata.uid) for pod in victims.pods or ()], victims.num_pdb_violations
        )
        for name, given in args.node_name_to_victims.items()
        for victims in [given or Victims[ObjectNamed]()]
    }


def _refuse_too_many(entries: Sized, field: str) -> None:
    if len(entries) > MOST_NODES:
        raise TooMuchAskedError(field, len(entries), MOST_NODES)


def _refuse_too_many_victims(args: PreemptionArgs[msgspec.Raw, ObjectNamed]) -> None:
    for field, by_node in (
        ("NodeNameToMetaVictims", args.node_name_to_meta_victims or {}),
        ("NodeNameToVictims", args.node_name_to_victims or {}),
    ):
        _refuse_too_many(by_node, field)
        pods = sum(len(each.pods or ()) for each in by_node.values() if each is not None)
        if pods > MOST_NODES:
            raise TooMuchAskedError(f"{field}, its Pods together,", pods, MOST_NODES)


def _victim_place(node_name: str) -> Callable[[int], str]:
    return lambda at: f"the uid of Pods[{at}], victims on node {shown(node_name)},"


def _refuse_other_than_utf8(body: Body) -> None:
    """What is not read of a node is sent back as it came, so it has to be checked too."""
    if body.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    start = 0
    try:
        for start in range(0, len(body), _CHECKED_AT_ONCE_BYTES):
            end = start + _CHECKED_AT_ONCE_BYTES
            decoder.decode(body[start:end], final=end >= len(body))
    except UnicodeDecodeError as error:
        raise BadRequestError(
            f"the body is not UTF-8: {error.reason} near byte {start + error.start}"
        ) from None


def _refuse_unusable(names: Sequence[str], place: Callable[[int], str], right: str) -> None:
    """Each name has to be there, not too long, and to be there once; `place` says where the one at
    a position stands."""
    longest = max(map(len, names), default=0)
    if all(names) and longest <= _LONGEST_NAME and len(set(names)) == len(names):
        return
    first: dict[str, int] = {}
    for at, name in enumerate(names):
        if not name:
            raise BadRequestError(f"{place(at)} is missing or empty; right would be {right}")
        if len(name) > _LONGEST_NAME:
            raise BadRequestError(
                f"{place(at)} is {shown(name)} and has {len(name)} characters; "
                f"right would be {right}, of at most {_LONGEST_NAME}"
            )
        if name in first:
            raise BadRequestError(
                f"{place(at)} is {shown(name)} as {place(first[name])} is; "
                f"right would be {right}, each once"
            )
        first[name] = at


def _refuse_large_numbers(spec: msgspec.Struct, path: str) -> None:
    """Numbers of a pod are of 32 bits in Kubernetes; quantities are not numbers."""
    if _LONG_NUMBER.search(_encode(spec)):
        _refuse_large_numbers_in(spec, path)


def _refuse_large_numbers_in(value: Any, path: str) -> None:
    if isinstance(value, int) and not _LEAST_INT32 <= value <= _LARGEST_INT32:
        raise BadRequestError(
            f"{path} is {shown(value)}; "
            f"right would be a whole number from {_LEAST_INT32} to {_LARGEST_INT32}"
        )
    if isinstance(value, list):
        for at, each in enumerate(value):
            _refuse_large_numbers_in(each, f"{path}[{at}]")
    elif isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            each = getattr(value, field.name)
            _refuse_large_numbers_in(each, f"{path}.{field.encode_name}")
