"""Faults that a test or the demo asks of the embedded cluster: wrong answers, no answers, delays.

Set from outside through LocalCluster.faults, consulted by its HTTP servers before each answer."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Drop(Enum):
    """When the connection is closed without an answer: has the write happened or not."""

    BEFORE_APPLYING = "before"
    AFTER_APPLYING = "after"


@dataclass(slots=True)
class Fault:
    method: str
    path_suffix: str
    times: int
    status: int | None = None
    retry_after_seconds: int | None = None
    message: str = ""
    drop: Drop | None = None
    delay_seconds: float = 0.0

    def matches(self, method: str, path: str) -> bool:
        return self.method in ("*", method) and path.endswith(self.path_suffix)


class Faults:
    """Each fault is met by the next `times` requests whose method and path's end match."""

    def __init__(self) -> None:
        self.met: list[tuple[str, str]] = []
        self._faults: list[Fault] = []
        self._cutters: list[Callable[[], None]] = []

    def answer(
        self,
        method: str,
        path_suffix: str,
        *,
        status: int,
        times: int = 1,
        retry_after_seconds: int | None = None,
        message: str = "a fault asked for by a test",
    ) -> None:
        """Answers with `status` and does nothing else, also where that says success; "*" stands
        for every method."""
        self._faults.append(
            Fault(
                method,
                path_suffix,
                times,
                status=status,
                retry_after_seconds=retry_after_seconds,
                message=message,
            )
        )

    def drop(self, method: str, path_suffix: str, *, when: Drop, times: int = 1) -> None:
        """Closes the connection without an answer, before or after the request took effect."""
        self._faults.append(Fault(method, path_suffix, times, drop=when))

    def delay(self, method: str, path_suffix: str, *, seconds: float, times: int = 1) -> None:
        """Takes `seconds` before the request is looked at."""
        self._faults.append(Fault(method, path_suffix, times, delay_seconds=seconds))

    def cut_watches(self) -> None:
        """Closes the connection of every open watch, in the middle of the stream."""
        for cut in list(self._cutters):
            cut()

    def clear(self) -> None:
        self._faults.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """The fault that this request meets, counted as met."""
        for fault in self._faults:
            if fault.matches(method, path):
                fault.times -= 1
                if fault.times == 0:
                    self._faults.remove(fault)
                self.met.append((method, path))
                return fault
        return None

    def on_cut(self, cut: Callable[[], None]) -> Callable[[], None]:
        """Registers an open watch; call the result when it has ended by itself."""
        self._cutters.append(cut)
        return lambda: self._cutters.remove(cut)
