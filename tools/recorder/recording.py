"""Sends cases through the recorder and keeps its answers; tells how far it is.

Called by __main__."""

import gzip
import json
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

Say = Callable[[str], None]
Case = dict[str, Any]


class BadCases(Exception):  # noqa: N818
    """A file of cases cannot be read; the one sentence says which line and why."""


@dataclass(frozen=True, slots=True)
class Recorded:
    answered: int
    problems: tuple[str, ...]


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file of JSON lines, gzipped when its name ends in .gz."""
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            for number, line in enumerate(lines, start=1):
                yield _case(path, number, line)
    except (OSError, EOFError, UnicodeDecodeError) as failure:
        raise BadCases(f"{path} cannot be read: {failure}") from failure


def _case(path: Path, number: int, line: str) -> Case:
    try:
        case = json.loads(line)
    except ValueError as failure:
        raise BadCases(f"{path}, line {number} is not JSON: {failure}") from None
    if not isinstance(case, dict) or not {"id", "family", "scenario"} <= set(case):
        raise BadCases(f"{path}, line {number} is not a case; one has id, family and scenario")
    return case


def write_cases(path: Path, cases: Iterable[Case]) -> int:
    """Writes the same bytes for the same cases, whenever it is."""
    text = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)
    packed = gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode()
    path.write_bytes(packed)
    return text.count("\n")


def record(program: Path, cases: Iterable[Case], *, repeat: int, path: Path, say: Say) -> Recorded:
    """Writes the answered cases to a file, in their order; says what could not be answered."""
    asked = [json.dumps({key: case[key] for key in ("id", "family", "scenario")}) for case in cases]
    process = subprocess.Popen(
        [str(program), f"-repeat={repeat}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    problems: list[str] = []
    threads = (
        threading.Thread(target=_feed, args=(process.stdin, asked)),
        threading.Thread(target=_collect, args=(process.stderr, problems)),
    )
    with process:
        for thread in threads:
            thread.start()
        answered = [json.loads(line) for line in _counted(process.stdout, len(asked), say)]
        for thread in threads:
            thread.join()
    if process.returncode:
        raise BadCases(f"the recorder ended with {process.returncode}: {'; '.join(problems[-3:])}")
    write_cases(path, answered)
    return Recorded(len(answered), tuple(problems))


def _feed(stream: IO[str], lines: Iterable[str]) -> None:
    try:
        with stream:
            for line in lines:
                stream.write(line + "\n")
    except BrokenPipeError:
        pass  # the recorder ended early, and its status tells


def _collect(stream: IO[str], problems: list[str]) -> None:
    problems += [line.rstrip("\n") for line in stream]


def _counted(stream: IO[str], of: int, say: Say) -> Iterator[str]:
    step = max(1, of // 20)
    for number, line in enumerate(stream, start=1):
        yield line
        if number % step == 0 or number == of:
            say(f"recorder: {number} of {of} cases")
