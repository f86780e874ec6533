"""The ledger: what was placed counts on its row until a reading has measured it whole."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest

from lowtide.cluster.changes import EVERY_ROW, LABELS, PODS, READING, ROW
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.objects.pod import Pod
from lowtide.testing import make_node, make_pod, make_state

SOURCE = "traffic"
EPOCH = 1_767_225_600.0  # 2026-01-01T00:00:00Z
WINDOW_SECONDS = 20


@dataclass(frozen=True)
class Carries:
    """Expects of a pod what its label `in` says, else `otherwise`, and twice that going out."""

    otherwise: float = 10.0

    fields = ("in", "out")

    def expected_for(self, pod: Pod) -> tuple[float, ...]:
        amount = float(pod.labels.get("in", self.otherwise))
        return amount, 2 * amount


TEN = Carries()


def measured(
    *names: str, sampled_at: float = 0.0, expects: Carries | None = TEN, value: float = 100.0
) -> Reading:
    """`sampled_at` and the pods' starts are seconds into 2026."""
    return Reading(
        names=names,
        columns={"value": np.full(len(names), value)},
        of_others={"value": -1.0},
        expects=expects,
        sampled_at=EPOCH + sampled_at,
        window_seconds=WINDOW_SECONDS,
    )


def pod(name: str, *, carries: float | None = None, on: str = "") -> Pod:
    return make_pod(name, labels={} if carries is None else {"in": str(carries)}, on=on)


def started(pod: Pod, seconds: int) -> Pod:
    """The same pod, running since so many seconds into 2026."""
    status = {"phase": "Running", "startTime": f"2026-01-01T00:00:{seconds:02}Z"}
    return msgspec.structs.replace(pod, status=msgspec.convert(status, type(pod.status)))


def bound(pod: Pod, node_name: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))


def two(*pods: Pod) -> ClusterState:
    """Nodes a and b, with a reading from the beginning of 2026."""
    state = make_state([make_node("a"), make_node("b")], pods)
    state.publish(SOURCE, measured("a", "b"))
    return state


def incoming(table: ClusterState | Nodes, source: str = SOURCE) -> list[float]:
    """What is still to come in, by row."""
    nodes = table if isinstance(table, Nodes) else table.nodes()
    found: list[float] = nodes.reading(source)["in"].tolist()
    return found


def changes(state: ClusterState, change: Callable[[ClusterState], object]) -> list[tuple[int, int]]:
    """What this change leaves in the log."""
    before = state.log.position
    change(state)
    found = state.log.since(before)
    assert found is not None
    return found


# Pods come and go.


def test_an_assumed_pod_counts_at_once_and_makes_only_its_row_stale() -> None:
    state = two()
    assert changes(state, lambda s: s.assume(pod("p"), "b")) == [(1, PODS | READING)]
    columns = {field: each.tolist() for field, each in state.nodes().reading(SOURCE).items()}
    assert columns == {"value": [100.0, 100.0], "in": [0.0, 10.0], "out": [0.0, 20.0]}


@pytest.mark.parametrize(
    "release",
    [
        pytest.param(lambda state: state.forget("default/p"), id="that is forgotten"),
        pytest.param(lambda state: state.remove_pod("default/p"), id="that is deleted"),
    ],
)
def test_a_pod_no_longer_counts(release: Callable[[ClusterState], object]) -> None:
    state = two()
    state.assume(pod("p"), "b")
    state.assume(pod("q", carries=3), "b")
    assert changes(state, release) == [(1, PODS | READING)]
    assert incoming(state) == [0.0, 3.0]


def test_a_binding_that_is_confirmed_leaves_one_entry_and_wakes_nobody() -> None:
    state = two()
    state.assume(pod("p"), "b")
    assert changes(state, lambda s: s.place(bound(pod("p"), "b"))) == []
    assert incoming(state) == [0.0, 10.0]
    state.remove_pod("default/p")
    assert incoming(state) == [0.0, 0.0]


