"""The meter: what it asks and when, and what it remembers between polls."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pytest
from tests.readings.conftest import NODE_A, NOW, make_series
from tests.readings.conftest import make_meter as meter

from lowtide.objects.node import Node
from lowtide.readings.meter import TrafficMeter
from lowtide.readings.reading import TrafficReading
from lowtide.readings.series import Series
from lowtide.testing import make_node

A, B = NODE_A, make_node("b")
TRAFFIC = {"receive"}
LINKS = {"uname", "speed", "flags", "parent", "number"}
PODS = {"pod_receive", "pod_transmit"}


def answer(
    asked: Mapping[str, str],
    nodes: Sequence[Node],
    now: float = NOW,
    *,
    except_for: AbstractSet[str] = frozenset(),
) -> dict[str, list[Series]]:
    """Something for each question, but for those that fail."""
    return {
        name: [make_series(100.0, node=node.name, at=now) for node in nodes]
        for name in asked
        if name not in except_for
    }


def poll(
    meter: TrafficMeter,
    now: float = NOW,
    nodes: Sequence[Node] = (A, B),
    *,
    except_for: AbstractSet[str] = frozenset(),
) -> set[str]:
    """Asks and answers what is due; the names of what was asked."""
    asked = meter.due(now, nodes)
    meter.take(answer(asked, nodes, now, except_for=except_for), nodes, (), now)
    return set(asked)


# What is asked when.


def test_everything_is_asked_at_first() -> None:
    assert poll(meter()) == TRAFFIC | LINKS | PODS


def test_traffic_is_asked_at_each_poll_pods_each_minute_links_every_five() -> None:
    one = meter()
    asked = {seconds: poll(one, NOW + seconds) for seconds in range(0, 316, 15)}
    assert {seconds for seconds, names in asked.items() if names >= TRAFFIC} == set(asked)
    assert [seconds for seconds, names in asked.items() if names & PODS] == [
        *(0, 60, 120, 180, 240, 300)
    ]
    assert [seconds for seconds, names in asked.items() if names & LINKS] == [0, 300]
    assert asked[300] == TRAFFIC | LINKS | PODS


def test_links_are_asked_each_minute_while_a_node_is_not_measured() -> None:
    one, asked = meter(), {}
    for seconds in range(0, 121, 15):
        asked[seconds] = one.due(NOW + seconds, (A, B)).keys()
        one.take(
            answer(one.due(NOW + seconds, (A, B)), (A,), NOW + seconds), (A, B), (), NOW + seconds
        )
    assert [seconds for seconds, names in asked.items() if names & LINKS] == [0, 60, 120]


@pytest.mark.parametrize(
    ("nodes", "is_asked"),
    [
        pytest.param([A, B, make_node("c")], True, id="a node comes"),
        pytest.param([A], True, id="a node goes"),
        pytest.param([A, make_node("c")], True, id="a node takes another's place"),
        pytest.param([make_node("a", cpu="8"), B], False, id="only a node's object changes"),
    ],
)
def test_links_are_asked_again_when(nodes: list[Node], is_asked: bool) -> None:
    one = meter()
    poll(one)
    assert poll(one, NOW + 15, nodes) == (TRAFFIC | LINKS if is_asked else TRAFFIC)
    assert poll(one, NOW + 30, nodes) == TRAFFIC


def test_a_node_that_comes_while_nothing_is_answered_is_asked_about_later() -> None:
    one = meter()
    poll(one, NOW, [A])
    poll(one, NOW + 15, [A, B], except_for=TRAFFIC | LINKS | PODS)
    assert poll(one, NOW + 30, [A, B]) == TRAFFIC | LINKS


def test_what_was_not_answered_is_asked_again_after_a_minute_and_keeps_nothing_waiting() -> None:
    one, unanswered = meter(), {"speed", "pod_transmit"}
    asked = [poll(one, NOW + at, except_for=unanswered) for at in (0, 15, 30, 45, 60, 75)]
    assert asked == [
        TRAFFIC | LINKS | PODS,
        TRAFFIC,
        TRAFFIC,
        TRAFFIC,
        {*TRAFFIC, "speed", *PODS},
        TRAFFIC,
    ]
    assert poll(one, NOW + 120) == {*TRAFFIC, "speed", *PODS}
    assert poll(one, NOW + 180) == TRAFFIC | PODS


def test_after_an_outage_everything_is_asked_at_once() -> None:
    one = meter()
    poll(one, except_for=TRAFFIC | LINKS | PODS)
    assert poll(one, NOW + 15) == TRAFFIC | LINKS | PODS


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"direction": "max"}, {"receive", "transmit", *LINKS, *PODS}, id="max"),
        pytest.param({"match_label": "node"}, TRAFFIC | LINKS - {"uname"} | PODS, id="no uname"),
        pytest.param({"measure": "sumOverTime"}, TRAFFIC | LINKS, id="no pods for no rates"),
        pytest.param({"learns_from_pods": False}, TRAFFIC | LINKS, id="no pods if not wanted"),
        pytest.param({"template": "x"}, {"value", "uname", "speed", *PODS}, id="a user's query"),
    ],
)
def test_at_most_nine_questions(fields: dict[str, Any], want: set[str]) -> None:
    assert poll(meter(**fields)) == want
    assert len(want) <= 9


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_the_questions_do_not_grow_with_nodes_and_pods(count: int) -> None:
    nodes = [make_node(f"n{number}") for number in range(count)]
    one = meter()
    asked = one.due(NOW, nodes)
    assert (len(asked), len(str(asked))) == (8, len(str(meter().due(NOW, [A]))))


# How often targets are scraped.


def probed(one: TrafficMeter, *gaps: float, now: float = NOW) -> bool:
    """What targets scraped so far apart make of it."""
    times = [[NOW - 900 + gap * number for number in range(4)] for gap in gaps]
    return one.probed(times, now)


def test_the_probe_asks_for_the_samples_of_a_few_targets() -> None:
    one = meter()
    assert one.probe(NOW) is None  # no target is known
    series = [
        Series({"node": "a", "instance": f"h{n}:9100", "device": "eth0"}, 1.0, NOW)
        for n in range(100)
    ]
    one.take({"receive": series}, [A], (), NOW)
    assert one.probe(NOW) == (
        'node_network_receive_bytes_total{instance=~"h0:9100|h34:9100|h68:9100",'
        'device=~"eth0"}[15m]'
    )


@pytest.mark.parametrize("answered", ["flags", "speed"])
def test_where_the_window_is_too_short_for_any_rate_the_probe_knows_targets_from_their_links(
    answered: str,
) -> None:
    one = meter(direction="transmit")
    labels = {"node": "a", "instance": "h:9100", "device": "eth0"}
    one.take({"transmit": [], answered: [Series(labels, 1.0, NOW)]}, [A], (), NOW)
    assert one.probe(NOW) == (
        'node_network_transmit_bytes_total{instance=~"h:9100",device=~"eth0"}[15m]'
    )


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"template": "x"}, id="a query of the user's own"),
        pytest.param({"measure": "sumOverTime"}, id="a sum over time, which is no rate"),
    ],
)
def test_there_is_nothing_to_probe_for(fields: dict[str, Any]) -> None:
    one = meter(**fields)
    poll(one)
    assert one.probe(NOW) is None


def test_the_probe_is_due_every_hour() -> None:
    one = meter()
    poll(one)
    probed(one, 15)
    assert one.probe(NOW + 3599) is None
    assert one.probe(NOW + 3600) is not None


@pytest.mark.parametrize(
    ("newest", "lag_seconds"),
    [
        pytest.param([NOW, NOW], 5.0, id="half a scrape where all were scraped just now"),
        pytest.param([NOW - 6, NOW - 8], 7.0, id="the mean age of the newest samples"),
    ],
)
def test_a_reading_is_older_than_its_answer_by(newest: list[float], lag_seconds: float) -> None:
    one = meter()
    one.probed([[last - 20, last - 10, last] for last in newest], NOW)
    reading = one.take({"receive": [make_series(1)]}, [A], (), NOW)
    assert reading.sampled_at == NOW - lag_seconds


@pytest.mark.parametrize("times", [[], [[]], [[NOW]], [[NOW], [NOW]]])
def test_a_probe_that_tells_nothing_is_repeated(times: list[list[float]]) -> None:
    one = meter()
    poll(one)
    assert not one.probed(times, NOW)
    assert one.probe(NOW + 15) is not None


@pytest.mark.parametrize(
    ("gaps", "window_seconds"),
    [
        pytest.param([5], 60, id="is kept where it holds more than four scrapes"),
        pytest.param([15], 60, id="is kept where it holds exactly four"),
        pytest.param([15.004], 60, id="is kept where scrapes are a hair late"),
        pytest.param([20], 80, id="is widened to four scrapes"),
        pytest.param([60.02], 241, id="is widened to whole seconds"),
        pytest.param([15, 15, 300], 60, id="goes by most targets, not by the worst"),
    ],
)
def test_a_window_of_a_minute(gaps: list[float], window_seconds: int) -> None:
    one = meter()
    assert probed(one, *gaps) == (window_seconds != 60)
    assert one.window_seconds == window_seconds
    assert f"[{window_seconds}s]".replace("60s", "1m") in one.due(NOW, [A])["receive"]


def test_it_is_said_once_and_the_window_does_not_shrink() -> None:
    one = meter()
    assert [probed(one, 30), probed(one, 30), probed(one, 15)] == [True, False, False]
    assert one.window_seconds == 120


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"measure": "increase"}, id="an increase, whose unit it is"),
        pytest.param({"measure": "sumOverTime"}, id="a sum over time"),
        pytest.param({"template": "x"}, id="a user's own query"),
    ],
)
def test_the_window_stays_as_it_is_for(fields: dict[str, Any]) -> None:
    one = meter(**fields)
    assert not one.scrapes_are_apart(60.0, lag_seconds=30.0)
    assert one.window_seconds == 60


def test_a_reading_is_half_a_scrape_older_than_its_answer() -> None:
    one = meter()
    one.scrapes_are_apart(10.0, lag_seconds=5.0)
    reading = one.take({"receive": [make_series(1)]}, [A], (), NOW)
    assert (reading.sampled_at, reading.node_reading("a").at) == (NOW - 5, NOW)


@pytest.mark.parametrize(
    ("apart", "want"),
    [
        pytest.param(None, 60, id="the whole window while nothing is known of scrapes"),
        pytest.param(10.0, 50, id="the window but for one scrape"),
        pytest.param(30.0, 90, id="the widened window but for one scrape"),  # 4 * 30 - 30
    ],
)
def test_a_rate_is_taken_over(apart: float | None, want: float) -> None:
    one = meter()
    if apart is not None:
        one.scrapes_are_apart(apart, lag_seconds=apart / 2)
    assert one.take({"receive": [make_series(1)]}, [A], (), NOW).window_seconds == want


# What is kept when answers fail.


def states(reading: TrafficReading) -> dict[str, str]:
    return {name: each.state.value for name, each in reading.by_node()}


def test_without_any_answer_what_is_known_ages() -> None:
    one = meter()
    one.take({"receive": [make_series(5)]}, [A], (), NOW)
    found = [one.take({}, [A], (), NOW + seconds) for seconds in (30, 60, 75)]
    assert [reading.node_reading("a").value for reading in found] == [5, 5, 5]
    assert [states(reading)["a"] for reading in found] == ["fresh", "fresh", "stale"]
    assert [reading.published_at for reading in found] == [NOW + 30, NOW + 60, NOW + 75]


def test_without_any_answer_from_the_start_every_node_is_missing() -> None:
    reading = meter().take({}, [A, B], (), NOW)
    assert states(reading) == {"a": "missing", "b": "missing"}
    assert math.isnan(reading.sampled_at)


def test_a_direction_that_fails_keeps_its_last_answer_with_its_time() -> None:
    one = meter(direction="max")
    one.take({"receive": [make_series(5)], "transmit": [make_series(7)]}, [A], (), NOW)
    found = [
        one.take({"receive": [make_series(9, at=NOW + late)]}, [A], (), NOW + late)
        for late in (30, 75)
    ]
    assert [(r.node_reading("a").value, r.node_reading("a").at, states(r)["a"]) for r in found] == [
        (9, NOW, "fresh"),
        (9, NOW, "stale"),
    ]


def test_an_empty_answer_is_an_answer() -> None:
    one = meter()
    one.take({"receive": [make_series(5)]}, [A], (), NOW)
    assert states(one.take({"receive": []}, [A], (), NOW + 15)) == {"a": "missing"}


def test_links_that_are_not_asked_keep_their_last_answer() -> None:
    one = meter()
    answers = {"receive": [make_series(50)], "speed": [make_series(100)]}
    one.take(answers, [A], (), NOW)
    found = one.take({"receive": [make_series(20, at=NOW + 15)]}, [A], (), NOW + 15).node_reading(
        "a"
    )
    assert (found.capacity_bytes_per_second, found.share) == (100, 0.2)


def test_links_that_fail_keep_their_last_answer() -> None:
    one = meter()
    one.take({"receive": [make_series(50)], "speed": [make_series(100)]}, [A], (), NOW)
    reading = one.take({"receive": [make_series(20)]}, [A, B], (), NOW + 300)
    assert reading.node_reading("a").share == 0.2


def test_a_node_that_joins_is_matched_with_the_uname_that_is_known() -> None:
    one = meter()
    labels = {"instance": "x:9100", "job": "n"}
    traffic = Series({**labels, "device": "eth0"}, 5.0, NOW)
    uname = Series({**labels, "nodename": "b"}, 1.0, NOW)
    one.take({"receive": [traffic], "uname": [uname]}, [A], (), NOW)
    assert one.take({"receive": [traffic]}, [A, B], (), NOW).node_reading("b").value == 5


def test_a_node_is_matched_anew_when_its_exporter_is_called_otherwise() -> None:
    one = meter()
    traffic = [Series({"instance": "x:9100", "job": "n", "device": "eth0"}, 5.0, NOW)]
    found = []
    for name in ("a", "b"):
        uname = [Series({"instance": "x:9100", "job": "n", "nodename": name}, 1.0, NOW)]
        reading = one.take({"receive": traffic, "uname": uname}, [A, B], (), NOW)
        found.append({each: reading.node_reading(each).value for each in "ab"})
    assert found == [{"a": 5, "b": None}, {"a": None, "b": 5}]


def test_a_node_that_changes_its_address_is_matched_anew() -> None:
    one = meter()
    traffic = [Series({"instance": "10.0.0.2:9100", "device": "eth0"}, 5.0, NOW)]
    first = one.take({"receive": traffic}, [make_node("a", addresses=["10.0.0.1"])], (), NOW)
    second = one.take({"receive": traffic}, [make_node("a", addresses=["10.0.0.2"])], (), NOW)
    assert [first.node_reading("a").value, second.node_reading("a").value] == [None, 5]


# Clocks.


@pytest.mark.parametrize("ahead_seconds", [-3600.0, -1.0, 0.0, 3600.0])
def test_how_far_prometheus_clock_is_from_ours_does_not_matter(ahead_seconds: float) -> None:
    one = meter()
    found = []
    for seconds in (0, 15, 30, 60):
        series = make_series(5, at=NOW + seconds + ahead_seconds)
        answers = {"receive": [series]} if seconds < 30 else {}
        found.append(one.take(answers, [A], (), NOW + seconds).node_reading("a"))
    assert [(each.at, each.state.value) for each in found] == [
        (NOW, "fresh"),
        (NOW + 15, "fresh"),
        (NOW + 15, "fresh"),
        (NOW + 15, "fresh"),
    ]
    assert one.take({}, [A], (), NOW + 76).node_reading("a").state.value == "stale"
    one.probed([[NOW + ahead_seconds + at for at in (40, 50, 60)]], NOW + 76)
    answers = {"receive": [make_series(5, at=NOW + 90 + ahead_seconds)]}
    assert one.take(answers, [A], (), NOW + 90).sampled_at == NOW + 90 - 16


def test_an_answer_that_is_the_same_again_and_again_grows_old() -> None:
    one, answers = meter(), {"receive": [make_series(5, at=NOW - 300)]}
    found = [one.take(answers, [A], (), NOW + 15 * number).node_reading("a") for number in range(6)]
    assert [each.state.value for each in found] == ["fresh"] * 5 + ["stale"]
    # And one that goes on, though by a clock that was set back, is new.
    later = [
        one.take({"receive": [make_series(5, at=at)]}, [A], (), NOW + 500 + at)
        .node_reading("a")
        .state.value
        for at in (15, 30)
    ]
    assert later[-1] == "fresh"


def test_our_clock_being_set_neither_stops_questions_nor_keeps_readings_fresh() -> None:
    one = meter()
    one.due(0.0, [A])
    one.take(answer(one.due(0.0, [A]), [A]), [A], (), NOW, steady_now=0.0)
    assert one.due(60.0, [A]).keys() == TRAFFIC | PODS
    back, further = NOW + 60 - 3600, NOW + 61 - 3600
    found = [
        one.take({}, [A], (), back, steady_now=60.0),
        one.take({}, [A], (), further, steady_now=61.0),
        one.take({"receive": [make_series(5, at=NOW + 75)]}, [A], (), back, steady_now=75.0),
    ]
    assert [
        (each.node_reading("a").at, states(each)["a"], each.published_at) for each in found
    ] == [
        (back - 60, "fresh", back),
        (back - 60, "stale", further),
        (back, "fresh", back),
    ]
