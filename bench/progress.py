"""What `make bench` runs now and how long the rest will take: one line that is kept up to date on a
terminal, else a line for each step."""

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status

# Seconds that benchmarks took on two cores, by the beginning of their names; the longest counts.
TOOK_SECONDS = {
    "": 60.0,
    "drain": 260.0,
    "drain/affinity": 420.0,
    "drain/anti-affinity": 420.0,
    "drain/basic": 430.0,
    "drain/mixed-sizes": 430.0,
    "drain/preemption": 420.0,
    "burst": 420.0,
    "cycle": 60.0,
    "cycle/poll": 120.0,
    "decide": 15.0,
    "extender": 420.0,
    "growth": 10.0,
    "growth/nodes/15000": 15.0,
    "growth/nodes/50000": 45.0,
    "growth/pods/100000": 20.0,
    "page": 60.0,
    "replay": 200.0,
    "ready": 240.0,
    "steady": 360.0,
    "traffic": 270.0,
}
REFRESH_SECONDS = 1.0


class Progress:
    """`begin` each benchmark, `say` its steps. The pace so far corrects what is expected."""

    def __init__(
        self,
        console: Console,
        expected_seconds: Mapping[str, float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._clock = clock
        self._expected_seconds = expected_seconds
        self._later = list(expected_seconds)
        self._now = ""
        self._line = ""
        self._done_seconds = 0.0
        self._begun_at = self._began_at = clock()
        self._status = Status("", console=console) if console.is_terminal else None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._keep_up_to_date, daemon=True)

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._is_over.set()
            self._thread.join()
            self._status.stop()

    def begin(self, name: str) -> None:
        self._done_seconds += self._expected_seconds.get(self._now, 0.0)
        self._began_at = self._clock()
        self._now = name
        self._later.remove(name)

    def say(self, line: str) -> None:
        self._line = line
        if self._status is None:
            self._console.print(self._text(), highlight=False)
        else:
            self._status.update(self._text())

    def left_seconds(self) -> float:
        now = self._clock()
        pace = (self._began_at - self._begun_at) / self._done_seconds if self._done_seconds else 1.0
        rest = pace * self._expected_seconds[self._now] - (now - self._began_at)
        return max(rest, 0.0) + pace * sum(self._expected_seconds[name] for name in self._later)

    def _text(self) -> str:
        return f"{self._line} about {_told(self.left_seconds())} left"

    def _keep_up_to_date(self) -> None:
        assert self._status is not None
        while not self._is_over.wait(REFRESH_SECONDS):
            self._status.update(self._text())


def took_seconds(name: str) -> float:
    return TOOK_SECONDS[max(filter(name.startswith, TOOK_SECONDS), key=len)]


def _told(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