def test_a_pod_that_is_bound_elsewhere_moves_its_entry() -> None:
    state = two()
    state.assume(pod("p"), "b")
    moved = changes(state, lambda s: s.place(bound(pod("p"), "a")))
    assert moved == [(1, PODS | READING), (0, PODS | READING)]
    assert incoming(state) == [10.0, 0.0]


def test_a_pod_that_others_bound_counts_too() -> None:
    state = two()
    state.place(pod("p", on="a"))
    assert incoming(state) == [10.0, 0.0]


def test_a_pod_that_states_something_else_is_counted_anew() -> None:
    state = two(pod("p", on="a"))
    state.place(pod("p", on="a", carries=4))
    assert incoming(state) == [4.0, 0.0]


def test_a_pod_of_which_nothing_is_expected_does_not_make_its_reading_stale() -> None:
    state = two()
    assert changes(state, lambda s: s.assume(pod("p", carries=0), "b")) == [(1, PODS)]
    assert changes(state, lambda s: s.forget("default/p")) == [(1, PODS)]


def test_a_pod_that_was_measured_whole_makes_no_reading_stale() -> None:
    state = two()
    state.publish(SOURCE, measured("a", "b", sampled_at=40))
    old = started(pod("old", on="a"), 10)
    assert changes(state, lambda s: s.place(old)) == [(0, PODS)]
    assert changes(state, lambda s: s.remove_pod(old.uid)) == [(0, PODS)]


def test_without_an_expectation_nothing_is_counted() -> None:
    state = make_state([make_node("a")])
    state.publish(SOURCE, measured("a", expects=None))
    assert changes(state, lambda s: s.assume(pod("p"), "a")) == [(0, PODS)]
    assert list(state.nodes().reading(SOURCE)) == ["value"]


def test_adding_and_taking_away_leaves_exactly_nothing() -> None:
    state = two()
    carried = [0.1, 0.2, 0.7, 1e9 / 3, 1e15 + 0.3]
    for number, amount in enumerate(carried):
        state.assume(pod(f"p{number}", carries=amount), "a")
    # Whole numbers: 0 + 0 + 1 + 333333333 + 1000000000000000
    assert incoming(state) == [1_000_000_333_333_334.0, 0.0]
    for number in (3, 0, 4, 1, 2):
        state.forget(f"default/p{number}")
    assert incoming(state) == [0.0, 0.0]


# Readings take it up.


