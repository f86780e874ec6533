"""What other schedulers ask, out of the bodies of their requests. The routes of the extender call
it; a body that cannot be used is a BadRequestError."""

import codecs
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from lowtide.advisor.advice import Asked, AskedPreemption
from lowtide.objects.decoding import ObjectDecoder
from lowtide.objects.extender import (
    BindingArgs,
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
from lowtide.server.request_limits import (
    reject_large_object,
    reject_too_many_names,
    reject_too_many_nodes,
    reject_too_many_values,
)

T = TypeVar("T")
Body = bytes | bytearray

_NODES_FORM: Final = "an object with Pod, and Nodes or NodeNames"
_PREEMPTION_FORM: Final = "an object with Pod, and NodeNameToVictims or NodeNameToMetaVictims"
_BINDING_FORM: Final = "an object with PodName, PodNamespace, PodUID and Node"
_NULL: Final = msgspec.Raw(b"null")


class _Args(Words, frozen=True):
    pod: msgspec.Raw
    nodes: NodeList | None = None
    node_names: msgspec.Raw = _NULL


class _ArgsByNames(Words, frozen=True):
    pod: msgspec.Raw
    node_names: msgspec.Raw
    nodes: None = None


_decode_args_by_names = msgspec.json.Decoder(_ArgsByNames).decode
_decode_names = msgspec.json.Decoder(list[str]).decode
_decode_pod = msgspec.json.Decoder(Pod).decode
_ARGS = WordsDecoder(_Args)
_PREEMPTION = WordsDecoder(PreemptionArgs[msgspec.Raw, ObjectNamed])
_BINDING = WordsDecoder(BindingArgs)
_POD = ObjectDecoder(Pod)
_NODE = ObjectDecoder(NodeSeen)

# Read at once, while the event loop waits: some milliseconds at the most.
_QUICK_BYTES: Final = 4 * 1024 * 1024
_QUICK_POD_BYTES: Final = 16 * 1024
# Larger bodies have to be spelled as kube-scheduler does: all keys in any case take much memory.
_RESPELLED_BYTES: Final = 1024 * 1024
# Longer than any scheduler waits.
_NODES_SECONDS: Final = 5.0

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


def quick_nodes_request(body: Body, lists: NameLists) -> NodesRequest | None:
    """As kube-scheduler asks where it sends names: read in no time, so also in the event loop.
    `lists` are of `read_names`. None: `nodes_request` has to read it, or has the words for what is
    wrong with it."""
    if len(body) > _QUICK_BYTES:
        return None
    try:
        _reject_other_than_utf8(body)
        args = _decode_args_by_names(body)
        if len(memoryview(args.pod)) > _QUICK_POD_BYTES:
            return None
        pod = _decode_pod(args.pod)
        _reject_large_numbers(pod.spec, "Pod.spec")
        return NodesRequest(
            Asked(pod, lists.read_names(bytes(args.node_names))), None, is_by_name=True
        )
    except (*UNREADABLE, BadRequestError):
        return None


def nodes_request(body: Body, *, within_seconds: float = _NODES_SECONDS) -> NodesRequest:
    """Call it on another thread than the event loop's, because it may take that long."""
    _reject_other_than_utf8(body)
    args = _words(_ARGS, body, _NODES_FORM, counted="Nodes.items")
    pod = _pod(args.pod)
    _reject_large_numbers(pod.spec, "Pod.spec")
    is_by_name = args.node_names != _NULL
    names = _names(args.node_names) if is_by_name else ()
    if args.nodes is None:
        if not is_by_name:
            raise BadRequestError(
                f"the body has neither Nodes nor NodeNames; expected {_NODES_FORM}"
            )
        return NodesRequest(Asked(pod, names), None, is_by_name)
    seen = _nodes_seen(args.nodes.items or (), within_seconds)
    names = [node.metadata.name for node in seen]
    _reject_unusable(names, lambda at: f"Nodes.items[{at}].metadata.name", "the name of a node")
    return NodesRequest(Asked(pod, names, seen), args.nodes, is_by_name)


def read_names(json: bytes) -> Sequence[str]:
    """Raises what is wrong with them."""
    reject_too_many_names(json)
    names: Sequence[str] = NodeNames.from_json(json) or _decode_names(json)
    if not isinstance(names, NodeNames) or not _are_usable(names):
        _reject_unusable_names(names)
    return names


def preemption_request(body: Body) -> PreemptionRequest:
    _reject_other_than_utf8(body)
    args = _words(_PREEMPTION, body, _PREEMPTION_FORM, counted="the victims by node")
    pod = _pod(args.pod)
    _reject_large_numbers(pod.spec, "Pod.spec")
    victims = _victims(args)
    uids: dict[str, tuple[str, ...]] = {}
    for name, of_node in victims.items():
        uids[name] = tuple(each.uid for each in of_node.pods or ())
        _reject_unusable(uids[name], _victim_place(name), "the uid of a pod")
    _reject_unusable(list(uids), lambda _: "a key of the victims by node", "the name of a node")
    return PreemptionRequest(AskedPreemption(pod, uids), victims)


def binding_request(body: Body) -> BindingRequest:
    _reject_other_than_utf8(body)
    args = _words(_BINDING, body, _BINDING_FORM, counted="the body")
    for field, value in (
        ("PodName", args.pod_name),
        ("PodNamespace", args.pod_namespace),
        ("Node", args.node),
    ):
        if len(value) > _LONGEST_NAME or not _NAME.fullmatch(value):
            problem = f"{field} is {shown(value)}" if value else f"the body has no {field}"
            raise BadRequestError(f"{problem}; expected a name as Kubernetes has them")
    if len(args.pod_uid) > _LONGEST_NAME or not _UID.fullmatch(args.pod_uid):
        raise BadRequestError(f"PodUID is {shown(args.pod_uid)}; expected the uid of the pod")
    meta = ObjectMeta(name=args.pod_name, namespace=args.pod_namespace, uid=args.pod_uid)
    return BindingRequest(Pod(metadata=meta), args.node)


def _are_usable(names: NodeNames) -> bool:
    """False also where two of them only may be the same. The lengths come first: to compare names
    takes their number times the length of the longest."""
    lengths = names.lengths
    return bool(lengths.all()) and lengths.max(initial=0) <= _LONGEST_NAME and not names.may_repeat


def _reject_unusable_names(names: Sequence[str]) -> None:
    _reject_unusable(names, lambda at: f"NodeNames[{at}]", "the name of a node")


def _words(decoder: WordsDecoder[T], body: Body, right: str, *, counted: str) -> T:
    reject_too_many_values(body)
    try:
        reject_too_many_nodes(body, counted)
        if len(body) > _RESPELLED_BYTES:
            return decoder.decode_as_spelled(body)
        return decoder.decode(body)
    except UNREADABLE as error:
        raise why_unreadable(error, body, at="", right=right) from None


def _pod(raw: msgspec.Raw) -> Pod:
    reject_large_object(raw, "Pod")
    try:
        return _POD.decode(raw)
    except UNREADABLE as error:
        raise why_unreadable(error, raw, at="Pod", right="a pod") from None


def _names(raw: msgspec.Raw) -> Sequence[str]:
    try:
        return read_names(bytes(raw))
    except UNREADABLE as error:
        raise why_unreadable(error, raw, at="NodeNames", right="a list of names") from None


def _nodes_seen(items: Sequence[msgspec.Raw], within_seconds: float) -> list[NodeSeen]:
    seen: list[NodeSeen] = []
    ends_at = time.monotonic() + within_seconds
    try:
        for item in items:
            reject_large_object(item, f"Nodes.items[{len(seen)}]")
            seen.append(_NODE.decode(item))
            if time.monotonic() > ends_at:
                raise TooMuchAskedError(
                    f"of the {len(items)} Nodes only {len(seen)} were read in {within_seconds:g} s"
                )
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
            f"expected {_PREEMPTION_FORM}"
        )
    return {
        name: Victims(
            [MetaPod(pod.metadata.uid) for pod in victims.pods or ()], victims.num_pdb_violations
        )
        for name, given in args.node_name_to_victims.items()
        for victims in [given or Victims[ObjectNamed]()]
    }


