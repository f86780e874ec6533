import gzip
import tracemalloc
import zlib
from pathlib import Path

import pytest

from lowtide.records.recording import Recording, Step
from lowtide.records.recording_header import RecordingError
from lowtide.scheduler.events import Turn

HEADER = b'{"format":"lowtide recording","version":1,"lowtide":"0.1.0"}\n'
TURN = b'{"event":"Turn","now":1.5}\n'
END = b'{"event":"End"}\n'
NODE = b'{"event":"Added","now":1,"kind":"Node","object":{"metadata":{"name":"%s"}}}\n'
DECIDED = b'{"event":"Decided","pod":"a/b","uid":"u","schedulerName":"lowtide","attempt":1}\n'


def read(path: Path) -> tuple[list[Step], list[str]]:
    with Recording(path) as recording:
        return list(recording.steps([])), recording.warnings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.gz"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(b"", "is empty: nothing was recorded", id="empty"),
        pytest.param(HEADER, "is no recording: it is not compressed by gzip", id="plain text"),
        pytest.param(
            gzip.compress(b""),
            "is no recording: its first line is not a recording's header",
            id="gzip of nothing",
        ),
        pytest.param(
            gzip.compress(b"\xff\n"),
            "is no recording: its first line is not a recording's header",
            id="gzip of something else",
        ),
        pytest.param(
            gzip.compress(b'{"id":"a","pod":{}}\n'),
            "is no recording: its first line is not a recording's header",
            id="gzip of scenarios",
        ),
        pytest.param(
            gzip.compress(b'{"format":"lowtide recording","version":3,"lowtide":"9.1"}\n'),
            "is a recording of version 3, written by Lowtide 9.1; this one reads versions up to 2",
            id="newer",
        ),
        pytest.param(
            gzip.compress(HEADER + TURN + b'{"event":"Turn"}\n' + END),
            "line 3: cannot be read: Object missing required field `now`",
            id="an event without its time",
        ),
        pytest.param(
            gzip.compress(HEADER + b'{"event":"Sneezed","now":1}\n'),
            "line 2: cannot be read: Invalid value 'Sneezed' - at `$.event`",
            id="an event that nobody knows",
        ),
        pytest.param(
            gzip.compress(HEADER + b'{"event":"Added","now":1,"kind":"Pod","object":[]}\n'),
            "line 2: cannot be read: Expected `object`, got `array`",
            id="an object that is none",
        ),
        pytest.param(
            gzip.compress(HEADER + b"{\n"),
            "line 2: cannot be read: Input data was truncated",
            id="a line that is no JSON",
        ),
        pytest.param(
            gzip.compress(HEADER + DECIDED + TURN),
            "line 3: a decision stands before the first event",
            id="a decision of no event",
        ),
        pytest.param(
            gzip.compress(HEADER)[:40],
            "is torn within its first line: nothing of it can be replayed",
            id="torn within its header",
        ),
        pytest.param(
            b"\x1f\x8bnothing",
            "is damaged in its first line, or is no recording: Error -3 while decompressing data",
            id="nothing but the first two bytes of gzip",
        ),
    ],
)
def test_file_that_is_no_recording(content: bytes, told: str, file: Path) -> None:
    file.write_bytes(content)
    with pytest.raises(RecordingError) as error:
        read(file)
    assert str(error.value).startswith(f"run.gz: {told}")


MIB = 2**20
NESTED = b'{"event":"Turn","now":1,"new":' + b"[" * 5000 + b"]" * 5000 + b"}\n"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        pytest.param(
            b'{"event":"' + b"n" * 18 * MIB,
            "line 2: is longer than 16 MiB, which no line of a recording is",
            id="a line without an end",
        ),
        pytest.param(
            NODE % (b"n" * 5 * MIB),
            "line 2: holds an object of more than 4 MiB, which the API server does not store",
            id="an object that no API server stores",
        ),
        pytest.param(
            TURN + DECIDED.replace(b"a/b", b"a/" + b"b" * MIB) * 17,
            "line 18: the decisions of one event are longer than 16 MiB, which no line of a "
            "recording is",
            id="decisions without an end",
        ),
        pytest.param(
            NESTED, "line 2: cannot be read: it is nested too deeply", id="lists in lists"
        ),
        pytest.param(
            TURN + DECIDED.replace(b"}", b',"best":["n"],"scores":{"A":[]}}') + TURN,
            "line 3: cannot be read: A has 0 scores for the 1 best nodes",
            id="fewer scores than nodes",
        ),
    ],
)
def test_recording_that_would_take_more_memory_than_any_recording(
    file: Path, lines: bytes, told: str
) -> None:
    file.write_bytes(gzip.compress(HEADER + lines))
    with pytest.raises(RecordingError) as error:
        read(file)
    assert str(error.value) == f"run.gz: {told}"


