"""What would make a pod fit that fits nowhere, in words: worked out from a full decision when
somebody asks."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import Decision
from lowtide.objects.requests import CPU, MEMORY, pod_requests

_NODES_NAMED = 3

# What can be done about what a plugin rejects.
_ADVICE: Mapping[str, str] = {
    "NodeUnschedulable": "uncordon them",
    "NodeName": "take spec.nodeName away",
    "TaintToleration": "give the pod a toleration, or take the taint away",
    "NodeAffinity": "change the pod's node selector or affinity, or label the nodes",
    "NodePorts": "ask for another host port",
    "NodeResourcesFit": "ask for less, or make room",
    "VolumeRestrictions": "let the other pod that uses the volume end first",
    "NodeVolumeLimits": "let pods with volumes of that driver end first, or add nodes",
    "VolumeBinding": "make a volume that these nodes can reach",
    "VolumeZone": "use a volume of another zone",
    "PodTopologySpread": "allow a larger skew, or make room in the other domains",
    "InterPodAffinity": "change the affinity terms, or let the pods in the way end first",
    "NetworkTraffic": "wait until the links have calmed down, or raise hotNodes.hard",
    "NodeDeclaredFeatures": "use nodes that declare the feature",
}
_LARGER = "ask for less, or add a larger node"


class Remedy(msgspec.Struct, frozen=True):
    """So many nodes reject the pod by this plugin, and by no other."""

    plugin: str
    nodes: int
    reasons: list[str]
    message: str


def remedies_of(decision: Decision, state: ClusterState) -> list[Remedy]:
    """Of a decision that kept every rejection: the single plugins that keep the pod off some nodes,
    those first that would free most nodes."""
    if decision.node_name is not None:
        return []
    if decision.pod_rejection is not None:
        (plugin,) = decision.rejected_by
        reason = decision.pod_rejection.reason
        return [
            Remedy(plugin, decision.node_count, [reason], f"{plugin} rejects the pod: {reason}")
        ]
    alone: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for name, rejection in decision.rejections.items():
        if not rejection.also:
            alone[rejection.plugin, rejection.reasons].append(name)
    found = [_remedy(*key, names, decision, state) for key, names in alone.items()]
    return sorted(found, key=lambda each: (-each.nodes, each.plugin, each.reasons))


def _remedy(
    plugin: str, reasons: tuple[str, ...], names: list[str], decision: Decision, state: ClusterState
) -> Remedy:
    counted = "1 node rejects" if len(names) == 1 else f"{len(names)} nodes reject"
    words = f"{counted} it only by {plugin} ({', '.join(reasons)}), such as {_some(names)}"
    advice = _ADVICE.get(plugin)
    if plugin == "NodeResourcesFit":
        shortages = list(_shortages(names, decision, state))
        words += "".join(f"; {each.in_words}" for each in shortages)
        if any(not each.could_fit for each in shortages):
            advice = _LARGER
    return Remedy(plugin, len(names), list(reasons), f"{words}: {advice}" if advice else words)


class _Shortage(NamedTuple):
    """`could_fit`: on an empty node there would be enough."""

    in_words: str
    could_fit: bool


def _shortages(names: list[str], decision: Decision, state: ClusterState) -> Iterator[_Shortage]:
    """Where least is missing, by resource."""
    rows = [row for name in names if (row := state.row_of(name)) is not None]
    if not rows:
        return
    for resource, asked in sorted(pod_requests(decision.pod).items()):
        in_all = state.allocatable(resource)[rows]
        free_of = in_all - state.requested(resource)[rows]
        most, largest = int(free_of.max()), int(in_all.max())
        wanted = _amount(resource, asked)
        if largest < asked:
            has = f"more than {_amount(resource, largest)} {resource} in all"
            words = f"none has {has if largest else f'any {resource}'}"
            yield _Shortage(f"{words}, and the pod asks for {wanted}", could_fit=False)
        elif most < asked:
            best, free = state.names[rows[int(free_of.argmax())]], _amount(resource, most)
            words = f"{best} has most {resource} left, {free}, and the pod asks for {wanted}"
            yield _Shortage(words, could_fit=True)


def hints_of(rejected_by: Iterable[str]) -> list[str]:
    """What can be done about each of these plugins, where it is not known which nodes they
    reject."""
    return [
        f"{plugin} rejects nodes: {_ADVICE[plugin]}"
        for plugin in sorted(rejected_by)
        if plugin in _ADVICE
    ]


def why_not(decision: Decision, node_name: str) -> list[str]:
    """Each plugin that rejects the node, or the pod on every node, with its reasons."""
    if decision.pod_rejection is not None:
        return [f"{plugin}: {decision.pod_rejection.reason}" for plugin in decision.rejected_by]
    rejection = decision.rejections.get(node_name)
    if rejection is None:
        return []
    return [f"{each.plugin}: {', '.join(each.reasons)}" for each in (rejection, *rejection.also)]


def _amount(resource: str, amount: int) -> str:
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource == MEMORY and amount >= 1024**2:
        return f"{amount / 1024**2:.0f}Mi"
    return str(amount)


def _some(names: list[str]) -> str:
    named = ", ".join(names[:_NODES_NAMED])
    return f"{named} ..." if len(names) > _NODES_NAMED else named
