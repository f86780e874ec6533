"""When each of the questions that are seldom asked was asked last, and when it is due again.

The meter asks; time is by a clock that never jumps."""

import math
from collections.abc import Iterable
from typing import Final

UNANSWERED_AGAIN_SECONDS: Final = 60.0


class Rhythm:
    def __init__(self) -> None:
        self._asked_at: dict[str, float] = {}
        self._unanswered: set[str] = set()
        self._asking: tuple[str, ...] = ()

    def is_due(self, name: str, every_seconds: float, now: float) -> bool:
        """One that was not answered is left alone for a while: it makes the others wait."""
        if name in self._unanswered:
            every_seconds = min(every_seconds, UNANSWERED_AGAIN_SECONDS)
        return now - self._asked_at.get(name, -math.inf) >= every_seconds

    def asking(self, names: Iterable[str]) -> None:
        """What the next answers are to."""
        self._asking = tuple(names)

    def forget(self, names: Iterable[str]) -> None:
        """They are due at once."""
        for name in names:
            self._asked_at.pop(name, None)

    def answered(self, names: Iterable[str], now: float) -> None:
        """These of what was asked, and the others not. Where nothing at all is answered, nobody is
        there to be asked, and this is not called."""
        answered = set(names)
        self._asked_at.update(dict.fromkeys((*answered, *self._asking), now))
        self._unanswered = (self._unanswered | set(self._asking)) - answered
        self._asking = ()