@pytest.mark.parametrize(
    ("sampled_at", "left"),
    [
        pytest.param(30, 10.0, id="fully counts a pod that started at the sample"),
        pytest.param(35, 8.0, id="counts three quarters"),  # 10 * (1 - 5/20) = 7.5, rounded
        pytest.param(40, 5.0, id="counts a half"),  # 10 * (1 - 10/20)
        pytest.param(50, 0.0, id="counts nothing of a pod that it fully measured"),
        pytest.param(59, 0.0, id="counts nothing of an older one"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False], ids=["the first reading", "a later reading"])
def test_a_reading(is_first: bool, sampled_at: float, left: float) -> None:
    state = make_state([make_node("a"), make_node("b")], [started(pod("p", on="b"), 30)])
    if not is_first:
        state.publish(SOURCE, measured("a", "b"))
        assert incoming(state) == [0.0, 10.0]
    published = measured("a", "b", sampled_at=sampled_at)
    assert changes(state, lambda s: s.publish(SOURCE, published)) == [(EVERY_ROW, READING)]
    assert incoming(state) == [0.0, left]


def test_a_pod_that_starts_is_taken_up_by_the_next_reading_and_not_before() -> None:
    state = two()
    state.assume(pod("p"), "b")
    running = started(bound(pod("p"), "b"), 30)
    assert changes(state, lambda s: s.place(running)) == []
    assert incoming(state) == [0.0, 10.0]
    state.publish(SOURCE, measured("a", "b", sampled_at=40))
    assert incoming(state) == [0.0, 5.0]
    state.publish(SOURCE, measured("a", "b", sampled_at=50))
    assert incoming(state) == [0.0, 0.0]


def test_what_was_measured_whole_is_not_looked_at_again() -> None:
    state = two(started(pod("p", on="b"), 30))
    state.publish(SOURCE, measured("a", "b", sampled_at=50))
    ledger = state.ledgers.ledger(SOURCE)
    assert ledger is not None
    assert ledger.uids == ()


def test_what_was_measured_whole_stays_so_whatever_times_a_later_reading_tells() -> None:
    state = two(started(pod("p", on="b"), 30))
    state.publish(SOURCE, measured("a", "b", sampled_at=50))
    state.publish(SOURCE, measured("a", "b", sampled_at=40))
    assert incoming(state) == [0.0, 0.0]


def test_a_pod_measured_whole_stays_so_when_it_restarts_and_its_labels_change() -> None:
    state = two(started(pod("p", on="b"), 10))
    state.publish(SOURCE, measured("a", "b", sampled_at=50))
    running = {"running": {"startedAt": "2026-01-01T00:00:49Z"}}
    status = {
        "phase": "Running",
        "startTime": "2026-01-01T00:00:10Z",
        "containerStatuses": [{"name": "main", "state": running, "restartCount": 1}],
    }
    restarted = pod("p", carries=7, on="b")
    state.place(
        msgspec.structs.replace(restarted, status=msgspec.convert(status, type(restarted.status)))
    )
    assert incoming(state) == [0.0, 0.0]


def test_a_pod_that_went_is_not_looked_for_by_the_next_reading() -> None:
    state = two(pod("p", on="b"))
    state.remove_pod("default/p")
    state.publish(SOURCE, measured("a", "b", sampled_at=40))
    assert incoming(state) == [0.0, 0.0]


def test_a_pod_that_goes_in_the_middle_of_being_measured_is_released_in_full() -> None:
    state = two(started(pod("p", on="b"), 30))
    state.publish(SOURCE, measured("a", "b", sampled_at=37))
    assert incoming(state) == [0.0, 6.0]  # 10 * (1 - 7/20) = 6.5, rounded to even
    state.remove_pod("default/p")
    assert incoming(state) == [0.0, 0.0]


def test_better_estimates_replace_older_ones() -> None:
    state = two(pod("unknown", on="a"), pod("stated", on="a", carries=3))
    assert incoming(state) == [13.0, 0.0]
    state.publish(SOURCE, measured("a", "b", expects=Carries(otherwise=70)))
    assert incoming(state) == [73.0, 0.0]
    state.remove_pod("default/unknown")
    assert incoming(state) == [3.0, 0.0]


def test_a_reading_that_expects_nothing_any_more_forgets_what_was_counted() -> None:
    state = two(pod("p", on="a"))
    state.publish(SOURCE, measured("a", "b", expects=None))
    assert changes(state, lambda s: s.remove_pod("default/p")) == [(0, PODS)]


def test_before_the_first_sample_nothing_is_counted_and_then_all_that_was_placed() -> None:
    state = make_state([make_node("a"), make_node("b")], [started(pod("old", on="a"), 1)])
    state.publish(SOURCE, measured("a", "b", sampled_at=math.nan))
    assert changes(state, lambda s: s.assume(pod("new"), "b")) == [(1, PODS)]
    state.publish(SOURCE, measured("a", "b", sampled_at=math.nan))
    ledger = state.ledgers.ledger(SOURCE)
    assert ledger is not None
    assert (ledger.uids, incoming(state)) == ((), [0.0, 0.0])
    state.publish(SOURCE, measured("a", "b", sampled_at=40))
    assert (ledger.uids, incoming(state)) == (("default/new",), [0.0, 10.0])


# Nodes come and go.


def test_a_node_that_comes_later_has_what_is_on_it() -> None:
    state = two(pod("p", on="late"), started(pod("old", on="late"), 0))
    assert incoming(state) == [0.0, 0.0]
    state.publish(SOURCE, measured("a", "b", sampled_at=30))
    assert changes(state, lambda s: s.add_node(make_node("late"))) == [(2, ROW)]
    assert incoming(state) == [0.0, 0.0, 10.0]
    assert state.nodes().reading(SOURCE)["value"].tolist() == [100.0, 100.0, -1.0]


def test_a_pod_on_a_node_that_is_not_known_is_released_without_a_row() -> None:
    state = two(pod("p", on="late"))
    assert changes(state, lambda s: s.remove_pod("default/p")) == []
    state.add_node(make_node("late"))
    assert incoming(state) == [0.0, 0.0, 0.0]


def test_a_node_that_goes_takes_its_entries_along_and_the_last_row_keeps_its_own() -> None:
    state = two(pod("p", on="a"), pod("q", on="b", carries=3))
    state.remove_node("a")
    assert incoming(state) == [3.0]
    state.remove_pod("default/q")
    assert incoming(state) == [0.0]
    state.add_node(make_node("a"))
    assert incoming(state) == [0.0, 10.0]
    state.remove_pod("default/p")
    assert incoming(state) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("start", "left"),
    [
        pytest.param(30, 5.0, id="in part"),  # 10 * (1 - (40-30)/20)
        pytest.param(10, 0.0, id="whole"),
    ],
)
def test_a_pod_that_was_measured_before_its_node_came_is_released_as_it_was_counted(
    start: int, left: float
) -> None:
    state = two()
    state.publish(SOURCE, measured("a", "b", sampled_at=40))
    state.place(pod("p", on="late"))
    state.place(started(pod("p", on="late"), start))
    state.add_node(make_node("late"))
    assert incoming(state) == [0.0, 0.0, left]
    state.remove_pod("default/p")
    assert incoming(state) == [0.0, 0.0, 0.0]


