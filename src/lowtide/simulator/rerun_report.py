"""A recording under several configurations, side by side: links, pods that wait, and each pod that
would be elsewhere, with the plugin that speaks for that."""

import msgspec

from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import Decision
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.readings.request import TrafficRequest
from lowtide.records.recording import Step
from lowtide.scheduler.events import ReadingPublished
from lowtide.simulator.link_course import LinkCourse, LinkFigures
from lowtide.simulator.rerun import Rerun
from lowtide.simulator.shadow_report import speaks_for
from lowtide.simulator.spared import is_preempted

RECORDED = "as recorded"


class Elsewhere(msgspec.Struct, frozen=True):
    """`reason` is the plugin that speaks most for the node here, else what is known; a node is None
    where it has none, or was evicted from it."""

    pod: str
    recorded_node: str | None
    node: str | None
    reason: str = ""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    placed: int
    pending: int
    evicted: int = 0
    links: LinkFigures | None = None
    moved_pods: list[Elsewhere] = []
    course: list[tuple[float, float]] = []


class AsRecorded:
    """What was recorded, followed: the row that the others are compared with."""

    def __init__(self, scheduler_names: frozenset[str] | None) -> None:
        """None: the pods of all schedulers count."""
        self._scheduler_names = scheduler_names
        self.links = LinkCourse()
        self._state = ClusterState()
        self._waiting: dict[str, Pod] = {}
        self._placed: set[str] = set()
        self._evicted: set[str] = set()  # uids

    def take(self, step: Step, request: TrafficRequest | None) -> None:
        """Of several measurements of traffic, links are told of by that of `request`."""
        match step.event:
            case Added(object=Pod() as pod) | Modified(object=Pod() as pod):
                self._pod(pod)
            case Deleted(object=Pod() as pod):
                self._note_eviction(pod)
                self._waiting.pop(pod.uid, None)
                self._state.remove_pod(pod.uid)
            case Added(object=Node() as node) | Modified(object=Node() as node):
                self._state.update_node(node)
            case Deleted(object=Node() as node):
                self._state.remove_node(node.name)
            case ReadingPublished(TrafficRequest() as source, reading) if source == request:
                self.links.look(reading, self._state, step.now)

    def _note_eviction(self, pod: Pod) -> None:
        if is_preempted(pod):
            self._evicted.add(pod.uid)

    def _pod(self, pod: Pod) -> None:
        names = self._scheduler_names
        self._note_eviction(pod)
        if pod.has_ended:
            self._waiting.pop(pod.uid, None)
            self._state.remove_pod(pod.uid)
        elif pod.spec.node_name:
            if self._waiting.pop(pod.uid, None) is not None:
                self._placed.add(pod.key)
            self._state.place(pod)
        elif names is None or pod.spec.scheduler_name in names:
            self._waiting[pod.uid] = pod

    def compared(self) -> Compared:
        return Compared(
            name=RECORDED,
            placed=len(self._placed),
            pending=len(self._waiting),
            evicted=len(self._evicted),
            links=self.links.figures(),
            course=self.links.course,
        )


def compared(name: str, rerun: Rerun) -> Compared:
    return Compared(
        name=name,
        placed=len(rerun.outcomes),
        pending=rerun.pending,
        evicted=rerun.evicted_count,
        links=rerun.links.figures(),
        moved_pods=_elsewhere(rerun),
        course=rerun.links.course,
    )


def _elsewhere(rerun: Rerun) -> list[Elsewhere]:
    found = []
    for pod, outcome in rerun.outcomes.items():
        recorded = rerun.recorded.get(pod)
        if pod in rerun.lost:
            found.append(Elsewhere(pod, recorded, None, "evicted"))
        elif recorded != outcome.node_name:
            because = _because(outcome.decision, recorded)
            found.append(Elsewhere(pod, recorded, outcome.node_name, because))
    for pod, recorded in rerun.recorded.items():
        if pod not in rerun.outcomes:
            found.append(Elsewhere(pod, recorded, None, "it fits nowhere, or waits"))
    return found


def _because(decision: Decision, recorded: str | None) -> str:
    if recorded is None:
        return "it had no node"
    plugin = speaks_for(decision, recorded)
    if plugin:
        return plugin
    totals = {each.node_name: each.total for each in decision.best}
    most, of_recorded = max(totals.values(), default=0), totals.get(recorded)
    if of_recorded is None:
        # So many are kept; the others have at most as many points as the last of these.
        is_tie = len(totals) > 1 and min(totals.values()) == most
        return (
            "many nodes are equally good"
            if is_tie
            else "the recorded node does not fit, or is not among the best"
        )
    return "equally good" if of_recorded == most else "by several plugins together"