def test_header_that_is_nested_too_deeply(file: Path) -> None:
    nested = b'{"config":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}\n"
    file.write_bytes(gzip.compress(nested))
    with pytest.raises(RecordingError, match="its first line is not a recording's header"):
        read(file)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(b"", id="and is whole"),
        pytest.param(b"\xff" * 100, id="and is damaged in the middle"),
    ],
)
def test_a_small_file_that_stands_for_a_large_one_is_read_in_little_memory(
    file: Path, damage: bytes
) -> None:
    small = bytearray(gzip.compress(HEADER + TURN * (64 * MIB // len(TURN)) + END))
    if damage:
        small[len(small) // 2 : len(small) // 2 + len(damage)] = damage
    file.write_bytes(small)
    assert len(small) < MIB
    tracemalloc.start()
    try:
        with Recording(file) as recording:
            steps = recording.steps([])
            assert [next(steps).line for _ in range(1000)] == list(range(2, 1002))
            steps.close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB


def test_file_that_is_not_there(file: Path) -> None:
    with pytest.raises(RecordingError) as error:
        read(file)
    assert str(error.value) == "run.gz: cannot be read: No such file or directory"


def test_decisions_stand_with_the_event_that_led_to_them(file: Path) -> None:
    file.write_bytes(gzip.compress(HEADER + TURN + DECIDED + DECIDED + TURN + END))
    steps, warnings = read(file)
    assert warnings == []
    told = [(step.line, step.now, step.event, len(step.decisions)) for step in steps]
    assert told == [(2, 1.5, Turn(), 2), (5, 1.5, Turn(), 0)]


def test_fields_that_are_not_known_yet_are_passed_over(file: Path) -> None:
    line = b'{"event":"Turn","now":1.5,"mood":"good"}\n'
    file.write_bytes(gzip.compress(HEADER.replace(b"}", b',"new":[]}') + line + END))
    assert read(file) == ([Step(2, 1.5, Turn())], [])


@pytest.mark.parametrize("cut_bytes", [1, 8, 12])
def test_torn_end_is_told_and_the_rest_is_read(file: Path, cut_bytes: int) -> None:
    file.write_bytes(gzip.compress(HEADER + 3 * TURN)[:-cut_bytes])
    steps, (warning,) = read(file)
    assert steps == [Step(number, 1.5, Turn()) for number in range(2, len(steps) + 2)]
    assert warning.startswith("run.gz: has no end: whoever recorded it was killed, or still")


def damaged_in_the_middle() -> bytes:
    """As it is written, block by block; the damage is in the second of three."""
    compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
    blocks = [
        compressor.compress(text) + compressor.flush(zlib.Z_SYNC_FLUSH)
        for text in (HEADER + TURN + TURN, DECIDED + TURN, TURN + END)
    ]
    blocks.append(compressor.flush())
    blocks[1] = b"\xff" * len(blocks[1])
    return b"".join(blocks)


@pytest.mark.parametrize(
    ("content", "read_count", "why"),
    [
        pytest.param(
            damaged_in_the_middle(),
            1,
            "is damaged (Error -3 while decompressing data: invalid block type); 3 lines",
            id="what cannot be decompressed",
        ),
        pytest.param(
            gzip.compress(HEADER + 3 * TURN + END)[:-8] + b"x" * 8,
            3,
            "is damaged (Error -3 while decompressing data: incorrect data check); 5 lines",
            id="a checksum that is another one",
        ),
        pytest.param(
            gzip.compress(HEADER + 3 * TURN + b"{" + TURN + END)[:-8] + b"x" * 8,
            2,
            "is damaged (Error -3 while decompressing data: incorrect data check); 4 lines",
            id="a line that cannot be read, and a checksum that is another one",
        ),
    ],
)
def test_what_stands_before_a_damage_is_read(
    file: Path, content: bytes, read_count: int, why: str
) -> None:
    file.write_bytes(content)
    steps, (warning,) = read(file)
    assert steps == [Step(number, 1.5, Turn()) for number in range(2, read_count + 2)]
    assert warning == f"run.gz: {why} of it can be read"
