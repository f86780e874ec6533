"""Whatever strangers ask, nothing of it stays: ClusterState holds what the cluster has, and of what
was asked only as many columns as it has room for.

Requests are as an extender gets them: nodes put into the table for one answer, and a pod that all
default plugins judge, booked for a while. All they name is new each time.
"""

import gc
import random
import tracemalloc
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pytest

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry
from lowtide.cluster.columns import Column, most_columns
from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.config.load import load_default
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.kinds import KIND_OF
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.testing import make_node, make_pod, make_state

STRANGE = "strange-"  # begins whatever only strangers name
WATCHED_NODES = 40
WATCHED_PODS = 80
MOST_NODES = 3  # of a request
MOST_BOOKED = 50
DRIVER = "pd.csi.storage.gke.io"  # of the disks that strangers name
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

# Labels, what is allocatable, what is requested, images, selectors of pods, terms of pods, in-tree
# drivers that were migrated, volumes that pods use.
KINDS_OF_COLUMNS = 8
# What is there from the start, with the three fields of the reading.
COLUMNS_THAT_STAY = 9
LONGEST_LOG = 16 * 64


class PodsCarryTwo:
    fields = ("expected",)

    def expected_for(self, pod: Pod) -> tuple[float, ...]:
        return (2.0,)


def watched_state() -> ClusterState:
    nodes = [
        make_node(f"node-{n}", labels={"zone": f"zone-{n % 3}"}, images={"app:1": 10**8})
        for n in range(WATCHED_NODES)
    ]
    pods = [
        make_pod(f"pod-{n}", on=f"node-{n % WATCHED_NODES}", cpu="100m", labels={"app": "web"})
        for n in range(WATCHED_PODS)
    ]
    state = make_state(nodes, pods)
    names = tuple(node.name for node in nodes)
    columns = {"receive": np.ones(len(names)), "transmit": np.ones(len(names))}
    state.publish("traffic", Reading(names, columns, {}, PodsCarryTwo(), sampled_at=1.0))
    return state


def default_profile() -> Profile:
    built = make_registry({}).build(load_default(), {Binder: NoBinder()})
    (profile,) = built.profiles.values()
    return profile


class Strangers:
    def __init__(self, state: ClusterState, seed: int) -> None:
        self.state = state
        self.verdicts = VerdictCache(default_profile(), state, max_bytes=2**20)
        self._chance = random.Random(seed)
        self._named = 0
        self._booked: deque[str] = deque()

    def ask(self) -> None:
        """One request: its nodes come, its pod is judged and booked, its nodes go."""
        nodes = [self._node() for _ in range(self._chance.randrange(MOST_NODES + 1))]
        known = [self.state.row_of(node.name) for node in nodes]
        before = [self.state.node_at(row) for row in known if row is not None]
        for node in nodes:
            self.state.update_node(node)
        pod = self._pod(nodes)
        ranked = self.verdicts.verdict_on(pod).rank()
        self._book(pod, self.state.names[int(ranked.argmax())])
        for node in before:
            self.state.update_node(node)
        for node, row in zip(nodes, known, strict=True):
            if row is None:
                self.state.remove_node(node.name)

    def end(self) -> None:
        while self._booked:
            self.state.forget(self._booked.popleft())

    def _book(self, pod: Pod, node_name: str) -> None:
        self.state.assume(pod, node_name)
        self._booked.append(pod.uid)
        if len(self._booked) > MOST_BOOKED:
            self.state.forget(self._booked.popleft())

    def _name(self) -> str:
        self._named += 1
        return f"{STRANGE}{self._named}"

    def _names(self, most: int) -> dict[str, str]:
        """Keys and values that nobody named before; here and there a key that nodes have."""
        keys = [self._name() for _ in range(self._chance.randrange(most + 1))]
        if self._chance.random() < 0.3:
            keys.append("zone")
        return {key: self._name() for key in keys}

    def _amounts(self) -> dict[str, int]:
        names = [self._name() for _ in range(self._chance.randrange(3))]
        return {f"example.com/{name}": self._chance.randrange(1, 9) for name in names}

    def _node(self) -> Node:
        is_known = self._chance.random() < 0.5
        name = f"node-{self._chance.randrange(WATCHED_NODES)}" if is_known else self._name()
        return make_node(
            name,
            labels=self._names(4),
            annotations=self._names(1),
            taints=[{"key": self._name(), "effect": "PreferNoSchedule"}],
            images={f"{self._name()}:1": 10**8},
            **self._amounts(),
        )

    def _pod(self, nodes: Sequence[Node]) -> Pod:
        name = self._name()
        images = [name for node in nodes for image in node.status.images for name in image.names]
        container = {
            "name": "main",
            "image": self._chance.choice([self._name(), *images]),
            "resources": {"requests": {"cpu": "10m", **self._amounts()}},
            "ports": [{"hostPort": self._chance.randrange(1, 65_536), "hostIP": self._name()}],
        }
        spec: dict[str, Any] = {
            "containers": [container],
            "volumes": [{"name": "disk", "gcePersistentDisk": {"pdName": self._name()}}],
            "tolerations": [{"key": self._name(), "operator": "Exists"}],
            "topologySpreadConstraints": [self._spread() for _ in range(2)],
            "affinity": {
                "nodeAffinity": {PREFERRED: [self._node_preference() for _ in range(2)]},
                "podAffinity": {PREFERRED: [self._pod_preference() for _ in range(2)]},
                "podAntiAffinity": {REQUIRED: [self._term()]},
            },
        }
        if self._chance.random() < 0.3:
            spec["nodeSelector"] = self._names(2)
        return make_pod(name, namespace=self._name(), labels=self._names(2), spec=spec)

    def _spread(self) -> dict[str, Any]:
        return {
            "maxSkew": 1,
            "topologyKey": self._chance.choice(["zone", self._name()]),
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": self._names(1)},
        }

    def _node_preference(self) -> dict[str, Any]:
        expression = {"key": self._name(), "operator": "In", "values": [self._name()]}
        return {"weight": 5, "preference": {"matchExpressions": [expression]}}

    def _pod_preference(self) -> dict[str, Any]:
        return {"weight": 5, "podAffinityTerm": self._term()}

    def _term(self) -> dict[str, Any]:
        return {
            "topologyKey": self._chance.choice(["zone", self._name()]),
            "labelSelector": {"matchLabels": self._names(1)},
            "namespaces": [self._name()],
        }


