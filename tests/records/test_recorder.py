import errno
import gzip
import io
import logging
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from lowtide.objects.events import Added
from lowtide.records.event_form import EventWriter
from lowtide.records.kept_parts import KeptParts
from lowtide.records.recorder import Recorder, RecordingFile
from lowtide.records.recording import Recording, Step
from lowtide.records.recording_header import FORMAT, VERSION, Header, RecordingError
from lowtide.scheduler.events import Turn
from lowtide.testing import make_node

HEADER = Header(format=FORMAT, version=VERSION, lowtide="1", scheduler_names=["lowtide"])


class FullDisk(io.FileIO):
    """A file on a disk with so many bytes left."""

    def __init__(self, path: Path, bytes_left: int) -> None:
        super().__init__(path, "w")
        self._most = bytes_left

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self._most:
            super().write(data[: max(self._most - self.tell(), 0)])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


def recorder(path: Path, **more: Any) -> Recorder:
    writer = EventWriter([], KeptParts(b"salt"))
    return Recorder(path, header=HEADER, writer=writer, rest=lambda: None, **more)


def steps_in(path: Path) -> tuple[list[Step], list[str]]:
    with Recording(path) as recording:
        return list(recording.steps([])), recording.warnings


def test_what_was_handed_over_is_in_the_file_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with recorder(path) as running:
        for number in range(1000):
            running.applied(Added(make_node(f"node-{number}")), float(number))
            running.looked(number + 0.5)
    steps, warnings = steps_in(path)
    assert warnings == []
    assert steps[-2:] == [
        Step(2000, 999.0, Added(make_node("node-999"))),
        Step(2001, 999.5, None),
    ]
    assert len(steps) == 2000
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_was_flushed_can_be_read_though_the_process_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with io.FileIO(path, "w") as opened:
        file = RecordingFile(opened)
        writer = EventWriter([], KeptParts(b"salt"))
        file.add(HEADER)
        for number in range(3):
            line = writer.event_line(Turn(), float(number))
            assert line is not None
            file.add(line)
        file.flush()
        whole = path.read_bytes()
        for number in range(100):
            line = writer.event_line(Added(make_node(f"node-{number}")), 10.0)
            assert line is not None
            file.add(line)
        file.flush()
    path.write_bytes(path.read_bytes()[: len(whole) + 20])
    steps, warnings = steps_in(path)
    # Not the last: it may have led to a decision that is lost.
    assert steps == [Step(number + 2, float(number), Turn()) for number in range(2)]
    assert warnings == [
        "run: has no end: whoever recorded it was killed, or still records; 4 lines of it can be "
        "read"
    ]


def test_recording_that_is_there_is_kept_beside(tmp_path: Path) -> None:
    path = tmp_path / "run"
    for now in (1.0, 2.0):
        with recorder(path) as running:
            running.applied(Turn(), now)
    assert steps_in(path) == ([Step(2, 2.0, Turn())], [])
    assert steps_in(tmp_path / "run.before") == ([Step(2, 1.0, Turn())], [])


@pytest.mark.parametrize("ends_well", [True, False])
def test_starts_without_an_event_take_no_recordings_place(tmp_path: Path, ends_well: bool) -> None:
    path = tmp_path / "run"
    with recorder(path) as running:
        running.applied(Turn(), 1.0)
    for _ in range(3):
        with recorder(path):
            pass
        if not ends_well:
            path.write_bytes(path.read_bytes()[:-20])
    assert steps_in(tmp_path / "run.before") == ([Step(2, 1.0, Turn())], [])


def test_what_is_no_recording_is_kept_too(tmp_path: Path) -> None:
    path = tmp_path / "run"
    for content in (b"notes", gzip.compress(b"notes\n"), gzip.compress(b"")):
        path.write_bytes(content)
        with recorder(path):
            pass
        assert (tmp_path / "run.before").read_bytes() == content


def test_a_recording_that_is_discarded_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with recorder(path) as nothing:
        nothing.applied(Turn(), 1.0)
    nothing.discard()
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"notes")
    with recorder(path) as again:
        again.applied(Turn(), 1.0)
    again.discard()
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"run": b"notes"}


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_file_that_cannot_be_opened_is_rejected_at_once(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "run"
    want = f"{path}: cannot be written to: No such file or directory; a recording is a file in a "
    with (
        pytest.raises(RecordingError, match=re.escape(want)),
        recorder(path),
    ):
        raise AssertionError("nothing begins")


def test_full_disk_is_told_once_and_the_file_says_that_it_is_cut(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run"

    def opened(path: Path) -> io.FileIO:
        return FullDisk(path, bytes_left=600)

    with recorder(path, opened=opened) as running:
        running.applied(Turn(), 1.0)
        for number in range(300):
            running.applied(Added(make_node(os.urandom(20).hex())), float(number))
    running.applied(Turn(), 1.0)
    assert warned(caplog) == ["Recording ends here; the scheduler goes on"]
    assert steps_in(path) == (
        [],
        ["run: was cut after line 2, while it was recorded: No space left on device"],
    )


def test_device_that_takes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with recorder(Path("/dev/full")) as running:
        running.applied(Turn(), 1.0)
    assert warned(caplog) == ["Recording ends here; the scheduler goes on"]


def test_disk_that_hangs_takes_no_more_memory_than_it_may(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, is_free = tmp_path / "run", threading.Event()

    class HangingDisk(io.FileIO):
        def write(self, data: Any) -> int:
            if self.tell():
                is_free.wait(10)
            return super().write(data)

    with recorder(path, opened=lambda path: HangingDisk(path, "w"), most_waiting=100) as running:
        for number in range(200):
            running.applied(Turn(), float(number))
        assert len(running._waiting) <= 101
        is_free.set()
    assert warned(caplog) == ["Recording ends here; the scheduler goes on"]
    told = "101 lines wait to be written, which is more than can be kept"
    assert steps_in(path)[1] == [f"run: was cut after line 2, while it was recorded: {told}"]


def test_object_that_cannot_be_recorded_ends_the_recording_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run"
    with recorder(path) as running:
        running.applied(Added(object()), 1.0)
    assert warned(caplog) == ["Recording ends here; the scheduler goes on"]
    assert steps_in(path)[0] == []