def test_the_table_grows_with_what_is_counted() -> None:
    state = two(pod("p", on="b"))
    for number in range(100):
        state.add_node(make_node(f"n{number}"))
    state.assume(pod("q", carries=3), "n99")
    assert [(row, each) for row, each in enumerate(incoming(state)) if each] == [
        (1, 10.0),
        (101, 3.0),
    ]
    state.publish(SOURCE, Reading(of_others={"new": 5.0}))
    assert state.nodes().reading(SOURCE)["new"].tolist() == [5.0] * 102


# Two sources.


def test_each_source_counts_by_itself() -> None:
    state = two()
    state.publish("other", measured("a", "b", sampled_at=40, expects=Carries(otherwise=7)))
    state.place(started(pod("p", on="b"), 30))
    # The first has measured nothing of it, the other the half of 7: 3.5, rounded to even.
    assert (incoming(state), incoming(state, "other")) == ([0.0, 10.0], [0.0, 4.0])
    state.publish(SOURCE, measured("a", "b", sampled_at=59))
    assert (incoming(state), incoming(state, "other")) == ([0.0, 0.0], [0.0, 4.0])
    state.remove_pod("default/p")
    assert (incoming(state), incoming(state, "other")) == ([0.0, 0.0], [0.0, 0.0])


def test_a_source_without_an_expectation_does_not_hide_another() -> None:
    state = make_state([make_node("a"), make_node("b")])
    state.publish("usage", measured("a", "b", expects=None))
    state.publish(SOURCE, measured("a", "b"))
    state.publish("later", measured("a", "b", expects=None))
    assert changes(state, lambda s: s.assume(pod("p"), "b")) == [(1, PODS | READING)]
    assert incoming(state) == [0.0, 10.0]


# In thought only.


def test_pods_that_are_imagined_count_where_they_are_imagined() -> None:
    state = two(pod("p", on="a"))
    hypothetical = state.nodes().with_pods({1: [pod("x"), pod("y", carries=3)]})
    assert incoming(hypothetical) == [10.0, 13.0]
    assert incoming(hypothetical.take(np.array([1]))) == [13.0]
    assert incoming(state) == [10.0, 0.0]


