"""Random events for a machine: pods that come, change and go, answers of every kind, and time."""

from collections.abc import Callable
from random import Random
from typing import Any

from msgspec.structs import replace

from lowtide.config.types import Extender
from lowtide.framework.plugin import (
    Allow,
    BindOutcome,
    Pod,
    PodRejection,
    Reject,
    Reserved,
    Wait,
)
from lowtide.objects.events import Added, Deleted, Listed, Modified
from lowtide.objects.kinds import KIND_OF
from lowtide.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from lowtide.plugins.node_ports import NodePorts
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.plugins.priority_sort import PrioritySort
from lowtide.plugins.scheduling_gates import SchedulingGates
from lowtide.scheduler.actions import Action, AskExtenders, Bind, Evict, LookUpBinding
from lowtide.scheduler.events import (
    BindingEnded,
    BindingLookedUp,
    Event,
    EvictionEnded,
    ExtendersAnswered,
    PermitAnswered,
    Turn,
)
from lowtide.scheduler.extending import (
    Answer,
    AskFilter,
    AskPreemption,
    AskPriorities,
    ExtenderFailed,
    Filtered,
    Preempted,
    Priorities,
    Question,
)
from lowtide.scheduler.machine import Machine
from lowtide.testing import make_node, make_pod, make_profile

NODES = ("node-a", "node-b", "node-c")
PODS = tuple(f"pod-{number}" for number in range(8))
GATES = ("Gang", "Quota")  # plugins that permit

OUTCOMES = (
    BindOutcome(),
    BindOutcome(),
    BindOutcome(),
    BindOutcome(error="etcd has no leader"),
    BindOutcome(error="no such pod", is_gone=True),
)


class Moody:
    """Reserves and permits as chance will have it."""

    retry_on = ~0

    def __init__(self, name: str, chance: Random) -> None:
        self.name = name
        self._chance = chance

    def reserve(self, pod: Pod, node_name: str, nodes: Any) -> Any:
        answer = self._chance.random()
        if answer < 0.03:
            raise RuntimeError("it has stumbled")
        if answer < 0.08:
            return PodRejection("nothing left to reserve")
        return Reserved(memory=node_name) if answer < 0.5 else None

    def unreserve(self, pod: Pod, node_name: str, memory: Any = None) -> None:
        assert memory in (None, node_name)
        if self._chance.random() < 0.1:
            raise RuntimeError("it cannot let go")

    def permit(self, pod: Pod, node_name: str, nodes: Any, memory: Any = None) -> Any:
        assert memory in (None, node_name)
        answer = self._chance.random()
        also = frozenset(uid_of(name) for name in PODS if self._chance.random() < 0.15)
        if answer < 0.03:
            raise RuntimeError("it has stumbled")
        if answer < 0.08:
            return Reject("not today", also=also)
        return Wait(self._chance.choice([0.5, 20.0, 1000.0])) if answer < 0.3 else Allow(also=also)


class Fickle:
    """Lets a pod into the queue, or not, by its labels; says of some changes that they may help,
    and stumbles at others."""

    name = "Fickle"

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def may_enqueue(self, pod: Pod) -> PodRejection | None:
        if self._chance.random() < 0.03:
            raise RuntimeError("it has stumbled")
        return PodRejection("not yet") if self._chance.random() < 0.03 else None

    def filter(self, pod: Pod, nodes: Any) -> Any:
        if pod.labels.get("app") == "bad":
            raise RuntimeError("it has stumbled")
        return ()

    def may_help(self, pod: Pod, change: Any) -> bool:
        if self._chance.random() < 0.1:
            raise RuntimeError("it has stumbled")
        return self._chance.random() < 0.7


def uid_of(name: str) -> str:
    return f"default/{name}"


