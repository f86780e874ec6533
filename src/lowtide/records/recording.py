"""Reads a recording: its header, then step by step what the machine was given and what it decided.

`replaying` feeds the steps to a machine; whoever wants other events reads them here too."""

import zlib
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from lowtide.records import older_names
from lowtide.records.decision_form import DecisionForm
from lowtide.records.event_form import (
    AddedLine,
    DeletedLine,
    EndLine,
    EventReader,
    Line,
    ModifiedLine,
)
from lowtide.records.recording_header import FORMAT, VERSION, Header, RecordingError
from lowtide.scheduler.events import Event

_PIECE_BYTES = 2**18
_TEXT_BYTES = 2**20  # decompressed at once: a few bytes may stand for a thousand times as many
_GZIP = 31
_GZIP_MAGIC = b"\x1f\x8b"
_MIB = 2**20
# A reading of 100,000 nodes is shorter. Decoded, a line takes up to 30 times as much memory.
_MOST_MIB_A_LINE = 16
_TOO_LONG = f"longer than {_MOST_MIB_A_LINE} MiB, which no line of a recording is"
# etcd stores objects up to 1.5 MiB. Decoded, one takes up to 70 times as much memory.
_MOST_MIB_AN_OBJECT = 4
_MOST_SOURCES = 64


@dataclass(frozen=True, slots=True)
class Step:
    """An event that the machine was given at `now`, and what it decided then. Without an event it
    was only looked whether there is work."""

    line: int
    now: float
    event: Event | None
    decisions: tuple[DecisionForm, ...] = ()


class _LimitError(RecordingError):
    """Whatever else is wrong with the file, no more of it is read."""