def test_an_imagined_pod_counts_whole_however_long_it_ran() -> None:
    state = two()
    state.publish(SOURCE, measured("a", "b", sampled_at=59))
    assert incoming(state.nodes().with_pods({0: [started(pod("x"), 1)]})) == [10.0, 0.0]


@pytest.mark.parametrize(
    ("removed", "left"),
    [
        pytest.param({0: ["default/p"]}, [4.0, 3.0], id="subtracts what is counted for a pod"),
        pytest.param({0: ["default/p", "default/half"]}, [0.0, 3.0], id="subtracts several pods"),
        pytest.param({0: ["default/whole"]}, [14.0, 3.0], id="leaves what is measured"),
        pytest.param({0: ["default/q"]}, [14.0, 3.0], id="leaves what is on another node"),
        pytest.param({0: ["nobody"]}, [14.0, 3.0], id="ignores an unknown pod"),
        pytest.param({1: ["default/q"]}, [14.0, 0.0], id="subtracts on the given row only"),
    ],
)
def test_the_table_without_a_pod(removed: dict[int, list[str]], left: list[float]) -> None:
    state = two(
        pod("p", on="a"),
        started(pod("half", on="a", carries=8), 30),
        started(pod("whole", on="a"), 1),
        pod("q", on="b", carries=3),
    )
    state.publish(SOURCE, measured("a", "b", sampled_at=40))
    assert incoming(state) == [14.0, 3.0]  # 10 + 8/2 + 0, 3
    assert incoming(state.nodes().without(removed)) == left


def test_a_pod_may_be_imagined_and_taken_away_again() -> None:
    state = two()
    hypothetical = state.nodes().with_pods({0: [pod("x"), pod("y", carries=3)]})
    assert incoming(hypothetical.without({0: ["default/x"]})) == [3.0, 0.0]


def test_what_a_pod_would_add() -> None:
    nodes = two().nodes()
    assert nodes.expected(SOURCE, pod("x", carries=3)) == {"in": 3.0, "out": 6.0}
    assert nodes.expected("nobody measures this", pod("x")) == {}


def test_labels_that_change_what_is_expected_of_a_pod_change_what_is_counted() -> None:
    def labelled(**labels: str) -> Pod:
        one = bound(pod("p"), "b")
        return msgspec.structs.replace(
            one, metadata=msgspec.structs.replace(one.metadata, labels=labels)
        )

    state = two()
    state.assume(pod("p", carries=5), "b")
    assert incoming(state) == [0.0, 5.0]
    zoned = labelled(**{"in": "5", "zone": "z"})
    assert changes(state, lambda s: s.place(zoned)) == [(1, LABELS)]
    assert incoming(state) == [0.0, 5.0]
    more = labelled(**{"in": "7"})
    assert changes(state, lambda s: s.place(more)) == [(1, LABELS | READING)]
    assert incoming(state) == [0.0, 7.0]
    state.remove_pod("default/p")
    assert incoming(state) == [0.0, 0.0]


@pytest.mark.parametrize("carries", [1e30, math.inf])
def test_a_pod_that_expects_too_much_counts_the_most_and_leaves_nothing(carries: float) -> None:
    state = make_state([make_node("a")])
    state.publish(SOURCE, measured("a"))
    state.assume(pod("small", carries=3.0), "a")
    state.assume(pod("huge", carries=carries), "a")
    assert state.nodes().reading(SOURCE)["in"].tolist() == [2.0**50 + 3]
    hypothetical = state.nodes().with_pods({0: [pod("more", carries=carries)]})
    assert hypothetical.reading(SOURCE)["in"].tolist() == [2.0**51 + 3]
    state.forget("default/huge")
    assert state.nodes().reading(SOURCE)["in"].tolist() == [3.0]
