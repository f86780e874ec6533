"""What must be true whatever breaks, checked at every change that the API server tells of.

Fed by `following` from its threads; the faults ask it what was bound when, and `__main__` what was
wrong in the end."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from faults.constraints import overcommitted, rejections

Json = Mapping[str, Any]

# A pod's label that says what is to become of it.
EXPECTED = "faults/expected"
BOUND = "bound"
WAITS = "waits"
# What a process sent before it was killed arrives within this time, in which no other one of its
# user has begun to bind.
WIRE_SECONDS = 0.5
# Events that wait while bindings are under way die with their process: so many may, and those that
# were just taken to be written (docs/faults.md).
MOST_EVENTS_TAKEN = 4_000 + 128
# Bindings of who led before: as many as a scheduler has under way at once.
MOST_ON_THE_WIRE = 32


@dataclass(frozen=True, slots=True)
class Binding:
    """One that was posted, as the audit log tells; one that was not accepted may be done all the
    same, where its sender went away before the answer."""

    uid: str
    node_name: str
    user: str
    at: float
    was_accepted: bool = True


@dataclass(frozen=True, slots=True)
class Leadership:
    """Since when who holds the lease, as the accepted write of it says."""

    user: str
    holder: str
    acquired_at: float


@dataclass(frozen=True, slots=True)
class Life:
    """Of one process of a user, from its start to its end."""

    user: str
    began_at: float
    ended_at: float
    ended_abruptly: bool  # without the time to write what waited


@dataclass(slots=True)
class Missing:
    """Events that should be there, by uid of their pods."""

    after_kill: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)


class Auditor:
    """Its methods may be called from several threads; times are seconds since the epoch."""

    def __init__(self, most_events_taken: int = MOST_EVENTS_TAKEN) -> None:
        self._most_events_taken = most_events_taken
        self._lock = threading.RLock()
        self._nodes: dict[str, Json] = {}
        self._pods: dict[str, Json] = {}
        self._on_node: dict[str, dict[str, Json]] = defaultdict(dict)
        self._node_of: dict[str, str] = {}
        self._bound_at: list[float] = []
        self._accepted: dict[str, Binding] = {}
        self._posted: dict[str, list[Binding]] = defaultdict(list)
        self._seen_uids: set[str] = set()
        self._event_uids: dict[str, set[str]] = defaultdict(set)
        self.bindings: list[Binding] = []  # those that were accepted
        self.leaderships: list[Leadership] = []
        self.double_bindings: set[str] = set()
        self.overcommitted_nodes: set[str] = set()
        self.violations: list[str] = []

    # What is seen.

    def saw_node(self, node: Json) -> None:
        with self._lock:
            self._nodes[node["metadata"]["name"]] = node

    def saw_pod(self, pod: Json, now: float) -> None:
        with self._lock:
            uid = pod["metadata"]["uid"]
            self._seen_uids.add(uid)
            self._pods[uid] = pod
            node_name = pod["spec"].get("nodeName")
            known = self._node_of.get(uid)
            if known is not None and node_name != known:
                self.double_bindings.add(uid)
                self._object_to(pod, f"it was on {known} and is on {node_name}")
            if node_name and node_name != known:
                self._bound_at.append(now)
                self._take_to(node_name, pod)

    def pod_gone(self, uid: str) -> None:
        with self._lock:
            pod = self._pods.pop(uid, None)
            if pod is not None:
                self._on_node[pod["spec"].get("nodeName", "")].pop(uid, None)

    def saw_pods(self, pods: Iterable[Json], now: float) -> None:
        """All that there are: who is not among them is gone."""
        listed = {pod["metadata"]["uid"]: pod for pod in pods}
        with self._lock:
            for uid in self._pods.keys() - listed.keys():
                self.pod_gone(uid)
            for pod in listed.values():
                self.saw_pod(pod, now)

    def saw_event(self, event: Json) -> None:
        """Of the API's kind Event, in its core form."""
        with self._lock:
            self._event_uids[event["reason"]].add(event["involvedObject"].get("uid", ""))

    def saw_binding(self, binding: Binding) -> None:
        with self._lock:
            self._posted[binding.uid].append(binding)
            if not binding.was_accepted:
                return
            self.bindings.append(binding)
            before = self._accepted.setdefault(binding.uid, binding)
            if before is not binding:
                self.double_bindings.add(binding.uid)
                self.violations.append(
                    f"two bindings of {binding.uid} were accepted: to {before.node_name} by "
                    f"{before.user}, then to {binding.node_name} by {binding.user}"
                )

    def saw_leadership(self, leadership: Leadership) -> None:
        with self._lock:
            if not self.leaderships or self.leaderships[-1] != leadership:
                self.leaderships.append(leadership)

    def object_to(self, sentence: str) -> None:
        """Something that only a fault itself can tell was wrong."""
        with self._lock:
            self.violations.append(sentence)

    def object_to_former_leaders(self, name: str, began_at: float) -> None:
        """To be asked when nobody who led since then can bind any more: who was frozen sends what
        it still sends once it goes on."""
        for user, late in self.bindings_of_former_leaders(began_at).items():
            if late > MOST_ON_THE_WIRE:
                self.object_to(
                    f"{name}: {late} bindings of {user} were accepted after another one led"
                )

    # What it tells.

    @property
    def pod_count(self) -> int:
        """Of all that were ever seen."""
        with self._lock:
            return len(self._seen_uids)

    @property
    def bound_count(self) -> int:
        """Of all that were ever seen to be bound."""
        with self._lock:
            return len(self._bound_at)

    def has_seen(self, uids: Iterable[str]) -> bool:
        with self._lock:
            return self._seen_uids.issuperset(uids)

    def first_bound_after(self, moment: float) -> float | None:
        with self._lock:
            return next((at for at in self._bound_at if at > moment), None)

    def unbound(self) -> set[str]:
        """Pods that are there, should be bound, and are not."""
        with self._lock:
            return {
                uid
                for uid, pod in self._pods.items()
                if _expected(pod) == BOUND and not pod["spec"].get("nodeName")
            }

    def without_condition(self) -> set[str]:
        """Pods that cannot be bound and are not said to be unschedulable."""
        with self._lock:
            return {
                uid
                for uid, pod in self._pods.items()
                if _expected(pod) == WAITS and not _says_unschedulable(pod)
            }

    def without_event(self, lives: Iterable[Life]) -> Missing:
        """Who was bound by a process that was killed may have no Event of it, nobody else; and each
        may have taken so many along, no more."""
        killed = [life for life in lives if life.ended_abruptly]
        taken: Counter[Life] = Counter()
        missing = Missing()
        with self._lock:
            for uid, pod in self._pods.items():
                if _expected(pod) == WAITS:
                    if uid not in self._event_uids["FailedScheduling"]:
                        missing.lost.add(uid)
                elif pod["spec"].get("nodeName") and uid not in self._event_uids["Scheduled"]:
                    taken_by = [
                        life
                        for posted in self._posted[uid]
                        for life in killed
                        if life.user == posted.user
                        and life.began_at <= posted.at <= life.ended_at + WIRE_SECONDS
                        and taken[life] < self._most_events_taken
                    ]
                    taken.update(taken_by[:1])
                    (missing.after_kill if taken_by else missing.lost).add(uid)
        return missing

    def takeover_after(self, moment: float) -> tuple[Leadership, Binding] | None:
        """Who took the lease next, and the first binding of his. That may be the user who led
        before, whose process was started again."""
        with self._lock:
            for leadership in self.leaderships:
                if leadership.acquired_at > moment:
                    for binding in self.bindings:
                        if binding.user == leadership.user and binding.at > leadership.acquired_at:
                            return leadership, binding
                    return None
            return None

    def bindings_of_former_leaders(self, since: float = 0.0) -> Counter[str]:
        """Accepted after the acquireTime of a next leader who leads since then or later, by the
        user who posted them."""
        with self._lock:
            late: Counter[str] = Counter()
            for index, leadership in enumerate(self.leaderships[1:], start=1):
                ends_at = (
                    self.leaderships[index + 1].acquired_at
                    if index + 1 < len(self.leaderships)
                    else float("inf")
                )
                if leadership.acquired_at < since:
                    continue
                late.update(
                    binding.user
                    for binding in self.bindings
                    if leadership.acquired_at < binding.at < ends_at
                    and binding.user != leadership.user
                )
            return late

    # Parts of it.

    def _take_to(self, node_name: str, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        self._node_of[uid] = node_name
        node = self._nodes.get(node_name)
        if node is None:
            self._object_to(pod, f"it is on {node_name}, which is no node")
            return
        there = self._on_node[node_name]
        for rejection in rejections(pod, node, there.values()):
            self._object_to(pod, f"it is on {node_name}, but {rejection}")
        there[uid] = pod
        for resource, (asked, allocatable) in overcommitted(node, there.values()).items():
            self.overcommitted_nodes.add(node_name)
            self.violations.append(
                f"the pods on {node_name} ask for {asked:g} of its {allocatable:g} {resource}"
            )

    def _object_to(self, pod: Json, sentence: str) -> None:
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self.violations.append(f"pod {name}: {sentence}")


def _expected(pod: Json) -> str:
    return str(pod["metadata"].get("labels", {}).get(EXPECTED, ""))


def _says_unschedulable(pod: Json) -> bool:
    return any(
        condition["type"] == "PodScheduled"
        and condition["status"] == "False"
        and condition.get("reason") == "Unschedulable"
        for condition in pod.get("status", {}).get("conditions", ())
    )
