"""The machine and hot nodes: pods wait for their patience's length, for a cooler node, for room."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.scheduler.conftest import (
    OUTCOME_ERROR,
    START,
    Bench,
    binds,
    conditions,
    default_plugins,
)

from lowtide.objects.events import Added, Modified
from lowtide.objects.pod import Pod
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import HotNodesArgs, NetworkTrafficArgs
from lowtide.readings.columns import published
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.actions import Action
from lowtide.scheduler.events import ReadingPublished, Turn
from lowtide.testing import make_node, make_pod, make_profile

LINK = 1e9  # bytes per second
HOT = (
    "0/2 nodes are available: 2 node(s) had a hot network link. no new claims to deallocate, "
    "preemption: not eligible while a node with room is rejected for its load alone."
)


def pod(name: str = "web", *, percent: float = 1, **more: Any) -> Pod:
    """One that takes so much of a link."""
    bits_per_second = f"{percent / 100 * LINK * 8:.0f}"
    return make_pod(name, annotations={"lowtide.dev/traffic": bits_per_second}, **more)


class HotBench(Bench):
    """Nodes whose links are used by so many percent; hot from 90 on."""

    def __init__(self, patience_seconds: float, start: float = START, **percent: float) -> None:
        hot = HotNodesArgs(soft_percent=75, hard_percent=90, patience_seconds=patience_seconds)
        self.plugin = NetworkTraffic(NetworkTrafficArgs(hot_nodes=hot))
        self.nodes = [make_node(name) for name in percent]
        super().__init__(*self.nodes, profiles=[make_profile([*default_plugins(), self.plugin])])
        self.now = start
        self.read(percent)

    def read(self, percent: Mapping[str, float]) -> None:
        given = {
            name: {"value": each / 100 * LINK, "capacity": LINK} for name, each in percent.items()
        }
        reading = traffic_reading(self.plugin.request, given, self.nodes)
        reading = replace(reading, sampled_at=self.now)
        self.give(ReadingPublished(self.plugin.request, published(reading)))

    def turns_now(self) -> list[Action]:
        """As `take_turns`, without the patience to go round for ever."""
        wanted: list[Action] = []
        for _ in range(5):
            if not self.machine.has_work(self.now):
                return wanted
            wanted += self.give(Turn())
        raise AssertionError("the pod is tried again and again at one moment")


@pytest.mark.parametrize(
    ("start", "patience_seconds"),
    [
        pytest.param(START, 60.0, id="in whole seconds"),
        pytest.param(1_700_000_000.3, 60.1, id="in seconds that a float does not hold exactly"),
        pytest.param(1_700_000_000.123456, 0.7, id="in less than a second"),
    ],
)
def test_a_pod_waits_and_goes_to_the_best_hot_node_when_its_time_is_over(
    start: float, patience_seconds: float
) -> None:
    bench = HotBench(patience_seconds, start, a=300, b=95)
    bench.give(Added(pod()))
    assert conditions(bench.turns_now()) == [("Unschedulable", HOT)]
    over_at = bench.machine.queue.next_change_at()
    assert over_at == start + patience_seconds
    bench.now = over_at - 0.01
    assert bench.turns_now() == []
    bench.now = over_at
    assert binds(bench.turns_now()) == [("web", "b")]


def test_without_patience_load_alone_never_keeps_a_pod_from_every_node() -> None:
    bench = HotBench(0.0, a=300, b=95)
    assert bench.place(pod()) == "b"


def test_what_the_other_plugins_left_is_taken_however_hot() -> None:
    bench = HotBench(0.0, a=300, b=10)
    bench.give(Modified(make_node("b", unschedulable=True)))
    assert bench.place(pod()) == "a"


def test_the_time_that_a_pod_waited_for_other_reasons_counts() -> None:
    bench = HotBench(60.0, a=300, b=95)
    for name in "ab":
        bench.give(Modified(make_node(name, unschedulable=True)))
    bench.give(Added(pod()))
    assert bench.turns_now() != []
    bench.pass_time(90)
    bench.give(Modified(make_node("a")))
    assert binds(bench.turns_now()) == [("web", "a")]


def test_a_pod_is_not_tried_in_vain_when_the_time_of_load_is_over() -> None:
    bench = HotBench(60.0, a=300, b=95)
    for name in "ab":
        bench.give(Modified(make_node(name, unschedulable=True)))
    bench.give(Added(pod()))
    assert bench.turns_now() != []
    assert bench.machine.queue.next_change_at() == START + 300


@pytest.mark.parametrize(
    ("percent", "went_to"),
    [
        pytest.param({"a": 300, "b": 50}, [("web", "b")], id="is placed when a node has cooled"),
        pytest.param({"a": 300, "b": 93}, [], id="waits on when none has"),
    ],
)
def test_a_pod_that_waits(percent: dict[str, float], went_to: list[tuple[str, str]]) -> None:
    bench = HotBench(60.0, a=300, b=95)
    bench.give(Added(pod()))
    bench.turns_now()
    bench.pass_time(15)
    bench.read(percent)
    assert binds(bench.turns_now()) == went_to
    if not went_to:
        assert bench.machine.queue.next_change_at() == START + 60
        bench.now = START + 60  # since the pod was first seen, not since it was tried last
        assert binds(bench.turns_now()) == [("web", "b")]


def test_pods_on_their_way_heat_a_node_and_cool_it_when_they_go() -> None:
    bench = HotBench(60.0, a=50, b=95)
    first, second = pod("first", percent=20), pod("second", percent=20)
    assert bench.place(first) == "a"  # 50 + 20 = 70
    bench.give(Added(second))
    assert conditions(bench.turns_now()) == [("Unschedulable", HOT)]  # 70 + 20 = 90
    bench.pass_time(5)
    bench.delete(first)
    assert binds(bench.turns_now()) == [("second", "a")]


def test_a_pod_that_lost_its_node_cools_it() -> None:
    bench = HotBench(60.0, a=50, b=95)
    first, second = pod("first", percent=20), pod("second", percent=20)
    bench.give(Added(pod("first", percent=20, on="a")), Added(second))
    assert conditions(bench.turns_now()) == [("Unschedulable", HOT)]  # 50 + 20 + 20 = 90
    bench.pass_time(5)
    bench.give(Modified(first))
    assert binds(bench.turns_now()) == [("second", "a")]


def test_a_promise_that_is_taken_back_cools_the_node() -> None:
    bench = HotBench(60.0, a=50, b=95)
    promised = pod("promised", percent=20, nominated="a", gates=["wait"])
    bench.give(Added(promised), Added(pod("rival", percent=20)))
    assert conditions(bench.turns_now()) == [("Unschedulable", HOT)]  # 50 + 20 + 20 = 90
    bench.pass_time(5)
    bench.delete(promised)
    assert binds(bench.turns_now()) == [("rival", "a")]


def test_a_binding_that_fails_cools_the_node() -> None:
    bench = HotBench(60.0, a=50, b=95)
    assert bench.place(pod("first", percent=20)) == "a"
    bench.give(Added(pod("second", percent=20)))
    bench.turns_now()
    bench.pass_time(5)
    bench.end("first", OUTCOME_ERROR)
    assert ("second", "a") in binds(bench.turns_now())
