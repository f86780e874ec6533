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
    is_met: bool | None  # None: there is nothing to tell it by

    def __str__(self) -> str:
        is_met = {True: "is met", False: "is MISSED", None: "is NOT MEASURED"}[self.is_met]
        return f"{self.found}; the goal, {self.goal}, {is_met}"

    def __rich__(self) -> str:
        return str(self)


def closing(compared: Sequence[Compared], failed: Sequence[str] = ()) -> Iterator[str]:
    """How many goals were met, and each that was not; `failed` benchmarks have told nothing."""
    missed = [each for each in compared if each.is_met is False]
    unknown = [each for each in compared if each.is_met is None]
    open_ones = [*missed, *unknown, *(f"{name}: it failed, see above" for name in failed)]
    if open_ones:
        counts = [f"{sum(each.is_met is True for each in compared)} met", f"{len(missed)} missed"]
        counts += [f"{len(unknown)} not measured"] if unknown else []
        counts += [f"{len(failed)} benchmarks failed"] if failed else []
        yield f"goals: {', '.join(counts)}:"
        yield from (f"  {each}" for each in open_ones)
    elif compared:
        yield f"goals: {len(compared)} met, none missed"


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median of the rounds, and if they are more than one, the lowest and the highest."""
    median = f"{statistics.median(values):.{digits}f}"
    if len(values) == 1:
        return median
    return f"{median} ({min(values):.{digits}f} to {max(values):.{digits}f})"