class PodEvents:
    """Drives one machine. What it wants done is done, or goes wrong, at some later step."""

    def __init__(self, seed: int, *, with_extenders: bool) -> None:
        self.chance = Random(seed)
        self.now = 1000.0
        plugins: list[Any] = [
            PrioritySort(),
            SchedulingGates(),
            Fickle(Random(seed + 1)),
            NodePorts(),
            NodeResourcesFit(NodeResourcesFitArgs()),
            DefaultPreemption(DefaultPreemptionArgs()),
            *(Moody(name, Random(seed + 2)) for name in GATES),
        ]
        extenders = (
            Extender(url_prefix="http://one", filter_verb="filter", prioritize_verb="prioritize"),
            Extender(url_prefix="http://two", preempt_verb="preempt", ignorable=True),
        )
        profile = make_profile(plugins)
        self.machine = Machine(
            {profile.scheduler_name: profile}, extenders=extenders if with_extenders else ()
        )
        self.pending: dict[str, Pod] = {}  # by uid, as the API server has them
        self.bound: dict[str, Pod] = {}
        # By uid: pods of which the scheduler was told that they are gone or have a node; while an
        # extender is asked, those that it may learn that of later.
        self.given_up: set[str] = set()
        self._binds: list[Bind] = []
        self._look_ups: list[LookUpBinding] = []
        self._evictions: list[Evict] = []
        self._question: Question | None = None
        kinds = (KIND_OF[kind].name for kind in self.machine.plugins_by_kind)
        for event in (*map(Listed, ("Node", "Pod", *kinds)), Added(make_node(NODES[0], cpu="2"))):
            self.give(event)

    def give(self, event: Event) -> list[Action]:
        actions = self.machine.step(event, self.now)
        for action in actions:
            match action:
                case Bind():
                    self._binds.append(action)
                case LookUpBinding():
                    self._look_ups.append(action)
                case Evict():
                    self._evictions.append(action)
                case AskExtenders(question):
                    self._question = question
        return actions

    def step(self) -> list[Action]:
        """One random event, as far as there is one of its kind."""
        weighted: list[tuple[Callable[[], list[Action]], int]] = [
            (self._pod_comes_or_changes, 6),
            (self._pod_is_deleted, 2),
            (self._pod_is_bound_by_others, 1),
            (self._bound_pod_changes, 1),
            (self._node_changes, 3),
            (self._turn, 10),
            (self._time_passes, 3),
            (self._binding_ends, 4),
            (self._watch_confirms, 2),
            (self._look_up_ends, 3),
            (self._eviction_ends, 2),
            (self._permit_is_answered, 4),
            (self._extenders_answer, 6),
        ]
        kinds, weights = zip(*weighted, strict=True)
        (kind,) = self.chance.choices(kinds, weights)
        found: list[Action] = kind()
        return found

    # Pods and nodes.

    def _some_pod(self, name: str, *, goes: bool) -> Pod:
        chance = self.chance
        return make_pod(
            name,
            cpu=chance.choice(["500m", "900m", "1500m", "nonsense"] + ["1"] * 12),
            priority=chance.choice([0, 0, 0, 10, 20]),
            labels={"app": chance.choice(["a", "a", "b", "bad"])},
            gates=["wait"] if chance.random() < 0.2 else [],
            nominated=chance.choice(NODES) if chance.random() < 0.1 else "",
            deleted=goes,
        )

    def _pod_comes_or_changes(self) -> list[Action]:
        name = self.chance.choice(PODS)
        uid = uid_of(name)
        if uid in self.bound and self.chance.random() < 0.95:
            return []
        self.bound.pop(uid, None)  # the server was set back
        if self._question is None:
            self.given_up.discard(uid)
        before = self.pending.get(uid)
        goes = before is not None and before.is_terminating
        self.pending[uid] = pod = self._some_pod(name, goes=goes or self.chance.random() < 0.05)
        return self.give(Added(pod) if before is None else Modified(pod))

    def _pod_is_deleted(self) -> list[Action]:
        uid = uid_of(self.chance.choice(PODS))
        pod = self.pending.pop(uid, None) or self.bound.pop(uid, None)
        return [] if pod is None else self.give(Deleted(pod))

    def _pod_is_bound_by_others(self) -> list[Action]:
        if not self.pending:
            return []
        uid = self.chance.choice(sorted(self.pending))
        return self._watch_brings(self.pending[uid], self.chance.choice(NODES))

    def _watch_brings(self, pod: Pod, node_name: str) -> list[Action]:
        self.pending.pop(pod.uid, None)
        self.bound[pod.uid] = bound = replace(pod, spec=replace(pod.spec, node_name=node_name))
        return self.give(Modified(bound))

    def _bound_pod_changes(self) -> list[Action]:
        if not self.bound:
            return []
        pod = self.bound[self.chance.choice(sorted(self.bound))]
        if self.chance.random() < 0.5:
            meta = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        else:
            meta = replace(pod.metadata, labels={"app": self.chance.choice(["a", "b"])})
        self.bound[pod.uid] = changed = replace(pod, metadata=meta)
        return self.give(Modified(changed))

    def _node_changes(self) -> list[Action]:
        node = make_node(
            self.chance.choice(NODES),
            cpu=self.chance.choice(["1", "1", "2", "2"]),
            unschedulable=self.chance.random() < 0.1,
        )
        return self.give(Deleted(node) if self.chance.random() < 0.2 else Modified(node))

    # Turns and time.

    def _turn(self) -> list[Action]:
        """Sometimes although no pod is ready: then none may be taken."""
        may_turn = self.machine.has_work(self.now) or self.chance.random() < 0.2
        return self.give(Turn()) if may_turn else []

    def _time_passes(self) -> list[Action]:
        self.now += self.chance.choice([0.1, 1.0, 1.0, 1.0, 3.0, 35.0, 310.0])
        return []

    # Answers.

    def _binding_ends(self) -> list[Action]:
        if not self._binds:
            return []
        bind = self._binds.pop(self.chance.randrange(len(self._binds)))
        if self._question is not None:
            self.given_up.add(bind.pod.uid)
        return self._told(BindingEnded(bind.pod.uid, self.chance.choice(OUTCOMES)))

    def _told(self, event: BindingEnded | BindingLookedUp) -> list[Action]:
        if event.outcome.is_gone:
            self.given_up.add(event.uid)
        return self.give(event)

    def _watch_confirms(self) -> list[Action]:
        """A binding that was sent, or one that was answered."""
        for uid in sorted(self.pending):
            placed = self.machine.state.placed(uid)
            is_sent = not any(bind.pod.uid == uid for bind in self._binds)
            if placed is not None and (is_sent or self.chance.random() < 0.2):
                return self._watch_brings(self.pending[uid], placed.node_name)
        return []

    def _look_up_ends(self) -> list[Action]:
        if not self._look_ups:
            return []
        found = self._look_ups.pop(self.chance.randrange(len(self._look_ups)))
        return self._told(BindingLookedUp(found.pod.uid, self.chance.choice(OUTCOMES)))

    def _eviction_ends(self) -> list[Action]:
        """Its victims go before the answer, after it, or not at all."""
        if not self._evictions:
            return []
        evict = self._evictions.pop(self.chance.randrange(len(self._evictions)))
        if self.chance.random() < 0.3:
            return self.give(EvictionEnded(evict.pod.uid, error="the API server is busy"))
        gone = [each for each in evict.victims if self.chance.random() < 0.3]
        evicted = tuple(each for each in evict.victims if each not in gone)
        ended = EvictionEnded(evict.pod.uid, evicted, frozenset(each.uid for each in gone))
        events: list[Event] = [ended, *(Deleted(each) for each in evicted)]
        for each in evicted:
            self.bound.pop(each.uid, None)
            self.pending.pop(each.uid, None)
        if self.chance.random() < 0.5:
            events.reverse()
        return [action for event in events for action in self.give(event)]

    def _permit_is_answered(self) -> list[Action]:
        """Mostly of a pod that is assumed on a node, which may wait."""
        uids = sorted(uid for uid in self.pending if self.machine.state.placed(uid) is not None)
        uid = self.chance.choice(uids or [uid_of(self.chance.choice(PODS))])
        rejection = self.chance.choice([None] * 5 + ["the others are gone"])
        return self.give(PermitAnswered(uid, self.chance.choice(GATES), rejection))

    def _extenders_answer(self) -> list[Action]:
        question, self._question = self._question, None
        return [] if question is None else self.give(ExtendersAnswered(self._answer_to(question)))

    def _answer_to(self, question: Question) -> Answer:
        if self.chance.random() < 0.1:
            return ExtenderFailed("it does not answer")
        match question:
            case AskFilter(node_names=names):
                kept = tuple(each for each in names if self.chance.random() < 0.8)
                return Filtered(kept, {each: "too warm" for each in names if each not in kept})
            case AskPriorities(extenders=extenders, node_names=names):
                return Priorities(tuple(dict.fromkeys(names, 3) for _ in extenders))
            case AskPreemption(evictions=evictions):
                return Preempted(
                    {
                        each.node_name: (tuple(victim.uid for victim in each.victims), 0)
                        for each in evictions
                        if self.chance.random() < 0.7
                    }
                )