def _victim_place(node_name: str) -> Callable[[int], str]:
    return lambda at: f"the uid of Pods[{at}], victims on node {shown(node_name)},"


def _reject_other_than_utf8(body: Body) -> None:
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


def _reject_unusable(names: Sequence[str], place: Callable[[int], str], right: str) -> None:
    """Each name has to be there, not too long, and to be there once; `place` says where the one at
    a position stands."""
    longest = max(map(len, names), default=0)
    if all(names) and longest <= _LONGEST_NAME and len(set(names)) == len(names):
        return
    first: dict[str, int] = {}
    for at, name in enumerate(names):
        if not name:
            raise BadRequestError(f"{place(at)} is missing or empty; expected {right}")
        if len(name) > _LONGEST_NAME:
            raise BadRequestError(
                f"{place(at)} is {shown(name)} and has {len(name)} characters; "
                f"expected {right}, of at most {_LONGEST_NAME}"
            )
        if name in first:
            raise BadRequestError(
                f"{place(at)} is {shown(name)} as {place(first[name])} is; "
                f"expected {right}, each once"
            )
        first[name] = at


def _reject_large_numbers(spec: msgspec.Struct, path: str) -> None:
    """Numbers of a pod are of 32 bits in Kubernetes; quantities are not numbers."""
    if _LONG_NUMBER.search(_encode(spec)):
        _reject_large_numbers_in(spec, path)


def _reject_large_numbers_in(value: Any, path: str) -> None:
    if isinstance(value, int) and not _LEAST_INT32 <= value <= _LARGEST_INT32:
        raise BadRequestError(
            f"{path} is {shown(value)}; "
            f"expected a whole number from {_LEAST_INT32} to {_LARGEST_INT32}"
        )
    if isinstance(value, list):
        for at, each in enumerate(value):
            _reject_large_numbers_in(each, f"{path}[{at}]")
    elif isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            each = getattr(value, field.name)
            _reject_large_numbers_in(each, f"{path}.{field.encode_name}")
