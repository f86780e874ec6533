"""Advice as kube-scheduler reads it: the bodies of answers, in Go's spelling. The routes of the
extender send them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lowtide.advisor.advice import (
    FilterAdvice,
    PreemptionAdvice,
    PriorityAdvice,
)
from lowtide.advisor.asked_rows import NodeReasons
from lowtide.objects.extender import (
    MOST_PRIORITY,
    BindingResult,
    FilterResult,
    HostPriority,
    NodeList,
    PreemptionResult,
)
from lowtide.objects.node_names import NodeNames
from lowtide.server.extender_requests import NodesRequest, PreemptionRequest

_encode = msgspec.json.Encoder().encode
_SCORE_AND_NEXT_HOST = [b'","Score":%d},{"Host":"' % score for score in range(MOST_PRIORITY + 1)]


def filter_answer(request: NodesRequest, advice: FilterAdvice) -> bytes:
    """Nodes go back in the form in which they were asked, whole ones as they came."""
    if advice.error:
        return _encode(FilterResult[NodeList](error=advice.error))
    kept, nodes = advice.kept, request.nodes
    if kept is not None and nodes is not None and nodes.items is not None:
        nodes = NodeList(nodes.metadata, [nodes.items[at] for at in kept])
    return _encode(
        FilterResult(
            nodes=nodes,
            node_names=_names_left(request.asked.names, kept) if request.is_by_name else None,
            failed_nodes=_reasons(advice.failed),
            failed_and_unresolvable_nodes=_reasons(advice.unresolvable),
        )
    )


def priorities_answer(request: NodesRequest, advice: PriorityAdvice) -> bytes:
    names, priorities = request.asked.names, advice.priorities
    if len(names) != len(priorities):
        raise ValueError(f"{len(priorities)} priorities for {len(names)} nodes")
    for extreme in (min(priorities, default=0), max(priorities, default=0)):
        if not 0 <= extreme <= MOST_PRIORITY:
            raise ValueError(f"the priority {extreme}; they go from 0 to {MOST_PRIORITY}")
    if isinstance(names, NodeNames):
        return _hosts_and_scores(names.parts, priorities)
    return _encode(list(map(HostPriority, names, priorities)))


def preemption_answer(request: PreemptionRequest, advice: PreemptionAdvice) -> bytes:
    agreed = {name: each for name, each in request.victims.items() if name in advice.kept}
    return _encode(PreemptionResult(agreed))


def binding_answer(error: str) -> bytes:
    return _encode(BindingResult(error))


def error_answer(error: str) -> bytes:
    """For a request that is not answered; kube-scheduler does not read it, people do."""
    return _encode({"error": error})


def _names_left(names: Sequence[str], kept: Sequence[int] | None) -> Any:
    """What msgspec writes as a list of them."""
    if isinstance(names, NodeNames):
        return msgspec.Raw(names.json if kept is None else names.json_of(kept))
    return names if kept is None else [names[at] for at in kept]


def _hosts_and_scores(hosts: Sequence[bytes], priorities: Sequence[int]) -> bytes:
    """The same as msgspec writes of HostPriority, from pieces that are there already."""
    pieces = [b""] * (2 * len(hosts))
    pieces[0::2] = hosts
    pieces[1::2] = map(_SCORE_AND_NEXT_HOST.__getitem__, priorities)
    pieces[-1] = b'","Score":%d}]' % priorities[-1]
    return b'[{"Host":"' + b"".join(pieces)


def _reasons(reasons: Mapping[str, str]) -> Any:
    """What msgspec writes as an object of them, or null where there are none."""
    if not reasons:
        return None
    if isinstance(reasons, NodeReasons) and isinstance(reasons.names, NodeNames):
        return msgspec.Raw(_names_and_reasons(reasons.names.parts, reasons.groups))
    return reasons if isinstance(reasons, dict) else dict(reasons)


def _names_and_reasons(
    names: Sequence[bytes], groups: Sequence[tuple[str, Sequence[int]]]
) -> bytes:
    """The same as msgspec writes, from pieces that are there already."""
    pieces = []
    for reason, positions in groups:
        if positions:
            end = b'":' + _encode(reason)
            pieces.append((end + b',"').join([names[at] for at in positions]) + end)
    return b'{"' + b',"'.join(pieces) + b"}"
