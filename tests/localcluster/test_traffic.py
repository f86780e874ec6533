import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.localcluster import Background, Direction, Link, TrafficModel, demo_nodes
from lowtide.testing.clock import ManualClock

LINK = Link("eth0", 1_000_000)
WAVE = Background(quiet_share=0.1, busy_share=0.9, period_seconds=60, phase=0.25)


def model(clock: ManualClock, background: Background) -> TrafficModel:
    traffic = TrafficModel(clock=clock)
    traffic.add_node("n", [LINK], background, instance="10.0.0.1:9100")
    return traffic


def received(traffic: TrafficModel, moment: float) -> float:
    return traffic.counter_bytes("n", "eth0", Direction.RECEIVE, moment)


@pytest.mark.parametrize("start", [0.0, 17.0, 1_700_000_000.3])
def test_counted_shares_are_the_integral_of_the_share(start: float) -> None:
    steps, seconds = 20_000, 37.0
    width = seconds / steps
    numeric = sum(WAVE.share(start + (step + 0.5) * width) for step in range(steps)) * width
    assert math.isclose(WAVE.share_seconds(start, start + seconds), numeric, rel_tol=1e-6)


def test_short_times_are_counted_exactly_too() -> None:
    start, seconds = 1_700_000_000.0, 2**-10  # exact in a float even this late
    counted = WAVE.share_seconds(start, start + seconds)
    assert math.isclose(counted, WAVE.share(start + seconds / 2) * seconds, rel_tol=1e-6)


@given(
    first=st.floats(1_700_000_000, 1_700_001_000),
    later=st.floats(0.001, 500),
    phase=st.floats(0, 1),
)
def test_counters_never_fall(first: float, later: float, phase: float) -> None:
    background = Background(0.001, 0.9, period_seconds=120, phase=phase)
    traffic = model(ManualClock(first), background)
    assert received(traffic, first + later) >= received(traffic, first)


def test_a_wave_is_busy_at_its_phase_and_quiet_across() -> None:
    assert (WAVE.share(15), round(WAVE.share(45), 6)) == (0.9, 0.1)


def test_pods_add_to_what_is_counted(clock: ManualClock) -> None:
    traffic = model(clock, Background(quiet_share=0.1))
    start = clock()
    traffic.start_pod("p", "n", 50_000, named=("default", "p"))
    clock.advance(seconds=10)
    # (0.1 * 1,000,000 + 50,000) * 10 s
    assert received(traffic, clock()) - received(traffic, start) == pytest.approx(1_500_000)
    assert traffic.bytes_per_second("n", "eth0", Direction.RECEIVE) == 150_000
    traffic.stop_pod("p")
    stopped = clock()
    clock.advance(seconds=10)
    assert received(traffic, clock()) - received(traffic, stopped) == pytest.approx(1_000_000)
    # The past stays as it was.
    assert received(traffic, stopped) - received(traffic, start) == pytest.approx(1_500_000)


def test_a_link_is_never_over_full(clock: ManualClock) -> None:
    traffic = model(clock, Background(quiet_share=0.5, busy_share=0.9, period_seconds=60))
    for index in range(10):
        traffic.start_pod(f"p{index}", "n", 1_000_000, named=("default", f"p{index}"))
    rates = []
    for _ in range(60):
        clock.advance(seconds=1)
        rates.append(traffic.bytes_per_second("n", "eth0", Direction.RECEIVE))
    assert max(rates) <= 1_000_000


def test_background_can_be_changed(clock: ManualClock) -> None:
    traffic = model(clock, Background(quiet_share=0.1))
    start = clock()
    traffic.set_background("n", Background(quiet_share=0.7, transmit_per_receive=0.5))
    clock.advance(seconds=2)
    assert received(traffic, clock()) - received(traffic, start) == pytest.approx(1_400_000)
    assert traffic.bytes_per_second("n", "eth0", Direction.TRANSMIT) == 350_000


def test_a_node_that_is_gone_is_not_measured(clock: ManualClock) -> None:
    traffic = model(clock, WAVE)
    traffic.start_pod("p", "n", 1, named=("default", "p"))
    traffic.remove_node("n")
    traffic.stop_pod("p")
    traffic.start_pod("q", "n", 1, named=("default", "q"))
    assert traffic.names() == []


def test_an_unknown_link_is_named(clock: ManualClock) -> None:
    with pytest.raises(KeyError, match="node n has no link wlan0; it has eth0"):
        model(clock, WAVE).counter_bytes("n", "wlan0", Direction.RECEIVE, clock())


def test_the_demo_has_another_busy_node_every_ten_seconds(clock: ManualClock) -> None:
    traffic = TrafficModel(clock=clock)
    nodes = demo_nodes()
    for node in nodes:
        traffic.add_node(node.name, node.links, node.background, instance=node.name)

    def busiest() -> str:
        def utilisation(name: str) -> float:
            capacity = traffic.links(name)[0].capacity_bytes_per_second
            return traffic.bytes_per_second(name, "eth0", Direction.RECEIVE) / capacity

        return max(traffic.names(), key=utilisation)

    turns = []
    for _ in range(12):
        turns.append(busiest())
        clock.advance(seconds=10)
    assert sorted(turns) == sorted(node.name for node in nodes)
    assert busiest() == turns[0]
