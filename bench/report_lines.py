"""What reports of benchmarks are made of: tables, and lines that may compare with a goal.

`make bench` prints them, and tells in the end how many goals were met."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType

Report = Iterator[RenderableType]


@dataclass(frozen=True, slots=True)
class Compared:
    """A line of what was found, beside what was aimed at."""

    found: str
    goal: str
    is_met: bool

    def __str__(self) -> str:
        return f"{self.found}; the goal, {self.goal}, is {'met' if self.is_met else 'MISSED'}"

    def __rich__(self) -> str:
        return str(self)


def closing(compared: Sequence[Compared]) -> Iterator[str]:
    """How many goals were met, and each that was not."""
    missed = [each for each in compared if not each.is_met]
    if missed:
        yield f"goals: {len(compared) - len(missed)} met, {len(missed)} missed:"
        yield from (f"  {each}" for each in missed)
    elif compared:
        yield f"goals: {len(compared)} met, none missed"


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median of the rounds, and if they are more than one, the lowest and the highest."""
    median = f"{statistics.median(values):.{digits}f}"
    if len(values) == 1:
        return median
    return f"{median} ({min(values):.{digits}f} to {max(values):.{digits}f})"
