"""What is kept of advice, and of what a shadow would do: measured without the pod itself."""

from dataclasses import replace
from pathlib import Path

from msgspec.structs import replace as with_fields
from tests.advisor.test_advisor import Heard
from tests.records.kept_decisions import GIGABIT
from tests.scheduler.conftest import all_listed

from lowtide.advisor.advice import Asked
from lowtide.advisor.advisor import Advisor
from lowtide.app.notes import Notes
from lowtide.config.extender_settings import ExtenderSettings
from lowtide.framework.profile import Profile
from lowtide.objects.events import Added, Modified
from lowtide.objects.extender import NodeSeen
from lowtide.objects.meta import ObjectMeta
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import NetworkTrafficArgs
from lowtide.readings.columns import published
from lowtide.readings.demand import Owners, Traffic
from lowtide.records.journal import Journal, read_journal
from lowtide.records.record import DecisionRecord
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.events import ReadingPublished
from lowtide.scheduler.shadow import Shadowed
from lowtide.simulator.shadowing import Shadowing
from lowtide.testing import ManualClock, make_node, make_pod, make_profile

NODES = [make_node("busy"), make_node("quiet")]
POD_BYTES = 50e6


class Noted(Heard):
    """Keeps what the advisor answers."""

    notes: Notes

    def answered(self, decided: Decided, began_at: float) -> None:
        self.notes.note(decided, began_at)


def traffic() -> tuple[dict[str, Profile], ReadingPublished]:
    """Pods are expected to carry 50 MB/s each way."""
    plugin = NetworkTraffic(NetworkTrafficArgs())
    by_node = {
        name: {"receive": each * GIGABIT, "transmit": each * GIGABIT, "capacity": 10 * GIGABIT}
        for name, each in {"busy": 5, "quiet": 1}.items()
    }
    reading = replace(
        published(traffic_reading(plugin.request, by_node, NODES)),
        sampled_at=0.0,
        window_seconds=60.0,
        expects=Owners().expectation(Traffic(POD_BYTES, POD_BYTES)),
    )
    return {"lowtide": make_profile([plugin])}, ReadingPublished(plugin.request, reading)


def added(notes: Notes, key: str) -> dict[str, float]:
    """By node: what was placed there since it was measured, as the newest record has it."""
    record = DecisionRecord.from_kept(next(notes.ring.decisions_about(key)))
    return {each.node: each.measured.added_receive for each in record.best if each.measured}


def advisor() -> tuple[Advisor, Notes]:
    profiles, reading = traffic()
    heard = Noted()
    made = Advisor(profiles, {"lowtide": ExtenderSettings()}, heard)
    heard.notes = Notes(profiles, made.state, ManualClock(1.0))
    for node in NODES:
        made.step(Added(node), 0.0)
    made.step(reading, 0.0)
    return made, heard.notes


def test_advice_is_kept_without_the_pod_that_it_is_about() -> None:
    made, notes = advisor()
    for name in ("first", "second"):
        made.filter(Asked(make_pod(name), ["busy", "quiet"]), now=1.0)
        made.handed_out()
        made.prioritize(Asked(make_pod(name), ["busy", "quiet"]), now=1.0)
        made.handed_out()
    assert added(notes, "default/first") == {"quiet": 0.0, "busy": 0.0}
    assert added(notes, "default/second") == {"quiet": POD_BYTES, "busy": 0.0}
    record = DecisionRecord.from_kept(next(notes.ring.decisions_about("default/second")))
    assert record.reading is not None
    assert record.reading.expected_receive == POD_BYTES


def test_advice_on_a_node_that_only_the_request_knows_is_kept_without_what_is_measured() -> None:
    made, notes = advisor()
    nodes = [NodeSeen(metadata=ObjectMeta(name=name)) for name in ("new", "busy")]
    made.filter(Asked(make_pod("web"), ["new", "busy"], nodes), now=1.0)
    made.handed_out()
    record = DecisionRecord.from_kept(next(notes.ring.decisions_about("default/web")))
    assert {each.node: each.measured for each in record.best} == {"new": None, "busy": None}


def test_what_a_shadow_would_do_is_kept_without_the_pod_that_it_is_about() -> None:
    profiles, reading = traffic()

    def note(shadowed: Shadowed) -> None:
        assert shadowed.decision is not None
        notes.note(Decided(shadowed.decision, 1, 0.0), 1.0, is_on=shadowed.node_name)

    made = Shadowing(profiles, 0.0, note)
    notes = Notes(profiles, made.shadow.state, ManualClock(1.0))
    for event in (*map(Added, NODES), *all_listed(), reading):
        made.step(event, 0.0)
    for name in ("first", "second"):
        made.step(Added(make_pod(name)), 1.0)
        made.step(Modified(make_pod(name, on="busy")), 2.0)
    assert added(notes, "default/first") == {"quiet": 0.0, "busy": 0.0}
    # Where it would be, and where it is: that it is there is a fact.
    assert added(notes, "default/second") == {"quiet": POD_BYTES, "busy": POD_BYTES}


def test_a_decision_that_cannot_be_kept_harms_nobody() -> None:
    made, notes = advisor()
    made.filter(Asked(make_pod("web"), ["busy"]), now=1.0)
    made.handed_out()
    (kept,) = notes.ring.after(0)
    unknown = with_fields(kept.decided.decision, scheduler_name="unknown")
    notes.note(with_fields(kept.decided, decision=unknown), 1.0)
    assert notes.ring.last_number == 1


async def test_decisions_are_written_where_a_file_is_wanted(tmp_path: Path) -> None:
    made, notes = advisor()
    made.filter(Asked(make_pod("web"), ["busy"]), now=1.0)
    made.handed_out()
    (kept,) = notes.ring.after(0)
    file = tmp_path / "decisions.jsonl"
    written = Notes(made.profiles, made.state, ManualClock(1.0), journal=Journal(file))
    written.note(kept.decided, 1.0, is_on="quiet")
    await written.flush()
    assert [(each.pod, each.actual_node) for each in read_journal(file)] == [
        ("default/web", "quiet")
    ]
    assert notes.background() == []
    (running,) = written.background()
    running.close()


def test_the_traffic_that_is_shown_is_remembered() -> None:
    _, notes = advisor()
    _, reading = traffic()
    notes.note_reading(reading.source, reading.reading)
    notes.note_reading("another", reading.reading)
    assert notes.history.node_history("quiet").receive == [GIGABIT]
