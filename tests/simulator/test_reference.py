"""The reference: beside brute force on small cases, and when it is taken."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowtide.scenario.simulation import simulation_from
from lowtide.simulator.draw import Draw, DrawnPods, FloatArray, draw
from lowtide.simulator.reference import Placement, reference_peak

TEXT = """
nodes:
- {count: 3, links: [1G]}
owners:
- {count: 1, pods: 3, traffic: {median: 400M, sigma: 0, podSigma: 0}}
"""


def best_of_all(demand: FloatArray, capacity: FloatArray, background: FloatArray) -> float:
    found = np.inf
    for nodes in itertools.product(range(len(capacity)), repeat=demand.shape[1]):
        load = np.tile(background * capacity, (2, 1))
        for pod, node in enumerate(nodes):
            load[:, node] += demand[:, pod]
        found = min(found, float((load.max(axis=0) / capacity).max()))
    return found


def placed(demand: FloatArray, capacity: FloatArray, background: FloatArray) -> Placement:
    placement = Placement(demand, capacity, background)
    placement.place_longest_first()
    placement.improve()
    return placement


@st.composite
def cases(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, FloatArray]:
    nodes, pods = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    amounts = st.integers(1, 100).map(float)
    demand = draw(st.lists(st.tuples(amounts, amounts), min_size=pods, max_size=pods))
    capacity = draw(st.lists(st.sampled_from([100.0, 250.0]), min_size=nodes, max_size=nodes))
    shares = st.floats(0, 0.6)
    background = draw(st.lists(shares, min_size=nodes, max_size=nodes))
    return np.array(demand).T, np.array(capacity), np.array(background)


@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_it_is_a_placement_and_nearly_the_best(
    case: tuple[FloatArray, FloatArray, FloatArray],
) -> None:
    demand, capacity, background = case
    placement = placed(*case)
    load = np.tile(background * capacity, (2, 1))
    for pod, node in enumerate(placement.node_of.tolist()):
        load[:, node] += demand[:, pod]
    assert placement.peak == pytest.approx(float((load.max(axis=0) / capacity).max()))
    best = best_of_all(*case)
    # Longest first alone is proved to be within a third on equal links.
    assert best <= placement.peak * (1 + 1e-9)
    assert placement.peak <= best * 4 / 3 + 1e-9


@pytest.mark.parametrize(
    ("demand", "capacity", "background", "peak"),
    [
        pytest.param([3, 3, 2, 2, 2], [10, 10], [0, 0], 0.6, id="swaps what is longest first"),
        pytest.param([5, 5], [10, 100], [0, 0], 0.1, id="fills the fast link"),
        pytest.param([4], [10, 10], [0.5, 0.2], 0.6, id="avoids what is busy already"),
        pytest.param([1], [10, 10], [0.9, 0.0], 0.9, id="cannot undo the background"),
        pytest.param([6, 5, 5, 4, 4], [10, 10], [0, 0], 1.3, id="does what can be done"),
    ],
)
def test_the_placement(
    demand: list[float], capacity: list[float], background: list[float], peak: float
) -> None:
    both = np.array([demand, demand], np.float64)
    placement = placed(both, np.array(capacity, np.float64), np.array(background, np.float64))
    assert placement.peak == pytest.approx(peak)


def test_moves_and_swaps_help() -> None:
    demand = np.array([[3.0, 3, 2, 2, 2]] * 2)
    placement = Placement(demand, np.full(2, 10.0), np.zeros(2))
    placement.place_longest_first()
    before = placement.peak
    placement.improve()
    assert (before, placement.peak) == (pytest.approx(0.7), pytest.approx(0.6))


def test_both_directions_count() -> None:
    """One pod receives, the other sends: they fit on one link together."""
    demand = np.array([[8.0, 0.0, 5.0], [0.0, 8.0, 5.0]])
    assert placed(demand, np.full(2, 10.0), np.zeros(2)).peak == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("change", "peak"),
    [
        # 50 MB/s each on links of 125 MB/s, three nodes
        pytest.param(("", ""), 0.4, id="of pods that stay: all of them"),
        pytest.param(("count: 3", "count: 1"), 1.2, id="of one node: all on it"),
        pytest.param(
            ("podSigma: 0}", "podSigma: 0}, lifetime: 1ms"), 0.4, id="of pods alone: one of them"
        ),
        pytest.param(
            ("[1G]", "[1G], background: {share: [0.9, 0.9]}"), 1.3, id="with the background below"
        ),
    ],
)
def test_the_reference_is(change: tuple[str, str], peak: float) -> None:
    simulation = simulation_from(TEXT.replace(*change), file="t.yaml")
    assert reference_peak(draw(simulation, 1), 240.0) == pytest.approx(peak)


def test_it_is_at_least_the_highest_background() -> None:
    """One light pod beside a background that swings to nearly all of the link."""
    text = TEXT.replace("[1G]", "[1G], background: {share: [0.5, 0.5], swing: 0.9, period: 4m}")
    drawn = draw(simulation_from(text.replace("400M", "1k"), file="t.yaml"), 1)
    course = [drawn.background.shares(60.0 * minute).max() for minute in range(4)]
    assert reference_peak(drawn, 240.0) == pytest.approx(max(course))


def test_it_is_taken_when_most_is_carried() -> None:
    """Pods that are not there together need not share a link."""
    often = TEXT.replace("pods: 3", "pods: 60").replace("count: 3", "count: 1")
    together = simulation_from(often, file="t.yaml")
    apart = simulation_from(
        often.replace("podSigma: 0}", "podSigma: 0}, lifetime: 10s") + "arrivals: {over: 1h}",
        file="t.yaml",
    )
    # 60 * 50 / 125
    assert reference_peak(draw(together, 1), 60.0) == pytest.approx(24.0)
    assert reference_peak(draw(apart, 1), 3600.0) <= 4 * 0.4 + 1e-9


def one_node(*pods: tuple[float, float, float]) -> Draw:
    """Of 125 MB/s; for each pod its MB/s, and from when to when it runs."""
    of_one = TEXT.replace("count: 3", "count: 1")
    drawn = draw(simulation_from(of_one, file="t.yaml"), 1)
    rate, since, until = np.array(sorted(pods, key=lambda pod: pod[1])).T
    owner = np.zeros(len(pods), np.int64)
    return replace(drawn, pods=DrawnPods(owner, 1e6 * rate, 1e6 * rate, since, until - since))


@pytest.mark.parametrize(
    ("pods", "peak"),
    [
        pytest.param([(50, 0, 9), (50, 1, 9), (50, 2, 9)], 1.2, id="all that run together"),
        pytest.param([(50, 0, 9), (50, 0, 9), (75, 20, 29)], 0.8, id="only those that run then"),
        pytest.param([(50, 0, 20), (75, 20, 29)], 0.6, id="none that ends then"),
    ],
)
def test_it_counts(pods: list[tuple[float, float, float]], peak: float) -> None:
    assert reference_peak(one_node(*pods), 60.0) == pytest.approx(peak)


def test_it_is_at_least_what_one_pod_needs() -> None:
    """Six light pods on three nodes carry more than the heavy one that comes when they are gone."""
    three = draw(simulation_from(TEXT, file="t.yaml"), 1)
    light_and_heavy = one_node(*[(30, 0, 9)] * 6, (150, 60, 69)).pods
    # 60 and 150 of 125 MB/s
    assert reference_peak(replace(three, pods=light_and_heavy), 90.0) == pytest.approx(1.2)
