import math
from typing import Any

import msgspec
import pytest
from tests.records.full_objects import Filler

from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable
from lowtide.objects.kinds import KIND_OF, NODE, POD
from lowtide.readings.usage import UsageRequest
from lowtide.records.event_form import EventReader, EventWriter, Line, encode
from lowtide.records.hashed_names import HashedNames
from lowtide.records.kept_parts import KeptParts
from lowtide.records.recording_header import RecordingError
from lowtide.scheduler.events import (
    BindingEnded,
    BindingLookedUp,
    Event,
    EvictionEnded,
    ExtendersAnswered,
    PermitAnswered,
    ReadingPublished,
    Turn,
)
from lowtide.scheduler.extending import ExtenderFailed, Filtered, Preempted, Priorities
from lowtide.testing import make_node, make_pod, make_reading

SALT = b"salt"
SOURCE = UsageRequest()


class AllKept(KeptParts):
    def without_left_out(self, thing: Any) -> Any:
        return thing


def read_back(event: Event, now: float = 1.5) -> tuple[Event | None, float]:
    line = EventWriter([SOURCE], AllKept(SALT)).event_line(event, now)
    read: Any = msgspec.json.decode(encode(line), type=Line)
    return EventReader([SOURCE]).event(read), read.now


@pytest.mark.parametrize("kind", [POD, NODE, *KIND_OF.values()], ids=lambda kind: kind.name)
@pytest.mark.parametrize("event", [Added, Modified, Deleted], ids=lambda event: event.__name__)
def test_objects_come_back_equal_with_every_field_set_and_with_none(event: Any, kind: Any) -> None:
    full = Filler().full(kind.type)
    assert read_back(event(full)) == (event(full), 1.5)
    assert read_back(event(kind.type())) == (event(kind.type()), 1.5)


@pytest.mark.parametrize(
    "event",
    [
        Turn(),
        Listed("Pod"),
        Unavailable("PersistentVolume", 403, "forbidden"),
        BindingEnded("uid-1", BindOutcome()),
        BindingEnded("uid-1", BindOutcome("it is gone", is_gone=True)),
        BindingLookedUp("uid-1", BindOutcome()),
        BindingLookedUp("uid-1", BindOutcome("it is elsewhere", is_gone=True)),
        EvictionEnded("uid-1", (make_pod("victim", on="a"),), frozenset({"uid-3", "uid-2"}), "no"),
        PermitAnswered("uid-1", "Groups"),
        PermitAnswered("uid-1", "Groups", "too late"),
        ExtendersAnswered(Filtered(("a",), {"b": "full"}, {"c": "never"})),
        ExtendersAnswered(Priorities(({"a": 3}, {}))),
        ExtendersAnswered(Preempted({"a": (("uid-1", "uid-2"), 1)})),
        ExtendersAnswered(ExtenderFailed("rejected")),
    ],
    ids=lambda event: type(event).__name__,
)
def test_events_come_back_equal(event: Event) -> None:
    assert read_back(event) == (event, 1.5)


@pytest.mark.parametrize("now", [0.1 + 0.2, 1_767_225_600.123456789, 1e-300, 3.0])
def test_time_comes_back_to_the_last_bit(now: float) -> None:
    assert read_back(Turn(), now)[1] == now


def test_reading_is_published_under_the_source_of_the_one_who_reads() -> None:
    reading = make_reading({"a": {"cpu_milli": 1.5}})
    writer = EventWriter(["theirs"], KeptParts(SALT))
    line: Any = msgspec.json.decode(
        encode(writer.event_line(ReadingPublished("theirs", reading), 1.0)), type=Line
    )
    event = EventReader(["ours"]).event(line)
    assert isinstance(event, ReadingPublished)
    assert event.source == "ours"
    assert event.reading.names == ("a",)
    assert event.reading.columns["cpu_milli"].tolist() == [1.5]
    assert math.isnan(event.reading.sampled_at)
    assert EventReader([None]).event(line) is None


def test_reading_that_no_profile_asked_for_is_not_written() -> None:
    event = ReadingPublished("another", make_reading({}))
    assert EventWriter([SOURCE], KeptParts(SALT)).event_line(event, 1.0) is None


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param(
            b'{"event":"Added","now":1,"kind":"Secret","object":{}}',
            "the kind 'Secret' is not known; Pod, Node, Namespace,",
            id="names a kind that is not known",
        ),
        pytest.param(
            b'{"event":"ReadingPublished","now":1,"source":1,"reading":{}}',
            "source 1 is not one of the header's 1",
            id="names a source that is not there",
        ),
    ],
)
def test_line_that_makes_no_sense(line: bytes, told: str) -> None:
    with pytest.raises(RecordingError) as error:
        EventReader([SOURCE]).event(msgspec.json.decode(line, type=Line))  # type: ignore[arg-type]
    assert str(error.value).startswith(told)


def test_hashed_events_have_no_words_and_no_names_of_others() -> None:
    writer = EventWriter([SOURCE], KeptParts(SALT), HashedNames(SALT))
    events: list[Event] = [
        Added(make_node("zebra", addresses=["zebra.example"])),
        Unavailable("Node", 403, "zebra may not"),
        BindingEnded("ns/zebra", BindOutcome("zebra is gone")),
        BindingLookedUp("ns/zebra", BindOutcome("zebra has no node")),
        EvictionEnded("uid", (make_pod("zebra", on="zebra"),), frozenset({"ns/zebra"}), "zebra"),
        PermitAnswered("ns/zebra", "Groups", "zebra is late"),
        ExtendersAnswered(Filtered(("zebra",), {"zebra": "zebra"}, {"zebra": "zebra"})),
        ExtendersAnswered(Preempted({"zebra": (("ns/zebra",), 1)})),
        ExtendersAnswered(Priorities(({"zebra": 1},))),
        ExtendersAnswered(ExtenderFailed("zebra rejected")),
    ]
    written = b"".join(encode(writer.event_line(event, 1.0)) for event in events)
    assert b"zebra" not in written
