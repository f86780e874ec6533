"""Rejections that give way: to pods that have waited, and only where nothing else rejects."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import Nodes, PluginError, Pod, Rejection
from lowtide.framework.rejections import Rejections
from lowtide.framework.verdict import Verdict
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.testing import make_node, make_pod, make_profile, make_state

POD = make_pod()


class Busy:
    """Rejects these nodes, each until a pod has waited for so long."""

    def __init__(self, name: str = "Busy", **after: float | None) -> None:
        self.name = name
        self.after = after

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        nodes.reading("x")
        for after in dict.fromkeys(self.after.values()):
            mask = np.array([self.after.get(name, math.nan) == after for name in nodes.names])
            yield Rejection(mask, "busy", gives_way_after=after)


class Closed:
    """Rejects these nodes for good."""

    name = "Closed"

    def __init__(self, *names: str) -> None:
        self._names = names

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield Rejection(np.array([name in self._names for name in nodes.names]), "closed")


class Narrows:
    name = "Narrows"

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def pre_filter(self, pod: Pod, nodes: Nodes) -> frozenset[str]:
        return self._names


def three() -> ClusterState:
    return make_state([make_node("a"), make_node("b"), make_node("c")])


def verdict_of(*plugins: Any) -> Verdict:
    return VerdictCache(make_profile(plugins), three()).verdict_on(POD)


def left(verdict: Verdict, waited_seconds: float) -> str:
    return "".join(np.array(list("abc"))[verdict.feasible_after(waited_seconds)])


@pytest.mark.parametrize(
    ("plugins", "left_after"),
    [
        pytest.param([], {0: "abc"}, id="rejects no node without rejecting plugins"),
        pytest.param([Busy(a=0, b=0, c=0)], {0: "abc"}, id="gives way at once after 0 seconds"),
        pytest.param(
            [Busy(a=60, b=60, c=30)],
            {0: "", 29.9: "", 30: "c", 59: "c", 60: "abc", 1e9: "abc"},
            id="gives way after the seconds that it names",
        ),
        pytest.param(
            [Busy(a=None, b=None, c=10)],
            {0: "", 10: "c", 1e9: "c"},
            id="never gives way if it names no time",
        ),
        pytest.param(
            [Closed("a", "b"), Busy(a=10, b=10, c=10)],
            {0: "", 10: "c", 1e9: "c"},
            id="gives way only on nodes that no other plugin rejects",
        ),
        pytest.param(
            [Busy("First", a=10, b=10, c=10), Busy("Second", a=20, b=5, c=None)],
            {0: "", 5: "", 10: "b", 20: "ab", 1e9: "ab"},
            id="gives way when the last of several has given way",
        ),
        pytest.param(
            [Narrows("a", "b"), Busy(a=10, b=10, c=10)],
            {0: "", 10: "ab"},
            id="never adds nodes that a pre-filter left out",
        ),
    ],
)
def test_a_rejection(plugins: list[Any], left_after: Mapping[float, str]) -> None:
    verdict = verdict_of(*plugins)
    assert {waited: left(verdict, waited) for waited in left_after} == left_after


def test_what_gives_way_still_rejects_while_it_is_asked() -> None:
    verdict = verdict_of(Busy(a=0, b=0))
    assert verdict.feasible.tolist() == [False, False, True]
    assert verdict.reason_counts() == {"busy": 2}


@pytest.mark.parametrize(
    ("plugins", "waits"),
    [
        pytest.param([], {0: math.inf}, id="nothing if no plugin rejects"),
        pytest.param(
            [Busy(a=60, b=60, c=30)],
            {0: 30, 29: 30, 30: 60, 60: math.inf},
            id="the next time at which a node is feasible",
        ),
        pytest.param(
            [Busy(a=None, b=None, c=None)],
            {0: math.inf},
            id="nothing if the rejection never gives way",
        ),
        pytest.param(
            [Closed("a", "b", "c"), Busy(a=10, b=10, c=10)],
            {0: math.inf},
            id="nothing if another plugin rejects every node",
        ),
        pytest.param(
            [Busy("First", a=10, b=10, c=10), Busy("Second", a=20, b=50, c=None)],
            {0: 20, 10: 20, 20: 50, 50: math.inf},
            id="the time at which the last of several gives way",
        ),
        pytest.param(
            [Closed("a", "b", "c"), Busy()],
            {0: math.inf},
            id="nothing if the plugin rejects no node",
        ),
    ],
)
def test_a_pod_waits_for(plugins: list[Any], waits: Mapping[float, float]) -> None:
    verdict = verdict_of(*plugins)
    assert {waited: verdict.gives_way_after(waited) for waited in waits} == waits


def test_one_reason_may_give_way_on_one_node_and_not_on_another() -> None:
    verdict = verdict_of(Busy(a=None, b=0, c=60))
    assert (left(verdict, 0), left(verdict, 60)) == ("b", "bc")
    assert verdict.reason_counts() == {"busy": 3}


def test_a_plugin_that_judges_again_may_give_way_at_another_time() -> None:
    plugin, state = Busy(a=60, b=60, c=60), three()
    verdicts = VerdictCache(make_profile([plugin]), state)
    assert left(verdicts.verdict_on(POD), 30) == ""
    plugin.after = {"a": 10, "b": 60, "c": 60}
    state.publish("x", Reading())
    assert left(verdicts.verdict_on(POD), 30) == "a"


def test_reasons_keep_the_order_in_which_the_plugin_gives_them() -> None:
    rejections = Rejections("TooSmall")
    nowhere, everywhere = np.array([False]), np.array([True])
    rows = np.array([0])
    said = [Rejection(nowhere, "cpu"), Rejection(everywhere, "memory")]
    rejections.put(rows, rejections.read(said, 1), 1)
    assert rejections.as_node_rejection(0).reasons == ("memory",)
    said = [Rejection(everywhere, "cpu"), Rejection(everywhere, "memory")]
    rejections.put(rows, rejections.read(said, 1), 1)
    assert rejections.as_node_rejection(0).reasons == ("cpu", "memory")


class CountsAloud:
    """Rejects every node, with the number of its pods as the reason."""

    name = "CountsAloud"

    def __init__(self) -> None:
        self.judged: list[int] = []

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        self.judged.append(len(nodes))
        counts = nodes.pod_count
        for count in np.unique(counts):
            yield Rejection(counts == count, f"{count} pods here")


def test_reasons_of_the_past_do_not_count_toward_the_limit_of_reasons() -> None:
    plugin, state = CountsAloud(), make_state([make_node(name) for name in "abcde"])
    verdict = Verdict(make_profile([plugin]), state, POD, b"")
    for number in range(150):
        state.place(make_pod(f"p{number}", on="a"))
        verdict.refresh()
        found = [verdict.rejection_at(row) for row in (0, 1)]
        reasons = [each.reasons for each in found if each is not None]
        assert reasons == [(f"{number + 1} pods here",), ("0 pods here",)]
    assert plugin.judged.count(5) == 3  # at first, and where the limit was reached
    assert plugin.judged.count(1) == 149  # each other time, and before the whole


def test_too_many_reasons_at_once_are_an_error() -> None:
    """Nodes with 0 to 63 pods each, and a second one without."""
    pods = [make_pod(f"p{at}-{n}", on=f"n{at}") for at in range(64) for n in range(at)]
    state = make_state([*(make_node(f"n{at}") for at in range(64)), make_node("empty")], pods)
    verdict = Verdict(make_profile([CountsAloud()]), state, POD, b"")
    verdict.refresh()
    state.place(make_pod("one-more", on="n63"))
    verdict.refresh()
    state.place(make_pod("other", on="empty"))
    state.place(make_pod("another", on="n62"))
    verdict.refresh()
    for number in range(64):
        state.place(make_pod(f"last-{number}", on="empty"))
    with pytest.raises(PluginError, match=r"^CountsAloud gives more than 64 different reasons"):
        verdict.refresh()
