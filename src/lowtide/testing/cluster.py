"""`Cluster`: the scheduler's Machine with some plugins, on a manual clock. It is for plugins whose
answer depends on earlier pods, such as those that make pods wait."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from lowtide.cluster.reading import Reading
from lowtide.framework.decision import Decision
from lowtide.framework.plugin import BindOutcome, PluginError
from lowtide.objects.events import Added, Deleted, Listed, Modified
from lowtide.objects.kinds import KIND_OF, NEEDED_KINDS
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.plugins.priority_sort import PrioritySort
from lowtide.scheduler.actions import Action, Bind, Decided, Evict, PluginFailed, WriteKubeEvent
from lowtide.scheduler.events import BindingEnded, Event, EvictionEnded, ReadingPublished, Turn
from lowtide.scheduler.machine import Machine
from lowtide.testing.clock import ManualClock
from lowtide.testing.placing import make_profile

REJECTED = "FailedScheduling"


class Cluster:
    """Plugins are asked as in the live scheduler, except for `pre_bind`, `bind` and `post_bind`:
    bindings and evictions succeed at once.

    Results name pods by name, or by namespace/name outside the namespace `default`."""

    def __init__(
        self,
        plugins: Sequence[Any],
        nodes: Iterable[Node] = (),
        *,
        weights: Mapping[str, int] | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        sorts = any(hasattr(plugin, "sort_key") for plugin in plugins)
        profile = make_profile([*plugins, *([] if sorts else [PrioritySort()])], weights)
        self._machine = Machine({profile.scheduler_name: profile}, keeps_every_score=True)
        self._pods: dict[str, Pod] = {}  # by uid, as they were added
        self._messages: dict[str, str] = {}  # by uid: why the pod has no node
        self._decisions: list[Decision] = []
        kinds = (*NEEDED_KINDS, *(KIND_OF[kind].name for kind in self._machine.plugins_by_kind))
        self._give(*map(Listed, kinds))
        self.add(*nodes)

    def add(self, *things: Any) -> None:
        """Adds pods, nodes and other objects, as the watches would. No pod is scheduled yet."""
        self._remember_pods(things)
        self._give(*map(Added, things))

    def change(self, *things: Any) -> None:
        """Replaces objects that were added before."""
        self._remember_pods(things)
        self._give(*map(Modified, things))

    def remove(self, *things: Any) -> None:
        self._give(*map(Deleted, things))
        for thing in things:
            if isinstance(thing, Pod):
                self._pods.pop(thing.uid, None)

    def publish(self, request: Hashable, reading: Reading) -> None:
        """Publishes a reading for the plugins that have this request in their `readings`."""
        self._give(ReadingPublished(request, reading))

    def take_turns(self) -> list[Decision]:
        """Schedules pods until none is active; returns the decisions."""
        self._decisions = []
        while self._machine.has_work(self.clock.now):
            self._give(Turn())
        return self._decisions

    def pass_time(self, seconds: float) -> list[Decision]:
        """Advances the clock, and schedules each pod when it becomes active; returns the
        decisions."""
        until = self.clock.now + seconds
        decisions = self.take_turns()
        while self._machine.next_change_at() <= until:
            self.clock.now = max(self.clock.now, self._machine.next_change_at())
            decisions += self.take_turns()
        self.clock.now = until
        return decisions + self.take_turns()

    @property
    def bound(self) -> dict[str, str]:
        """Bound pods and their nodes."""
        return self._placed(is_assumed=False)

    @property
    def waiting(self) -> dict[str, str]:
        """Pods that wait in Permit, and their nodes."""
        return self._placed(is_assumed=True)

    @property
    def rejected(self) -> dict[str, str]:
        """Pods that were tried and have no node, and the note of their FailedScheduling Event."""
        return {
            _name(pod): self._messages[uid]
            for uid, pod in self._pods.items()
            if uid in self._messages and self._machine.state.placed(uid) is None
        }

    def _placed(self, *, is_assumed: bool) -> dict[str, str]:
        found = {}
        for uid, pod in self._pods.items():
            placed = self._machine.state.placed(uid)
            if placed is not None and placed.is_assumed == is_assumed:
                found[_name(pod)] = placed.node_name
        return found

    def _remember_pods(self, things: Iterable[Any]) -> None:
        self._pods |= {thing.uid: thing for thing in things if isinstance(thing, Pod)}

    def _give(self, *events: Event) -> None:
        for event in events:
            for action in self._machine.step(event, self.clock.now):
                self._carry_out(action)

    def _carry_out(self, action: Action) -> None:
        match action:
            case Decided(decision=decision):
                self._decisions.append(decision)
            case Bind(pod=pod, node_name=node_name):
                bound = replace(pod, spec=replace(pod.spec, node_name=node_name))
                self._give(BindingEnded(pod.uid, BindOutcome()), Modified(bound))
            case Evict(pod=pod, victims=victims):
                self._give(EvictionEnded(pod.uid, evicted=victims))
                self.remove(*victims)
            case WriteKubeEvent(pod=pod, reason=reason, note=note) if reason == REJECTED:
                self._messages[pod.uid] = note
            case PluginFailed(plugin_name=plugin_name, error=error):
                raise PluginError(error, plugin_name=plugin_name)
            case _:
                pass  # conditions repeat what Events say


def _name(pod: Pod) -> str:
    return pod.name if pod.namespace == "default" else pod.key
