import math
from typing import Any

import msgspec
import numpy as np
import pytest

from lowtide.cluster.reading import Reading
from lowtide.objects.pod import Pod
from lowtide.readings.demand import PodTraffic, Traffic
from lowtide.readings.usage import PodRequests
from lowtide.records.event_form import encode
from lowtide.records.hashed_names import HashedNames
from lowtide.records.reading_form import (
    ReadingForm,
    ReadingReader,
    ReadingWriter,
    owners_of,
    traffic_of_any,
)
from lowtide.records.recording_header import RecordingError

WEB = ("default", "Deployment", "web")
DATABASE = ("default", "StatefulSet", "db")


def told(reading: Reading) -> dict[str, Any]:
    """All of it as text, in which NaN equals NaN."""
    expects = reading.expects
    return {
        "names": tuple(reading.names),
        "columns": {name: repr(each.tolist()) for name, each in sorted(reading.columns.items())},
        "of_others": repr(sorted(reading.of_others.items())),
        "times": repr((reading.sampled_at, reading.window_seconds)),
        "expects": type(expects),
        "owners": dict(owners_of(expects)),
        "of_any": traffic_of_any(expects) if isinstance(expects, PodTraffic) else None,
    }


def columns(**values: list[float]) -> dict[str, Any]:
    return {name: np.array(each, np.float64) for name, each in values.items()}


NAMES = ("a", "b", "c")
FIRST = Reading(
    names=NAMES,
    columns=columns(receive=[0.1, 0.2, math.nan], capacity=[1e9, 1e9, 1e9], odd=[1, math.inf, 2]),
    of_others={"receive": 0.15, "capacity": math.nan},
    expects=PodTraffic({WEB: Traffic(1.5, 2.5), DATABASE: Traffic(3.0, 4.0)}, None, Traffic(9, 9)),
    sampled_at=1000.25,
    window_seconds=60.0,
)
LATER = [
    pytest.param(FIRST, id="that is the same again"),
    pytest.param(
        Reading(NAMES, {**FIRST.columns, **columns(receive=[0.1, 0.3, 5])}, sampled_at=1015.25),
        id="in which a column changed, and nothing is expected",
    ),
    pytest.param(
        Reading(
            ("c", "d"), columns(receive=[1, 2]), {"receive": 1.5}, PodRequests(), math.inf, 5.0
        ),
        id="of other nodes, with fewer columns",
    ),
    pytest.param(
        Reading(
            NAMES,
            FIRST.columns,
            expects=PodTraffic({WEB: Traffic(1.25, 2.5)}, Traffic(7, 8), Traffic(9, 9)),
        ),
        id="in which an owner changed and one is forgotten",
    ),
    pytest.param(
        Reading(NAMES, columns(receive=[math.nan] * 3, capacity=[1e9] * 3, odd=[-math.inf] * 3)),
        id="in which nothing is known",
    ),
    pytest.param(Reading(), id="of no node"),
]


@pytest.mark.parametrize("later", LATER)
def test_readings_come_back_one_after_the_other(later: Reading) -> None:
    writer, reader = ReadingWriter(), ReadingReader()
    for reading in (FIRST, later, FIRST):
        form = msgspec.json.decode(encode(writer.form(reading)), type=ReadingForm)
        assert told(reader.reading(form)) == told(reading)


def test_only_what_changed_is_written() -> None:
    writer = ReadingWriter()
    writer.form(FIRST)
    changed = Reading(
        NAMES,
        {**FIRST.columns, **columns(receive=[0.1, 0.3, math.nan])},
        FIRST.of_others,
        FIRST.expects,
        1015.25,
        60.0,
    )
    assert msgspec.json.decode(encode(writer.form(changed))) == {
        "sampledAt": 1015.25,
        "windowSeconds": 60.0,
        "columns": {"receive": [0.1, 0.3, None]},
    }


def test_column_of_one_value_is_written_once() -> None:
    form = ReadingWriter().form(FIRST)
    assert form.columns["capacity"] == 1e9
    assert form.columns["odd"] == [1.0, "Infinity", 2.0]


def test_names_and_owners_are_hashed() -> None:
    hashed = HashedNames(b"salt")
    reading = ReadingReader().reading(ReadingWriter(hashed).form(FIRST))
    assert reading.names == tuple(map(hashed.name, NAMES))
    assert set(owners_of(reading.expects)) == {
        (hashed.name("default"), "Deployment", hashed.name("web")),
        (hashed.name("default"), "StatefulSet", hashed.name("db")),
    }


class OddExpectation:
    fields = ("odd",)

    def expected_for(self, pod: Pod) -> tuple[float, ...]:
        return (1.0,)


def test_expectation_of_others_cannot_be_read_back() -> None:
    form = ReadingWriter().form(Reading(expects=OddExpectation()))
    with pytest.raises(RecordingError) as error:
        ReadingReader().reading(form)
    assert "OddExpectation says, and only what PodTraffic and PodRequests say" in str(error.value)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        pytest.param(
            ReadingForm(names=["a"], columns={"x": [1.0, 2.0]}),
            "a column has 2 numbers for 1 nodes",
            id="with a column of another length",
        ),
        pytest.param(
            ReadingForm(names=["a"] * 200_000, columns=dict.fromkeys("abcdefghijk", 0.0)),
            "a reading has 2200000 numbers; at most 2000000 are read",
            id="in which few characters stand for many numbers",
        ),
        pytest.param(
            ReadingForm(names=["a"], columns={"x": ["many"]}),
            "'many' is no number; expected 1.5, null or Infinity",
            id="with a text for a number",
        ),
    ],
)
def test_form_that_makes_no_sense(form: ReadingForm, text: str) -> None:
    with pytest.raises(RecordingError) as error:
        ReadingReader().reading(form)
    assert str(error.value) == text
