"""NetworkTraffic: prefers nodes whose network is quiet."""

from typing import Any

import pytest

from lowtide.framework.decision import Decision
from lowtide.framework.verdicts import Verdicts
from lowtide.plugins.network_traffic import NetworkTraffic, NetworkTrafficArgs
from lowtide.readings.columns import traffic_columns
from lowtide.readings.reading import NodeReading, State, TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile, make_state

FRESH = State.FRESH


def fresh(value: float, capacity: float | None = None) -> NodeReading:
    return NodeReading(value=value, at=0.0, state=FRESH, capacity_bytes_per_second=capacity)


def untrusted(value: float, state: State) -> NodeReading:
    return NodeReading(value=value, at=0.0, state=state)


def decided(scoring: Any, by_node: dict[str, NodeReading] | None, names: str = "abcd") -> Decision:
    """What the rule alone decides; without `by_node` nothing was published."""
    rule = NetworkTraffic(NetworkTrafficArgs(scoring=scoring))
    state = make_state([make_node(name) for name in names])
    if by_node is not None:
        reading = TrafficReading(request=rule.request, published_at=0.0, version=1, by_node=by_node)
        state.publish(rule.request, *traffic_columns(reading))
    return decide(make_pod(), Verdicts(make_profile([rule]), state), turn=0, full=True)


def totals(decision: Decision) -> dict[str, int]:
    return {each.node_name: each.total for each in decision.best}


def raw(decision: Decision) -> dict[str, int]:
    return {each.node_name: each.by_rule["NetworkTraffic"].raw for each in decision.best}


def test_relative_is_the_share_of_the_busiest() -> None:
    values = dict(zip("abcd", [1, 15, 10, 13], strict=True))
    decision = decided("relative", {name: fresh(value) for name, value in values.items()})
    # 100 - 100//15, 100 - 1500//15, 100 - 1000//15, 100 - 1300//15
    assert totals(decision) == {"a": 94, "b": 0, "c": 34, "d": 14}
    assert raw(decision) == values
    assert decision.node_name == "a"


@pytest.mark.parametrize("scoring", ["relative", "utilization"])
def test_all_zero_is_all_quiet(scoring: str) -> None:
    assert totals(decided(scoring, {name: fresh(0) for name in "abcd"})) == dict.fromkeys(
        "abcd", 100
    )


@pytest.mark.parametrize("scoring", ["relative", "utilization"])
def test_without_a_reading_there_is_no_opinion(scoring: str) -> None:
    decision = decided(scoring, None)
    assert [each.by_rule for each in decision.best] == [{}] * 4


@pytest.mark.parametrize("scoring", ["relative", "utilization"])
def test_when_nothing_is_known_all_are_equal(scoring: str) -> None:
    assert len(set(totals(decided(scoring, {})).values())) == 1


def test_utilization_is_the_free_share_of_the_link() -> None:
    decision = decided(
        "utilization",
        {
            "a": fresh(25, capacity=100),
            "b": fresh(25, capacity=1000),
            "c": fresh(1, capacity=1000),
            "d": fresh(200, capacity=100),
        },
    )
    # 100 - ceil(25), 100 - ceil(2.5), 100 - ceil(0.1), more than full counts as full
    assert totals(decision) == {"a": 75, "b": 97, "c": 99, "d": 0}


@pytest.mark.parametrize("percent", [7, 14, 28, 29, 55, 56, 57, 58])
def test_a_whole_percentage_is_not_rounded_up_to_the_next(percent: int) -> None:
    decision = decided("utilization", {"a": fresh(percent, capacity=100)}, names="a")
    assert totals(decision) == {"a": 100 - percent}


def test_utilization_without_a_capacity_takes_the_busiest_for_full() -> None:
    decision = decided(
        "utilization", {"a": fresh(5), "b": fresh(20), "c": fresh(0), "d": fresh(10)}
    )
    # 100 - 5*100/20, 100 - 20*100/20, 100 - 0, 100 - 10*100/20
    assert totals(decision) == {"a": 75, "b": 0, "c": 100, "d": 50}


@pytest.mark.parametrize("state", [State.STALE, State.MISSING, State.IMPLAUSIBLE])
def test_relative_takes_what_is_not_trusted_for_average(state: State) -> None:
    by_node = {"a": fresh(0), "b": fresh(20), "c": untrusted(1000, state)}
    # c and d count as (0 + 20) / 2 = 10: 100 - 10*100//20
    assert totals(decided("relative", by_node)) == {"a": 100, "b": 0, "c": 50, "d": 50}


@pytest.mark.parametrize("state", [State.STALE, State.MISSING, State.IMPLAUSIBLE])
def test_utilization_takes_what_is_not_trusted_for_average(state: State) -> None:
    by_node = {
        "a": fresh(10, capacity=100),
        "b": fresh(300, capacity=1000),
        "c": untrusted(1000, state),
    }
    # c and d count as (10 % + 30 %) / 2 = 20 %
    assert totals(decided("utilization", by_node)) == {"a": 90, "b": 70, "c": 80, "d": 80}


def test_what_was_just_placed_counts_as_traffic() -> None:
    placed = NodeReading(value=10, at=0.0, state=FRESH, expected=10.0)
    assert totals(decided("relative", {"a": placed, "b": fresh(40)}, names="ab")) == {
        "a": 50,  # 100 - (10 + 10)*100//40
        "b": 0,
    }


def test_enormous_traffic_does_not_overflow() -> None:
    assert totals(decided("relative", {"a": fresh(1e300), "b": fresh(0)}, names="ab")) == {
        "a": 0,
        "b": 100,
    }


# Args.


def test_the_request_follows_from_the_args() -> None:
    args = NetworkTrafficArgs(
        prometheus_address="http://prometheus:9090",
        devices=["eth0", "bond.*"],
        window="5m",
        poll_interval="30s",
        measure="increase",
        direction="receive",
    )
    rule = NetworkTraffic(args)
    assert rule.request == TrafficRequest(
        prometheus_address="http://prometheus:9090",
        devices=("eth0", "bond.*"),
        window_seconds=300,
        measure="increase",
        direction="receive",
        every_seconds=30,
        stale_after_seconds=120,  # four polls, at least 60 seconds
    )
    assert rule.readings == (rule.request,)
    assert (list(args.problems()), list(NetworkTrafficArgs().problems())) == ([], [])


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("1m", 60), ("2h", 7200)])
def test_a_window(text: str, seconds: int) -> None:
    assert NetworkTrafficArgs(window=text).request().window_seconds == seconds


@pytest.mark.parametrize("text", ["", "5", "0s", "1.5m", "-1m", "1d", "1m ", "soon", "1٣s"])
def test_a_window_is_refused(text: str) -> None:
    told = f"must be a time such as 30s, 1m or 1h, not {text!r}"
    assert list(NetworkTrafficArgs(window=text).problems()) == [("window", told)]
    assert list(NetworkTrafficArgs(poll_interval=text).problems()) == [("pollInterval", told)]


def test_a_device_must_be_a_regular_expression() -> None:
    args = NetworkTrafficArgs(devices=["eth0", "eth("])
    assert list(args.problems()) == [
        (
            "devices",
            "'eth(' is not a regular expression: missing ), unterminated subpattern at position 3",
        )
    ]
