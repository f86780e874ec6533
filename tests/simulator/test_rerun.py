"""A recording under other configurations: decided anew, with readings as they would be."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs
from tests.records.kept_decisions import GIGABIT
from tests.records.recorded_run import CONFIG, RecordedRun, bound

from lowtide.app.registry import make_registry
from lowtide.app.replay import compare
from lowtide.objects.events import Deleted, Modified
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod, PodStatus
from lowtide.readings.columns import published
from lowtide.readings.demand import Owners, Traffic
from lowtide.readings.request import TrafficRequest
from lowtide.records.recording_header import sources_of
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.events import ReadingPublished
from lowtide.simulator.rerun_report import Compared, Elsewhere
from lowtide.testing import make_node, make_pod

NODES = [make_node("busy", cpu="64"), make_node("quiet", cpu="2")]
# Each is a tenth of a link.
PODS = [
    make_pod(f"pod-{number}", cpu="500m", annotations={"lowtide.dev/traffic": "1G"})
    for number in range(2)
]

NOWHERE = "it fits nowhere, or waits"


def config(*, weight: int | None) -> dict[str, Any]:
    """NetworkTraffic at filter, and at score with this weight."""
    plugin = {"name": "NetworkTraffic"}
    score = {} if weight is None else {"score": {"enabled": [{**plugin, "weight": weight}]}}
    plugins = {"filter": {"enabled": [plugin]}, **score}
    args = [{**plugin, "args": {"prometheusAddress": "http://p"}}]
    profile = {"schedulerName": "lowtide", "plugins": plugins, "pluginConfig": args}
    return {**CONFIG, "profiles": [profile]}


@pytest.fixture(params=["deleted", "ended"])
def recording(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """By what is free alone, both pods went to the busy node, ran there, and were measured; one
    of them is gone later."""
    last = started(PODS[1], "busy", 0.0)
    ended = Modified(structs.replace(last, status=PodStatus(phase="Succeeded")))
    with RecordedRun(tmp_path / "run.lowtide", config(weight=None)) as run:
        run.add(*NODES)
        run.listed()
        publish(run, {"busy": 5, "quiet": 1})
        run.add(*PODS)
        run.place_all()
        assert run.nodes == ["busy", "busy"]
        for pod in PODS:
            run.step(Modified(started(pod, "busy", run.clock())))
        run.clock.advance(seconds=300.0)
        publish(run, {"busy": 7, "quiet": 1})
        run.step(ended if request.param == "ended" else Deleted(last))
        run.clock.advance(seconds=300.0)
        publish(run, {"busy": 6, "quiet": 1})
    return tmp_path / "run.lowtide"


def publish(run: RecordedRun, gigabits: Mapping[str, float], nodes: Sequence[Node] = NODES) -> None:
    publish_each(run, {name: (each, each) for name, each in gigabits.items()}, nodes)


def publish_each(
    run: RecordedRun, gigabits: Mapping[str, tuple[float, float]], nodes: Sequence[Node] = NODES
) -> None:
    """Receive and transmit."""
    (request,) = sources_of(run.profiles.values())
    assert isinstance(request, TrafficRequest)
    by_node = {
        name: {
            "receive": receive * GIGABIT,
            "transmit": transmit * GIGABIT,
            "capacity": 10 * GIGABIT,
        }
        for name, (receive, transmit) in gigabits.items()
    }
    reading = replace(
        published(traffic_reading(request, by_node, nodes)),
        sampled_at=run.clock(),
        window_seconds=60.0,
        expects=Owners().expectation(Traffic(0.0, 0.0)),
    )
    run.step(ReadingPublished(request, reading))


def started(pod: Pod, node_name: str, at: float) -> Pod:
    time = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    data = json.loads(msgspec.json.encode(bound(pod, node_name)))
    state = {"running": {"startedAt": time}}
    data["status"] = {"phase": "Running", "containerStatuses": [{"name": "main", "state": state}]}
    return msgspec.convert(data, Pod, strict=False)


def rows(recording: Path, **weights: int | None) -> list[Compared]:
    files = []
    for name, weight in weights.items():
        file = recording.parent / name
        file.write_text(json.dumps(config(weight=weight)))
        files.append(file)
    made = compare(recording, make_registry({}), files, lambda done, total: None)
    assert made.warnings == ()
    return list(made.rows)


def test_the_same_configuration_ends_the_same(recording: Path) -> None:
    recorded, same = rows(recording, same=None)
    assert (same.placed, same.pending, same.moved_pods) == (2, 0, [])
    assert recorded.links is not None
    assert (recorded.links.peak, recorded.links.peak_node) == (0.7, "busy")
    assert (same.links, same.course) == (recorded.links, recorded.course)
    assert (recorded.placed, recorded.pending) == (2, 0)


def test_pods_that_would_be_elsewhere_take_their_traffic_with_them(recording: Path) -> None:
    _, quiet = rows(recording, quiet=9)
    assert quiet.moved_pods == [
        Elsewhere("default/pod-0", "busy", "quiet", "NetworkTraffic"),
        Elsewhere("default/pod-1", "busy", "quiet", "NetworkTraffic"),
    ]
    assert [share for _, share in quiet.course] == pytest.approx([0.5, 0.5, 0.5])
    assert quiet.links is not None
    assert (quiet.links.peak, quiet.links.peak_node) == (0.5, "busy")


def test_several_are_compared_in_the_order_given(recording: Path) -> None:
    found = rows(recording, first=9, second=None)
    assert [Path(each.name).name for each in found] == ["as recorded", "first", "second"]
    assert [len(each.moved_pods) for each in found] == [0, 2, 0]


def test_a_configuration_that_reads_no_traffic_is_told_of_its_links_too(recording: Path) -> None:
    file = recording.parent / "plain"
    file.write_text(json.dumps(CONFIG))
    made = compare(recording, make_registry({}), [file], lambda done, total: None)
    recorded, plain = made.rows
    assert (plain.moved_pods, plain.links) == ([], recorded.links)


def test_a_pod_that_fits_nowhere_else_waits(recording: Path) -> None:
    file = recording.parent / "strict"
    strict = config(weight=None)
    strict["profiles"][0]["pluginConfig"].append(
        {
            "name": "NodeAffinity",
            "args": {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "none", "operator": "Exists"}]}
                        ]
                    }
                }
            },
        }
    )
    file.write_text(json.dumps(strict))
    made = compare(recording, make_registry({}), [file], lambda done, total: None)
    row = made.rows[1]
    assert (row.placed, row.pending) == (0, 1)  # the other is gone
    assert row.moved_pods == [
        Elsewhere("default/pod-0", "busy", None, NOWHERE),
        Elsewhere("default/pod-1", "busy", None, NOWHERE),
    ]
    assert [share for _, share in row.course] == pytest.approx([0.5, 0.5, 0.5])


def test_what_was_recorded_is_judged_by_the_direction_that_is_asked_for(tmp_path: Path) -> None:
    """The link that receives most sends least."""
    with RecordedRun(tmp_path / "run.lowtide", config(weight=9)) as run:
        nodes = [make_node("sends"), make_node("receives")]
        run.add(*nodes)
        run.listed()
        publish_each(run, {"sends": (1, 6), "receives": (5, 1)}, nodes)
        run.add(PODS[0])
        run.place_all()
        assert run.nodes == ["receives"]
    other = config(weight=9)
    args = other["profiles"][0]["pluginConfig"][0]["args"]
    args.update(direction="receive", prometheusAddress="http://elsewhere")
    (tmp_path / "receive").write_text(json.dumps(other))
    args.update(direction="transmit", window="30s")
    (tmp_path / "short").write_text(json.dumps(other))
    files = [tmp_path / "receive", tmp_path / "short"]
    made = compare(tmp_path / "run.lowtide", make_registry({}), files, lambda done, total: None)
    recorded, receive, short = made.rows
    assert receive.moved_pods == [Elsewhere("default/pod-0", "receives", "sends", "NetworkTraffic")]
    assert short.moved_pods == []
    assert receive.course == recorded.course  # links are told of as they were recorded
    assert made.warnings == (
        f"{files[1]}: asks for TrafficRequest in another way than was recorded; what was recorded "
        "is taken for it: window seconds 60 -> 30",
    )
