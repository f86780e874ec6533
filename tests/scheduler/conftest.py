"""What the tests of the scheduler share: a machine with a clock, profiles to put into it, and
fakes of what the live driver writes to."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lowtide.config.types import Extender
from lowtide.framework.plugin import Binder, BindOutcome, Pod
from lowtide.framework.profile import Profile
from lowtide.framework.registry import BuiltIn
from lowtide.objects.events import Added, Deleted, Listed, Modified
from lowtide.objects.kinds import KIND_OF
from lowtide.objects.node import Node
from lowtide.plugins import BUILT_IN
from lowtide.scheduler.actions import (
    Action,
    Bind,
    Decided,
    Evict,
    WriteCondition,
    WriteKubeEvent,
)
from lowtide.scheduler.events import BindingEnded, Event, EvictionEnded, Turn
from lowtide.scheduler.machine import Machine
from lowtide.testing import make_node, make_pod, make_profile

START = 1000.0

OUTCOME_BOUND = BindOutcome()
OUTCOME_CONFLICT = BindOutcome(error="the pod is bound already (HTTP 409 Conflict)")
OUTCOME_GONE = BindOutcome(error="no such pod (HTTP 404 NotFound)", is_gone=True)
OUTCOME_ERROR = BindOutcome(error="etcd has no leader (HTTP 500 InternalError)")


class RecordingBinder:
    """Keeps what was bound where, and says that all is well."""

    def __init__(self) -> None:
        self.bound: list[tuple[str, str]] = []

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        self.bound.append((pod.name, node_name))
        return OUTCOME_BOUND


def default_plugins(binder: Binder | None = None) -> list[Any]:
    """The plugins of the default profile with their default args."""
    return [
        _made(row, binder or RecordingBinder()) for row in BUILT_IN if row.is_default and row.plugin
    ]


def _made(row: BuiltIn, binder: Binder) -> Any:
    assert row.plugin is not None
    given: dict[str, Any] = {}
    if hasattr(row.plugin, "needs"):
        given["binder"] = binder
    if hasattr(row.plugin, "args"):
        given["args"] = row.plugin.args()
    return row.plugin(**given)


def all_listed() -> list[Listed]:
    """That nodes, pods, and what else the default plugins depend on are known."""
    kinds = [kind for plugin in default_plugins() for kind in getattr(plugin, "kinds", ())]
    return [Listed(name) for name in ("Node", "Pod", *(KIND_OF[kind].name for kind in kinds))]


def default_profile(*more_plugins: Any, name: str = "lowtide") -> Profile:
    return make_profile([*default_plugins(), *more_plugins], name=name)


class Bench:
    """A machine, its time, and everything it wanted done, in order."""

    def __init__(
        self,
        *nodes: Node,
        profiles: Sequence[Profile] = (),
        unlisted: Sequence[str] = (),
        extenders: tuple[Extender, ...] = (),
    ) -> None:
        made: Mapping[str, Profile] = {
            profile.scheduler_name: profile for profile in profiles or [default_profile()]
        }
        self.machine = Machine(made, extenders=extenders)
        self.now = START
        self.actions: list[Action] = []
        for node in nodes:
            self.give(Added(node))
        self.give(*(each for each in all_listed() if each.kind not in unlisted))

    def give(self, *events: Event) -> list[Action]:
        """Hands the events in one after the other; returns what they led to."""
        wanted = [action for event in events for action in self.machine.step(event, self.now)]
        self.actions += wanted
        return wanted

    def take_turns(self) -> list[Action]:
        """Turns until no pod is ready."""
        wanted: list[Action] = []
        while self.machine.has_work(self.now):
            wanted += self.give(Turn())
        return wanted

    def place(self, pod: Pod) -> str:
        """Adds the pod and gives it its turn; the node it is to be bound to."""
        self.give(Added(pod))
        (bind,) = binds(self.take_turns())
        return bind[1]

    def end(self, name: str, outcome: BindOutcome = OUTCOME_BOUND) -> list[Action]:
        return self.give(BindingEnded(f"default/{name}", outcome))

    def confirm(self, pod: Pod, node_name: str) -> list[Action]:
        """The watch brings the pod back, bound."""
        return self.give(Modified(on(pod, node_name)))

    def delete(self, *things: Pod | Node) -> list[Action]:
        return self.give(*(Deleted(thing) for thing in things))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @property
    def lengths(self) -> dict[str, int]:
        return {name: count for name, count in self.machine.queue.lengths().items() if count}

    def on_node(self, node_name: str) -> dict[str, bool]:
        """The pods counted on a node, and whether they are only assumed there."""
        placed = self.machine.state.placed_on(node_name).values()
        return {each.pod.name: each.is_assumed for each in placed}


def on(pod: Pod, node_name: str) -> Pod:
    return make_pod(
        pod.name,
        uid=pod.uid,
        on=node_name,
        labels=pod.labels,
        priority=pod.spec.priority,
        scheduler_name=pod.spec.scheduler_name,
        requests=pod.spec.containers[0].resources.requests,
    )


def small_node(name: str = "node-a", *, cpu: str = "1") -> Node:
    return make_node(name, cpu=cpu)


def binds(actions: Sequence[Action]) -> list[tuple[str, str]]:
    return [(each.pod.name, each.node_name) for each in actions if isinstance(each, Bind)]


def notes(actions: Sequence[Action]) -> list[tuple[str, str]]:
    return [(each.reason, each.note) for each in actions if isinstance(each, WriteKubeEvent)]


def conditions(actions: Sequence[Action]) -> list[tuple[str, str]]:
    return [(each.reason, each.message) for each in actions if isinstance(each, WriteCondition)]


def kinds(actions: Sequence[Action]) -> list[str]:
    return [type(each).__name__ for each in actions if not isinstance(each, Decided)]


# For the live driver.


class Happenings:
    """Lets a test wait until something is so, as often as something happens."""

    def __init__(self) -> None:
        self._happened = asyncio.Event()

    def note(self) -> None:
        self._happened.set()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not is_so():
                self._happened.clear()
                await self._happened.wait()


class HeldBinder:
    """Each binding waits until the test ends it, or ends at once with the outcome set before."""

    def __init__(self, happenings: Happenings, outcome: BindOutcome | None) -> None:
        self.under_way: dict[str, asyncio.Future[BindOutcome]] = {}
        self.started: list[str] = []
        self.most_at_once = 0
        self.outcome = outcome
        self.looked_up: list[tuple[str, str]] = []
        self.look_up_fails_with: Exception | None = None
        self.found = OUTCOME_BOUND  # when it is looked up what became of a binding
        self._happenings = happenings

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        self.started.append(pod.name)
        self.under_way[pod.name] = asyncio.get_running_loop().create_future()
        self.most_at_once = max(self.most_at_once, len(self.under_way))
        if self.outcome is not None:
            self.end(pod.name, self.outcome)
        self._happenings.note()
        try:
            return await self.under_way[pod.name]
        finally:
            del self.under_way[pod.name]

    async def look_up(self, pod: Pod, node_name: str) -> BindOutcome:
        self.looked_up.append((pod.name, node_name))
        self._happenings.note()
        if self.look_up_fails_with is not None:
            raise self.look_up_fails_with
        return self.found

    def end(self, name: str, outcome: BindOutcome = OUTCOME_BOUND) -> None:
        self.under_way[name].set_result(outcome)


class RecordingWrites:
    def __init__(self, happenings: Happenings) -> None:
        self.conditions: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.dropped: list[str] = []
        self.asked: list[str] = []  # pods about to be bound
        self.may_bind = asyncio.Event()
        self.may_bind.set()
        self.evicted: list[tuple[str, str, list[str]]] = []  # for whom, from which node, whom
        self.eviction_fails_with: Exception | None = None
        self._happenings = happenings

    def write_condition(self, action: WriteCondition) -> None:
        self.conditions.append((action.pod.name, action.message))
        self._happenings.note()

    def drop_condition(self, pod: Pod) -> None:
        self.dropped.append(pod.name)

    async def before_binding(self, pod: Pod) -> None:
        self.asked.append(pod.name)
        self._happenings.note()
        await self.may_bind.wait()

    def write_event(self, action: WriteKubeEvent) -> None:
        self.notes.append(action.note)
        self._happenings.note()

    async def evict(self, action: Evict) -> EvictionEnded:
        names = [pod.name for pod in action.victims]
        self.evicted.append((action.pod.name, action.node_name, names))
        self._happenings.note()
        if self.eviction_fails_with is not None:
            raise self.eviction_fails_with
        return EvictionEnded(action.pod.uid, evicted=action.victims)
