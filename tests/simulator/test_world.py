"""The world's rates and counters, by hand."""

import numpy as np
import pytest

from lowtide.simulator.world import UPTIME_SECONDS, World

BEGAN_AT = 1000.0


def world() -> World:
    return World(np.array([100.0, 1000.0]), np.array([0.5, 0.1]), began_at=BEGAN_AT)


def counters(world: World, *moments: float) -> list[list[float]]:
    """Since the world began."""
    before = np.array([50.0, 100.0]) * UPTIME_SECONDS
    return (world.counters_at(np.array(moments)) - before).tolist()


def test_nodes_have_counted_their_background_for_long() -> None:
    assert (
        world().counters_at(np.full(2, BEGAN_AT)).tolist() == [[129_600_000.0, 259_200_000.0]] * 2
    )


def test_counters_are_the_sums_of_rates() -> None:
    it = world()
    it.advance(BEGAN_AT + 10)  # 500, 1000
    it.add_pod(0, 20.0, 5.0)
    it.advance(BEGAN_AT + 14)  # 4 * 70, 4 * 55; 4 * 100
    it.set_background(np.array([0.1, 0.2]))
    # node 0 at +16: 2 * (10 + 20), 2 * (10 + 5); node 1 at +15: 1 * 200
    assert counters(it, BEGAN_AT + 16, BEGAN_AT + 15) == [[840.0, 1600.0], [750.0, 1600.0]]


def test_a_pod_that_ends_leaves_the_others_traffic() -> None:
    it = world()
    it.add_pod(1, 0.1, 0.2)
    it.add_pod(1, 0.2, 0.4)
    it.remove_pod(1, 0.1, 0.2)
    it.remove_pod(1, 0.2, 0.4)
    assert it.rates.tolist() == [[50.0, 100.0]] * 2


@pytest.mark.parametrize(
    ("receive", "transmit", "share"),
    [
        pytest.param(30.0, 10.0, 0.8, id="what is received where that is more"),
        pytest.param(10.0, 40.0, 0.9, id="what is sent where that is more"),
        pytest.param(150.0, 0.0, 2.0, id="more than the link can carry"),
    ],
)
def test_utilization_is(receive: float, transmit: float, share: float) -> None:
    it = world()
    it.add_pod(0, receive, transmit)
    assert it.utilization.tolist() == [share, 0.1]
    assert it.bytes_per_second == share * 100 + 100
