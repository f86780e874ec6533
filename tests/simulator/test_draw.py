"""Draws: the same seed draws the same, each part from its own chance, as the file says."""

import math
from dataclasses import fields

import numpy as np
import pytest

from lowtide.scenario.simulation import Simulation, simulation_from
from lowtide.simulator.draw import Draw, DrawnPods, draw

TEXT = """
nodes:
- {count: 40, links: [1G, 10G], background: {share: [0.1, 0.3]}}
- {count: 5, links: [25G]}
owners:
- {count: 20, pods: 4000, traffic: {median: 240M, sigma: 1, podSigma: 0.5}}
- {count: 2, pods: 10, traffic: {median: 8M, sigma: 0, podSigma: 0, transmit: 0.5}, lifetime: 100s}
arrivals: {over: 60s}
"""


def simulation(*changes: tuple[str, str]) -> Simulation:
    text = TEXT
    for before, after in changes:
        text = text.replace(before, after)
    return simulation_from(text, file="t.yaml")


def plain(thing: object) -> object:
    """Values that compare as a whole."""
    if isinstance(thing, np.ndarray):
        return thing.tolist()
    if hasattr(thing, "__dataclass_fields__"):
        return {each.name: plain(getattr(thing, each.name)) for each in fields(thing)}  # type: ignore[arg-type]
    return thing


def test_the_same_seed_draws_the_same() -> None:
    assert plain(draw(simulation(), 7)) == plain(draw(simulation(), 7))


def test_another_seed_draws_another_world() -> None:
    one, other = draw(simulation(), 7), draw(simulation(), 8)
    assert not np.array_equal(one.background.level, other.background.level)
    assert not np.array_equal(one.pods.receive, other.pods.receive)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([("arrivals:", "knowledge: seen\narrivals:")], id="what is known before"),
        pytest.param([("arrivals:", "knowledge: annotated\narrivals:")], id="what pods state"),
        pytest.param([("[1G, 10G]", "[2G, 20G]")], id="how fast links are"),
    ],
)
def test_pods_do_not_depend_on(changes: list[tuple[str, str]]) -> None:
    assert plain(draw(simulation(*changes), 3).pods) == plain(draw(simulation(), 3).pods)


def test_every_node_draws_a_link_and_a_background() -> None:
    drawn = draw(simulation(), 1)
    assert set(drawn.capacity[:40].tolist()) == {125e6, 1.25e9}
    assert drawn.capacity[40:].tolist() == [3.125e9] * 5
    first, second = drawn.background.level[:40], drawn.background.level[40:]
    assert (first.min() >= 0.1, first.max() <= 0.3, second.tolist()) == (True, True, [0.0] * 5)


def test_traffic_is_log_normal_around_owners_and_their_means() -> None:
    drawn = [draw(simulation(), seed).pods for seed in range(50)]
    # 200 pods of each of 1000 owners
    by_owner = [pods.receive[pods.owner == owner] for pods in drawn for owner in range(20)]
    spreads = [float(np.log(of_owner).std()) for of_owner in by_owner]
    assert round(sum(spreads) / len(spreads), 2) == 0.5
    means = np.log([of_owner.mean() for of_owner in by_owner])
    # ln 30e6 = 17.2
    assert (round(float(means.mean()), 1), round(float(means.std()), 1)) == (17.2, 1.0)


def test_pods_send_a_share_of_what_they_receive() -> None:
    pods = draw(simulation(), 1).pods
    second = pods.owner >= 20
    assert set(pods.receive[second].tolist()) == {1e6}
    assert set(pods.transmit[second].tolist()) == {0.5e6}
    assert pods.transmit[~second].tolist() == pods.receive[~second].tolist()


def test_pods_come_in_order_and_stay_unless_they_have_a_lifetime() -> None:
    pods = draw(simulation(), 1).pods
    assert pods.arrives_at.tolist() == sorted(pods.arrives_at.tolist())
    assert (pods.arrives_at[0] >= 0, pods.arrives_at[-1] <= 60) == (True, True)
    assert set(pods.lives_for[pods.owner < 20].tolist()) == {math.inf}
    assert all(0 < lives_for < math.inf for lives_for in pods.lives_for[pods.owner >= 20].tolist())


def test_all_at_once_is_all_at_zero() -> None:
    pods = draw(simulation(("60s", "0s")), 1).pods
    assert set(pods.arrives_at.tolist()) == {0.0}


def test_owners_may_bring_all_their_pods_at_once() -> None:
    pods = draw(simulation(("over: 60s", "over: 60s, by: owner")), 1).pods
    times = {
        owner: set(pods.arrives_at[pods.owner == owner].tolist()) for owner in pods.owner.tolist()
    }
    assert {len(of_owner) for of_owner in times.values()} == {1}
    assert len(set.union(*times.values())) == 22


@pytest.mark.parametrize(
    ("knowledge", "count"),
    [
        pytest.param("unknown", 0, id="nobody where nothing is known"),
        pytest.param("annotated", 0, id="nobody where pods tell themselves"),
        pytest.param("seen", 4010, id="as many as will come where owners were seen"),
    ],
)
def test_before_the_beginning_ran(knowledge: str, count: int) -> None:
    drawn = draw(simulation(("arrivals:", f"knowledge: {knowledge}\narrivals:")), 2)
    assert len(drawn.earlier) == count
    if count:
        assert owners(drawn.earlier) == owners(drawn.pods)
        assert not np.array_equal(np.sort(drawn.earlier.receive), np.sort(drawn.pods.receive))


def owners(pods: DrawnPods) -> list[int]:
    return sorted(pods.owner.tolist())


def shares(drawn: Draw, at: float) -> list[float]:
    return drawn.background.shares(at).tolist()


def test_a_background_without_swing_and_noise_stays() -> None:
    drawn = draw(simulation(), 1)
    assert drawn.background.changes is False
    assert shares(drawn, 0.0) == shares(drawn, 5000.0) == drawn.background.level.tolist()


def test_a_background_swings_around_its_level() -> None:
    swinging = simulation(("0.3]}", "0.3], swing: 0.5, period: 1h}"))
    drawn = draw(swinging, 1)
    level = drawn.background.level[:40]
    course = np.array([drawn.background.shares(60.0 * minute)[:40] for minute in range(60)])
    # A sine's highest and lowest of 60 points lie within 0.2 % of 1.5 and 0.5 times its middle.
    assert np.allclose(course.max(axis=0), 1.5 * level, rtol=2e-3)
    assert np.allclose(course.min(axis=0), 0.5 * level, rtol=2e-3)
    assert np.allclose(course.mean(axis=0), level)


def test_noise_is_drawn_anew_each_minute_and_repeats() -> None:
    drawn = draw(simulation(("0.3]}", "0.3], noise: 0.2}")), 1)
    assert shares(drawn, 0.0) == shares(drawn, 59.9)
    assert shares(drawn, 0.0) != shares(drawn, 60.0)
    assert shares(drawn, -90.0) == shares(drawn, -120.0)
    assert shares(drawn, 60.0) == shares(draw(simulation(("0.3]}", "0.3], noise: 0.2}")), 1), 60.0)


def test_a_background_is_never_more_than_the_link() -> None:
    drawn = draw(simulation(("[0.1, 0.3]}", "[0.9, 1.0], swing: 1, noise: 2}")), 1)
    course = np.array([drawn.background.shares(60.0 * minute) for minute in range(100)])
    assert (course.min() >= 0.0, course.max()) == (True, 1.0)