class Recording:
    """Read once, from its beginning; `warnings` are complete at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []
        self.bytes_read = 0  # of the file as it is, compressed
        self._line = 0
        self._damage = ""  # what of the compressed bytes is not sound
        self._is_whole = False  # whether the compressed bytes have their end

    def __enter__(self) -> "Recording":
        try:
            self._file: BinaryIO = self.path.open("rb")
        except OSError as error:
            raise self._error(f"cannot be read: {error.strerror}") from None
        self._texts = self._decompressed()
        self._lines = self._split()
        try:
            self.header = self._read_header()
        except Exception:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def byte_count(self) -> int:
        return self.path.stat().st_size

    def steps(self, sources: Sequence[Hashable | None]) -> Iterator[Step]:
        """`sources` stand for those of the header."""
        reader = EventReader(sources)
        decode = msgspec.json.Decoder(Line).decode
        step: Step | None = None
        decisions: list[DecisionForm] = []
        decision_bytes = 0
        has_ended = False
        is_older = self.header.version <= older_names.OLDER_VERSION
        for body in self._lines:
            try:
                line = decode(older_names.event_line(body) if is_older else body)
                if isinstance(line, DecisionForm):
                    _check_scores(line)
                    decisions.append(line)
                    decision_bytes += len(body)
                    if decision_bytes > _MOST_MIB_A_LINE * _MIB:
                        raise self._limit(f"the decisions of one event are {_TOO_LONG}")
                    continue
                if isinstance(line, EndLine):
                    has_ended = True
                    self._note_end(line)
                    break
                is_object = isinstance(line, AddedLine | ModifiedLine | DeletedLine)
                if is_object and len(body) > _MOST_MIB_AN_OBJECT * _MIB:
                    raise self._limit(
                        f"holds an object of more than {_MOST_MIB_AN_OBJECT} MiB, which the API "
                        "server does not store"
                    )
                event = reader.event(line)
            except _LimitError:
                raise
            except (msgspec.DecodeError, RecordingError, ValueError, RecursionError) as error:
                number = self._line
                if self._is_damaged():
                    self._line = number - 1
                    break
                why = "it is nested too deeply" if isinstance(error, RecursionError) else error
                raise self._error(f"line {number}: cannot be read: {why}") from None
            if step is not None:
                yield _with(step, decisions)
            elif decisions:
                raise self._error(f"line {self._line}: a decision stands before the first event")
            step, decisions, decision_bytes = Step(self._line, line.now, event), [], 0
        # Of the last event of a torn one, decisions may be missing.
        if step is not None and has_ended:
            yield _with(step, decisions)
        self._note_what_is_missing(has_ended=has_ended)

    def _note_what_is_missing(self, *, has_ended: bool) -> None:
        count = self._line
        if self._is_damaged():
            why = f"is damaged ({self._damage})"
        elif not has_ended:
            why = "has no end: whoever recorded it was killed, or still records"
        else:
            return
        self.warnings.append(f"{self.path.name}: {why}; {count} lines of it can be read")

    def _is_damaged(self) -> bool:
        """Reads all that is left: a checksum stands at the end."""
        for _ in self._texts:
            pass
        return bool(self._damage)

    def _note_end(self, line: EndLine) -> None:
        if line.cut:
            self.warnings.append(
                f"{self.path.name}: was cut after line {self._line}, while it was recorded: "
                f"{line.cut}"
            )

    def _read_header(self) -> Header:
        body = next(self._lines, b"")
        if not body and self._damage:
            raise self._error(f"is damaged in its first line, or is no recording: {self._damage}")
        if not body and not self._is_whole:
            raise self._error("is torn within its first line: nothing of it can be replayed")
        try:
            header = msgspec.json.decode(older_names.header_line(body), type=Header)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            header = Header()
        if header.format != FORMAT:
            raise self._error("is no recording: its first line is not a recording's header")
        if header.version > VERSION:
            raise self._error(
                f"is a recording of version {header.version}, written by Lowtide "
                f"{header.lowtide}; this one reads versions up to {VERSION}"
            )
        if len(header.sources) > _MOST_SOURCES:
            count = len(header.sources)
            raise self._error(f"has {count} sources of readings; at most {_MOST_SOURCES} are read")
        return header

    def _split(self) -> Iterator[bytes]:
        """Whole lines: what stands behind the last line's end is torn."""
        left = bytearray()
        for text in self._texts:
            *ends, begun = text.split(b"\n")
            for end in ends:
                self._line += 1
                yield bytes(left) + end if left else end
                left.clear()
            left += begun
            if len(left) > _MOST_MIB_A_LINE * _MIB:
                self._line += 1
                raise self._limit(f"is {_TOO_LONG}")

    def _decompressed(self) -> Iterator[bytes]:
        decompressor: Any = zlib.decompressobj(_GZIP)
        while not decompressor.eof:
            piece = self._read_piece()
            if not piece:
                return
            while piece and not decompressor.eof:
                before = decompressor.copy()
                try:
                    text = decompressor.decompress(piece, _TEXT_BYTES)
                except zlib.error as error:
                    self._damage = str(error)
                    yield from _before_damage(before, piece)
                    return
                self._is_whole = decompressor.eof
                piece = decompressor.unconsumed_tail
                yield text

    def _read_piece(self) -> bytes:
        try:
            piece = self._file.read(_PIECE_BYTES)
        except OSError as error:
            raise self._error(f"cannot be read: {error.strerror}") from None
        if not self.bytes_read and not piece:
            raise self._error("is empty: nothing was recorded")
        if not self.bytes_read and not piece.startswith(_GZIP_MAGIC):
            raise self._error("is no recording: it is not compressed by gzip")
        self.bytes_read += len(piece)
        return piece

    def _limit(self, text: str) -> RecordingError:
        return _LimitError(f"{self.path.name}: line {self._line}: {text}")

    def _error(self, text: str) -> RecordingError:
        return RecordingError(f"{self.path.name}: {text}")


def _before_damage(decompressor: Any, piece: bytes) -> Iterator[bytes]:
    """Byte by byte, as a decompressor that fails gives nothing of what it was given at once."""
    text = bytearray()
    with suppress(zlib.error):
        for at in range(len(piece)):
            text += decompressor.decompress(piece[at : at + 1])
            if len(text) > _TEXT_BYTES:
                yield bytes(text)
                text.clear()
    yield bytes(text)


def _with(step: Step, decisions: list[DecisionForm]) -> Step:
    return Step(step.line, step.now, step.event, tuple(decisions)) if decisions else step


def _check_scores(decision: DecisionForm) -> None:
    """RecordingError where a comparison with another decision would not find a score."""
    for plugin, scores in decision.scores.items():
        if len(scores) != len(decision.best):
            count, best = len(scores), len(decision.best)
            raise RecordingError(f"{plugin} has {count} scores for the {best} best nodes")
