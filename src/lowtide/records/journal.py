"""Decision records on disk: one JSON object per line; when the file is full it becomes FILE.1, and
what was FILE.1 before goes to FILE.2, and so on, up to a number of files."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from lowtide.records import older_names
from lowtide.records.record import DecisionRecord

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
_MOST_MIB_A_LINE = 16
KEPT_FILES = 3  # besides the one that is written


class JournalError(ValueError):
    """A file that is no journal; the sentence says where."""


class Journal:
    """`write` appends; OSError where the disk is full or the folder is gone, and nothing is lost
    that was there before."""

    def __init__(
        self, path: Path, max_bytes: int = DEFAULT_MAX_BYTES, kept_files: int = KEPT_FILES
    ) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._kept_files = kept_files

    def write(self, records: Iterable[DecisionRecord]) -> None:
        file = self._opened()
        try:
            size = file.seek(0, os.SEEK_END)
            for record in records:
                line = msgspec.json.encode(record) + b"\n"
                if size and size + len(line) > self._max_bytes:
                    file.close()
                    self._rotate()
                    file, size = self._opened(), 0
                size += file.write(line)
        finally:
            file.close()

    def _opened(self) -> BinaryIO:
        """At the beginning of a line; only the user who writes it may read it."""
        number = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        file = os.fdopen(number, "ab+")
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")  # what was cut there is a line of its own
        return file

    def _rotate(self) -> None:
        for number in range(self._kept_files, 0, -1):
            older = rotated(self._path, number)
            newer = rotated(self._path, number - 1)
            if newer.exists():
                newer.replace(older)


def rotated(path: Path, number: int) -> Path:
    return path if number == 0 else path.with_name(f"{path.name}.{number}")


def read_journal(path: Path) -> Iterator[DecisionRecord]:
    """The oldest first, with what was rotated away. Lines that were cut, by a full disk or a kill,
    are left out; JournalError where no other is left."""
    numbers = [0]
    while rotated(path, numbers[-1] + 1).exists():
        numbers.append(numbers[-1] + 1)
    is_journal = False
    unsound = None
    for number in reversed(numbers):
        file = rotated(path, number)
        unsound_here = None
        for line_number, found in _read(file):
            if isinstance(found, DecisionRecord):
                is_journal = True
                yield found
            elif unsound_here is None:
                unsound_here = f"{file}:{line_number}: no decision record: {found}"
        unsound = unsound_here or unsound
    if unsound is not None and not is_journal:
        raise JournalError(f"{unsound}; expected a file of `lowtide scheduler --decisions-file`")


def _read(path: Path) -> Iterator[tuple[int, DecisionRecord | str]]:
    """Each line by its number, or why it is no record."""
    decoder = msgspec.json.Decoder(DecisionRecord)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(_lines(file), start=1):
                if len(line) > _MOST_MIB_A_LINE * 2**20:
                    yield number, f"it is longer than {_MOST_MIB_A_LINE} MiB"
                    continue
                try:
                    yield number, decoder.decode(older_names.record_line(line))
                except msgspec.DecodeError as error:
                    yield number, str(error)
                except RecursionError:
                    yield number, "it is nested too deeply"
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error.strerror}") from None


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Of a line that is too long, only the beginning."""
    longest = _MOST_MIB_A_LINE * 2**20 + 1
    while line := file.readline(longest):
        rest = line
        while len(rest) == longest and not rest.endswith(b"\n"):
            rest = file.readline(longest)
        yield line
