"""What Lowtide 0.1 wrote is still read: `format_1` holds a journal and recordings of it, in which
fields have the names of that time."""

import gzip
import json
from pathlib import Path

import pytest

from lowtide.app.registry import make_registry
from lowtide.app.replay import replay
from lowtide.framework.plugin import Nodes, Pod, Wait
from lowtide.records.journal import read_journal
from lowtide.records.older_names import event_line, record_line
from lowtide.records.record import PreemptionRecord, ScoreRecord
from lowtide.records.recording import Recording
from lowtide.records.recording_header import VERSION
from lowtide.scheduler.events import PermitAnswered

FORMAT_1 = Path(__file__).parent / "format_1"


class Holding:
    """The recorded answers let its pods go, or reject them."""

    name = "Holding"

    def permit(self, pod: Pod, node_name: str, nodes: Nodes) -> Wait:
        return Wait(seconds=900)


def test_an_older_journal_has_todays_names() -> None:
    placed, rejected, advised, neutral, preempting = read_journal(FORMAT_1 / "decisions.jsonl")
    assert placed.best[0].scores["NetworkTraffic"] == ScoreRecord(86, 86, 774)
    assert placed.seconds_by_plugin["NetworkTraffic"] == pytest.approx(0.002)
    assert rejected.unschedulable_plugins == ["NodeResourcesFit"]
    assert (advised.extender_verb, advised.actual_node) == ("prioritize", "node-1")
    assert (neutral.extender_verb, neutral.neutral_reason) == (
        "filter",
        "the rules took longer than 50 ms",
    )
    assert preempting.preemption == PreemptionRecord("node-1", ["default/small"])


def test_a_journal_that_an_older_process_began_is_read_whole(tmp_path: Path) -> None:
    older = (FORMAT_1 / "decisions.jsonl").read_bytes()
    record = json.loads(record_line(older.splitlines()[1]))
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(older + json.dumps({**record, "seq": 6}).encode() + b"\n")
    found = list(read_journal(path))
    assert [each.seq for each in found] == [1, 2, 3, 4, 5, 6]
    assert found[5].unschedulable_plugins == found[1].unschedulable_plugins == ["NodeResourcesFit"]


def test_names_that_people_chose_are_kept() -> None:
    record = {"rejected_by": [], "seconds_by_rule": {"asked": 0.1}, "reasons": {"neutral": 2}}
    assert json.loads(record_line(json.dumps(record, separators=(",", ":")).encode())) == {
        "unschedulable_plugins": [],
        "seconds_by_plugin": {"asked": 0.1},
        "reasons": {"neutral": 2},
    }
    line = b'{"event":"Added","now":1.0,"kind":"Node","object":{"ruleName":"mine"}}'
    assert event_line(line) == line


@pytest.mark.parametrize(
    ("name", "decision_count"),
    [
        pytest.param("busy-hour.gz", 27, id="with names"),
        pytest.param("busy-hour-hashed.gz", 27, id="with hashed names"),
        pytest.param("permit-and-extender.gz", 3, id="with answers of a plugin and an extender"),
    ],
)
def test_an_older_recording_is_decided_as_it_was(name: str, decision_count: int) -> None:
    registry = make_registry({"Holding": Holding})
    made = replay(FORMAT_1 / name, registry, None, lambda *_: None)
    assert (made.differences, made.warnings) == ((), ())
    assert made.decision_count == decision_count


def test_answers_to_permit_have_todays_names() -> None:
    with Recording(FORMAT_1 / "permit-and-extender.gz") as recording:
        steps = list(recording.steps([]))
    answers = [step.event for step in steps if isinstance(step.event, PermitAnswered)]
    assert answers == [
        PermitAnswered("default/allowed", "Holding"),
        PermitAnswered("default/refused", "Holding", "the group is not complete"),
    ]
    decisions = [decision for step in steps for decision in step.decisions]
    assert decisions[-1].unschedulable_plugins == ["Holding"]


def test_an_older_header_describes_its_sources() -> None:
    with Recording(FORMAT_1 / "busy-hour.gz") as recording:
        (source,) = recording.header.sources
    assert source.type == "TrafficRequest"
    assert source.description.startswith("TrafficRequest(")


def test_the_kept_files_are_of_the_older_form() -> None:
    text = gzip.decompress((FORMAT_1 / "busy-hour.gz").read_bytes())
    header = json.loads(text.splitlines()[0])
    assert header["version"] < VERSION
    assert sorted(header["sources"][0]) == ["of", "type"]