NOT_FOLLOWED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def reachable(root: Any) -> Iterator[Any]:
    """Every object that this one holds, by whatever it is held."""
    seen: set[int] = set()
    found = [root]
    while found:
        thing = found.pop()
        if id(thing) in seen or isinstance(thing, NOT_FOLLOWED):
            continue
        seen.add(id(thing))
        yield thing
        found.extend(gc.get_referents(thing))


def held(state: ClusterState) -> Counter[str]:
    """How much of what it holds."""
    counts: Counter[str] = Counter()
    for thing in reachable(state):
        counts["columns"] += isinstance(thing, Column)
        counts["strange names"] += isinstance(thing, str) and STRANGE in thing
        if isinstance(thing, (dict, list, set, frozenset, tuple)):
            counts["entries"] += len(thing)
    return counts


def assert_is_small(state: ClusterState) -> None:
    columns = KINDS_OF_COLUMNS * most_columns(64)
    # A column is called by one, or by a selector with up to four; a booked pod has up to 60.
    strange_names = 4 * columns + 60 * MOST_BOOKED
    counts = held(state)
    zones = state.labels["zone"].interned.values
    assert {zone for zone in zones if zone is not None} == {"zone-0", "zone-1", "zone-2"}
    assert counts["columns"] <= columns + COLUMNS_THAT_STAY
    assert counts["strange names"] <= strange_names
    # Of what is watched, of what is booked, of columns and their keys, of the log and its pairs.
    watched, booked = 20 * (WATCHED_NODES + WATCHED_PODS), 100 * MOST_BOOKED
    assert counts["entries"] <= watched + booked + 8 * columns + 3 * LONGEST_LOG


def what_is_held_after(state: ClusterState, requests: int) -> Mapping[str, int]:
    """With nobody's columns, which may be any, and once nothing is booked any more."""
    strangers = Strangers(state, seed=1)
    for _ in range(requests):
        strangers.ask()
    strangers.end()
    volumes = state.nodes().volumes
    volumes.attached_count(DRIVER)  # counts what was put off
    volumes.attach_limit(DRIVER)
    state._drop_columns()
    state.log._changes.clear()
    assert len(state._kind_bits) <= len(KIND_OF)
    state._kind_bits.clear()
    return held(state)


def test_nothing_stays_of_what_strangers_asked() -> None:
    before = what_is_held_after(watched_state(), 0)
    after = what_is_held_after(watched_state(), 300)
    assert (after["strange names"], after["columns"]) == (0, before["columns"])
    # Numbers that the taints of a request's nodes had, and that are free: three places for each.
    assert after["entries"] - before["entries"] <= 3 * MOST_NODES


def test_it_is_small_after_many_requests() -> None:
    state = watched_state()
    strangers = Strangers(state, seed=2)
    for number in range(1000):
        strangers.ask()
        if number % 250 == 249:
            assert_is_small(state)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_it_does_not_grow_between_2000_and_5000_requests() -> None:
    state = watched_state()
    strangers = Strangers(state, seed=3)
    bytes_at: dict[int, int] = {}
    tracemalloc.start()
    try:
        for number in range(1, 5001):
            strangers.ask()
            if number % 250 == 0:
                assert_is_small(state)
                gc.collect()
                bytes_at[number], _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    first = [size for number, size in bytes_at.items() if 1000 < number <= 2000]
    last = [size for number, size in bytes_at.items() if number > 4000]
    assert sum(last) < 1.02 * sum(first)
