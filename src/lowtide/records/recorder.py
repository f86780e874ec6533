"""Writes a recording while the scheduler runs, on a thread of its own: the machine only hands over
what it applied. A file that cannot be opened is rejected. A later error, such as a full disk, is
logged once, and the scheduler goes on.

`app/scheduler` has it started and ended; `scheduler/live` tells it of each event."""

import errno
import os
import threading
import zlib
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, Final

import msgspec

from lowtide.logs import Log
from lowtide.records.event_form import EndLine, EventWriter, Line, LookedLine, encode
from lowtide.records.recording_header import FORMAT, Header, RecordingError
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.events import Event

log = Log("scheduler")

BEFORE_SUFFIX: Final = ".before"  # of the recording that was there at the start

_EVERY_SECONDS = 0.5
_LINES_AT_ONCE = 200
_BLOCK_BYTES = 2**20
_MOST_WAITING = 500_000  # lines; a disk that hangs must not take all memory
_LAST_SECONDS = 15.0
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_END = encode(EndLine())
_GZIP = 31  # zlib's number for a gzip header and trailer around the deepest window


def open_for_recording(path: Path) -> FileIO:
    """For nobody else to read; a recording that is there already is kept beside it."""
    if holds_something(path):
        path.replace(_before(path))
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    return FileIO(number, "wb")


def holds_something(path: Path) -> bool:
    """Whatever it is, unless it is a recording with nothing behind its header: of a start that
    failed, which must not take the place of a recording that is kept."""
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        beginning = file.read(_BLOCK_BYTES)
    try:
        header, *lines = zlib.decompressobj(_GZIP).decompress(beginning, _BLOCK_BYTES).split(b"\n")
        is_recording = msgspec.json.decode(header, type=Header).format == FORMAT
    except (zlib.error, ValueError, RecursionError):
        return True
    whole = lines[:-1]  # what stands behind the last line's end is torn
    return not is_recording or any(line != _END for line in whole)


def _before(path: Path) -> Path:
    return path.with_name(path.name + BEFORE_SUFFIX)


class RecordingFile:
    """Compressed lines. What was flushed can be read, whatever becomes of the process."""

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self._compressor: Any = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
        self._at_flush: Any = self._compressor.copy()
        self._sound_bytes = 0
        self._pending = bytearray()

    def add(self, line: Header | Line) -> None:
        self._pending += encode(line)
        self._pending += b"\n"
        if len(self._pending) >= _BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._pending:
            block = self._compressor.compress(bytes(self._pending))
            self._put(block + self._compressor.flush(zlib.Z_SYNC_FLUSH))
            self._pending.clear()
            self._at_flush = self._compressor.copy()

    def close(self) -> None:
        self.add(EndLine())
        self.flush()
        self._put(self._compressor.flush(zlib.Z_FINISH))
        self._file.close()

    def cut(self, reason: str) -> None:
        """Ends it where it was sound last, and says so, if that can be written."""
        with suppress(OSError):  # a torn end can be read too
            self._file.seek(self._sound_bytes)
            self._file.truncate()
            end = self._at_flush.compress(encode(EndLine(cut=reason)) + b"\n")
            self._write(end + self._at_flush.flush(zlib.Z_FINISH))
        with suppress(OSError):
            self._file.close()

    def _put(self, block: bytes) -> None:
        self._write(block)
        self._sound_bytes += len(block)

    def _write(self, block: bytes) -> None:
        left = memoryview(block)
        while left:
            left = left[self._file.write(left) :]


class Recorder:
    """`rest` is called between pieces of the work, for others to go on."""

    def __init__(
        self,
        path: Path,
        *,
        header: Header,
        writer: EventWriter,
        rest: Callable[[], None],
        opened: Callable[[Path], FileIO] = open_for_recording,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        self._path = path
        self._header = header
        self._writer = writer
        self._rest = rest
        self._open = opened
        self._most_waiting = most_waiting
        self._waiting: deque[tuple[Event, float] | float | Decided] = deque()
        self.failure = ""  # why nothing more is recorded
        self._is_on = False
        self._is_overrun = False
        self._file: RecordingFile | None = None
        self._has_before = False  # whether what was there is kept beside it
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)

    # What the machine did.

    def applied(self, event: Event, now: float) -> None:
        if self._is_on:
            self._waiting.append((event, now))
            if len(self._waiting) > self._most_waiting:
                self._is_on, self._is_overrun = False, True

    def looked(self, now: float) -> None:
        if self._is_on:
            self._waiting.append(now)

    def decided(self, decided: Decided) -> None:
        if self._is_on:
            self._waiting.append(decided)

    # Start and end.

    def __enter__(self) -> "Recorder":
        try:
            self._has_before = holds_something(self._path)
            self._file = RecordingFile(self._open(self._path))
            self._file.add(self._header)
            self._file.flush()
        except OSError as error:
            if error.errno not in _FULL:
                raise RecordingError(
                    f"{self._path}: cannot be written to: {error.strerror}; a recording is a file "
                    "in a folder that exists and may be written to"
                ) from error
            self._give_up(error)
            return self
        self._is_on = True
        self._thread.start()
        log.info("Recording", file=str(self._path))
        return self

    def __exit__(self, *_: object) -> None:
        if not self._thread.ident:
            return
        self._ending.set()
        self._thread.join(_LAST_SECONDS)
        if self._thread.is_alive():
            log.warning("The end of the recording is not written", file=str(self._path))

    def discard(self) -> None:
        """After its end, where it is worth nothing: all files are as they were before it, but for
        the one that was kept before."""
        if self._file is None:
            return
        with suppress(OSError):
            if self._has_before:
                _before(self._path).replace(self._path)
            else:
                self._path.unlink()

    # On the thread.

    def _run(self) -> None:
        assert self._file is not None
        try:
            while not self._ending.wait(_EVERY_SECONDS):
                self._write_waiting(self._file)
            self._is_on = False
            self._write_waiting(self._file)
            self._file.close()
        except Exception as error:
            self._give_up(error)

    def _write_waiting(self, file: RecordingFile) -> None:
        if self._is_overrun:
            count = len(self._waiting)
            raise OSError(f"{count} lines wait to be written, which is more than can be kept")
        for number in range(1, len(self._waiting) + 1):
            self._add(file, self._waiting.popleft())
            if number % _LINES_AT_ONCE == 0 and not self._ending.is_set():
                self._rest()
        file.flush()

    def _add(self, file: RecordingFile, entry: tuple[Event, float] | float | Decided) -> None:
        if isinstance(entry, Decided):
            file.add(self._writer.decision_line(entry))
        elif isinstance(entry, float):
            file.add(LookedLine(entry))
        else:
            line = self._writer.event_line(*entry)
            if line is not None:
                file.add(line)

    def _give_up(self, error: Exception) -> None:
        self._is_on = False
        self._waiting.clear()
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        self.failure = reason
        log.warning("Recording ends here; the scheduler goes on", file=str(self._path), err=reason)
        if self._file is not None:
            self._file.cut(reason)
