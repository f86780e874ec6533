"""Tracks when each infrequent query was last sent and when it is due again.

The meter uses it. Times come from a monotonic clock."""

import math
from collections.abc import Iterable
from typing import Final

UNANSWERED_AGAIN_SECONDS: Final = 60.0


class DueTimes:
    def __init__(self) -> None:
        self._asked_at: dict[str, float] = {}
        self._unanswered: set[str] = set()
        self._asking: tuple[str, ...] = ()

    def is_due(self, name: str, every_seconds: float, now: float) -> bool:
        """True if the query should be sent now. An unanswered query is retried after at most
        UNANSWERED_AGAIN_SECONDS, but not at every poll, because it delays the others."""
        if name in self._unanswered:
            every_seconds = min(every_seconds, UNANSWERED_AGAIN_SECONDS)
        return now - self._asked_at.get(name, -math.inf) >= every_seconds

    def asking(self, names: Iterable[str]) -> None:
        """Record the queries that are about to be sent."""
        self._asking = tuple(names)

    def forget(self, names: Iterable[str]) -> None:
        """Make these queries due at once."""
        for name in names:
            self._asked_at.pop(name, None)

    def answered(self, names: Iterable[str], now: float) -> None:
        """Record that these queries were answered, and that the others passed to `asking` were not.
        The caller skips this if no query was answered: then Prometheus was not reached."""
        answered = set(names)
        self._asked_at.update(dict.fromkeys((*answered, *self._asking), now))
        self._unanswered = (self._unanswered | set(self._asking)) - answered
        self._asking = ()
