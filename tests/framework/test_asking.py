"""The time that plugins take adds up where a clock is handed in; what they touch is noted."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import NOTHING_SPENT, Asking, Spent, readings_of
from lowtide.framework.plugin import NODE, TAKEN, Nodes, PluginError, Pod, PodRejection, Rejection
from lowtide.testing import ManualClock, make_node, make_pod, make_state


class Slow:
    """Takes a second."""

    name = "Slow"

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def may_enqueue(self, pod: Pod) -> PodRejection | None:
        self._clock.advance(1.0)
        if pod.name == "bad":
            raise ValueError("no")
        return None


def test_the_time_of_each_plugin_is_kept_in_the_order_of_the_questions() -> None:
    clock = ManualClock(0.0)
    asking, slow, state = Asking(clock), Slow(clock), make_state([])
    for _ in range(2):
        assert asking.observed(state, slow, "may_enqueue", make_pod()) == (None, 0)
    with pytest.raises(Exception, match=r"Slow\.may_enqueue failed"):
        asking.observed(state, slow, "may_enqueue", make_pod("bad"))
    spent = asking.spent
    assert spent == Spent((("Slow", "may_enqueue", 1.0),) * 3)
    assert (spent.by_plugin, spent.by_method) == ({"Slow": 3.0}, {"may_enqueue": 3.0})


def test_without_a_clock_nothing_is_timed() -> None:
    asking = Asking()
    asking.observed(make_state([]), Slow(ManualClock(0.0)), "may_enqueue", make_pod())
    assert asking.spent == NOTHING_SPENT


class Reads:
    """Does so in its filter."""

    name = "Reads"

    def __init__(self, read: Callable[[Nodes], object]) -> None:
        self._read = read

    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
        self._read(nodes)
        return ()


class ReadsLate(Reads):
    """Yields what it answers, so that it reads when that is looked at."""

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        self._read(nodes)
        yield Rejection(nodes.unschedulable, "cordoned")


def touched_by(plugin: object, state: ClusterState) -> int:
    _, touched = Asking().observed(state, plugin, "filter", make_pod(), state.nodes())
    return touched


def test_what_a_plugin_touches_is_noted() -> None:
    state = make_state([make_node("a")])
    assert touched_by(Reads(lambda nodes: nodes.pod_count), state) == TAKEN
    assert touched_by(Reads(lambda nodes: nodes.node(0)), state) == NODE  # and nothing of before
    assert touched_by(Reads(lambda nodes: None), state) == 0


def test_what_a_plugin_touches_while_it_yields_is_noted_too() -> None:
    state = make_state([make_node("a")])
    assert touched_by(ReadsLate(lambda nodes: nodes.pod_count), state) == TAKEN | NODE


def test_an_ask_within_another_one_counts_for_both() -> None:
    state, inner = make_state([make_node("a")]), []

    def ask_another(nodes: Nodes) -> None:
        assert len(nodes.pod_count) == 1
        inner.append(touched_by(Reads(lambda nodes: nodes.node(0)), state))

    assert touched_by(Reads(ask_another), state) == NODE | TAKEN
    assert inner == [NODE]


def test_what_a_plugin_touched_before_it_failed_counts_for_an_ask_around_it() -> None:
    state = make_state([make_node("a")])

    def fail(nodes: Nodes) -> None:
        raise ValueError(nodes.node(0).name)

    def ask_another(nodes: Nodes) -> None:
        with pytest.raises(PluginError):
            touched_by(Reads(fail), state)

    assert touched_by(Reads(ask_another), state) == NODE


def test_a_plugin_has_no_readings_unless_it_names_them() -> None:
    class Measured:
        name = "Measured"
        readings = ("traffic",)

    assert (readings_of(Slow(ManualClock())), readings_of(Measured())) == ((), ("traffic",))


class Lazily:
    """Makes its items only when they are asked for, and has no `__next__`."""

    def __init__(self, make: Callable[[], Iterator[Rejection]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Rejection]:
        return self._make()


def test_what_a_plugin_touches_while_its_answer_is_looked_at_is_noted_too() -> None:
    class ReadsLater(Reads):
        def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
            def made() -> Iterator[Rejection]:
                yield Rejection(nodes.pod_count > 0, "full")

            return Lazily(made)

    assert touched_by(ReadsLater(lambda nodes: None), make_state([make_node("a")])) == TAKEN


@pytest.mark.parametrize(
    "answer",
    [None, np.zeros(1, np.int64), [], (), frozenset("a"), type("Names", (frozenset,), {})("a")],
)
def test_an_answer_that_is_complete_is_handed_on_as_it_is(answer: object) -> None:
    class Answers(Slow):
        def may_enqueue(self, pod: Pod) -> Any:
            return answer

    asking, state = Asking(), make_state([])
    assert asking.observed(state, Answers(ManualClock()), "may_enqueue", make_pod())[0] is answer
