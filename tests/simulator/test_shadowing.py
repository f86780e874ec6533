"""Shadow mode without I/O: pods one after the other, by what was measured."""

from collections import Counter
from dataclasses import replace

import msgspec
from tests.records.kept_decisions import GIGABIT
from tests.scheduler.conftest import all_listed, default_plugins

from lowtide.objects.events import Added, Deleted, Modified
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import NetworkTrafficArgs
from lowtide.readings.columns import SHARE, published
from lowtide.readings.demand import Owners, Traffic
from lowtide.readings.request import TrafficRequest
from lowtide.records.recording import Step
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.events import ReadingPublished
from lowtide.scheduler.shadow import Shadowed
from lowtide.simulator.rerun_report import AsRecorded
from lowtide.simulator.shadowing import Shadowing
from lowtide.testing import make_node, make_pod, make_profile

NODES = [make_node(name) for name in ("busy", "quiet-1", "quiet-2")]


def shadowing() -> tuple[Shadowing, ReadingPublished]:
    plugin = NetworkTraffic(NetworkTrafficArgs())
    made = Shadowing(
        {"lowtide": make_profile([*default_plugins(), plugin], {"NetworkTraffic": 9})}, since=0.0
    )
    for node in NODES:
        made.step(Added(node), 0.0)
    for event in all_listed():
        made.step(event, 0.0)
    gigabits = {"busy": 5, "quiet-1": 1, "quiet-2": 1}
    by_node = {
        name: {"receive": each * GIGABIT, "transmit": each * GIGABIT, "capacity": 10 * GIGABIT}
        for name, each in gigabits.items()
    }
    reading = replace(
        published(traffic_reading(plugin.request, by_node, NODES)),
        sampled_at=0.0,
        window_seconds=60.0,
        expects=Owners().expectation(Traffic(0.0, 0.0)),
    )
    return made, ReadingPublished(plugin.request, reading)


def test_pods_that_would_be_elsewhere_count_there_for_the_next() -> None:
    """Else all would go to one quiet node, and the prediction would be a link that overflows."""
    made, reading = shadowing()
    made.step(reading, 0.0)
    would_be = Counter[str | None]()
    for number in range(8):
        traffic = {"lowtide.dev/traffic": "250M"}
        pod = make_pod(f"pod-{number}", annotations=traffic)
        made.step(Added(pod), 1.0)
        bound = make_pod(f"pod-{number}", on="busy", annotations=traffic)
        difference = made.step(Modified(bound), 2.0)
        assert difference is not None
        assert difference.reason == "NetworkTraffic"
        would_be[difference.predicted_node] += 1
    assert would_be == {"quiet-1": 4, "quiet-2": 4}
    made.step(reading, 3.0)
    links = made.summary(4.0).links
    assert links is not None
    assert (round(links.hottest, 6), links.hottest_node) == (0.7, "busy")
    assert round(links.predicted_hottest, 6) == 0.5
    for number in range(8):
        made.step(Deleted(make_pod(f"pod-{number}", on="busy")), 5.0)
    made.step(reading, 6.0)
    now = made.summary(7.0).now
    assert now is not None
    assert now.share == now.predicted_share == 0.5


def test_what_was_measured_is_told_as_by_a_comparison() -> None:
    """Without what was just placed, which the prediction goes by."""
    made, reading = shadowing()
    recorded = AsRecorded(None)
    request = made.shadow.profiles["lowtide"].readings[0]
    assert isinstance(request, TrafficRequest)
    other = msgspec.structs.replace(request, direction="sum")
    columns = reading.reading.columns
    doubled = {**columns, SHARE: 2 * columns[SHARE]}
    traffic = {"lowtide.dev/traffic": "6G"}
    events = [
        *map(Added, NODES),
        Added(make_pod("web", on="quiet-1", cpu="1", annotations=traffic)),
        reading,
        ReadingPublished(other, replace(reading.reading, columns=doubled)),
    ]
    for number, event in enumerate(events):
        made.step(event, float(number))
        recorded.take(Step(number, float(number), event), request)
    summary = made.summary(9.0)
    assert summary.measured == recorded.compared().links
    assert summary.measured is not None
    assert (summary.measured.peak, summary.measured.peak_node) == (0.5, "busy")
    assert summary.measured.cpu_imbalance == 3.0  # all of it is requested on one node of three
    assert summary.measured.averaging == ", averages over 1m"
    assert summary.links is not None
    assert (round(summary.links.hottest, 6), summary.links.hottest_node) == (0.7, "quiet-1")


def test_a_pod_is_told_of_before_it_counts_where_it_would_be() -> None:
    heard: list[tuple[str, str | None]] = []
    plugin = NetworkTraffic(NetworkTrafficArgs())
    made: Shadowing

    def hear(shadowed: Shadowed) -> None:
        booked = made.shadow.state.ledgers.booked_on(f"{shadowed.pod.uid} elsewhere")
        heard.append((shadowed.node_name, booked))

    made = Shadowing({"lowtide": make_profile([*default_plugins(), plugin])}, 0.0, hear)
    for event in (*map(Added, (make_node("small", cpu="2"), make_node("roomy"))), *all_listed()):
        made.step(event, 0.0)
    made.step(Added(make_pod("web", cpu="1")), 1.0)
    made.step(Modified(make_pod("web", cpu="1", on="small")), 2.0)
    assert heard == [("small", None)]
    assert made.shadow.state.ledgers.booked_on("default/web elsewhere") == "roomy"
