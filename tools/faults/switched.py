"""A server that a fault breaks and fixes: it answers well, or is down, slow, or talks nonsense.

Used by measuring_faults for all that readings come from."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum

from realparts.answering import Answer, AnsweringServer, Question
from realparts.certificates import KeyPair

SLOW_SECONDS = 20.0


class Mood(StrEnum):
    WELL = "well"
    DOWN = "down"
    SLOW = "slow"
    WRONG = "wrong"


BROKEN = (Mood.DOWN, Mood.SLOW, Mood.WRONG)


class Switched:
    """`always` is answered at once in every mood but down, by path."""

    def __init__(
        self,
        well: Answer,
        wrong: Answer,
        *,
        always: Mapping[str, bytes] | None = None,
        certificate: KeyPair | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.server = AnsweringServer(self._answer, certificate=certificate)
        self._well = well
        self._wrong = wrong
        self._always = always or {}
        self._sleep = sleep
        self._mood = Mood.WELL

    @contextmanager
    def broken(self, mood: Mood) -> Iterator[None]:
        """In this mood, and well again afterwards; while it is down, connections are rejected."""
        self._mood = mood
        if mood is Mood.DOWN:
            self.server.stop()
        try:
            yield
        finally:
            self._mood = Mood.WELL
            if mood is Mood.DOWN:
                self.server.start()

    def _answer(self, question: Question) -> bytes | None:
        if question.path in self._always:
            return self._always[question.path]
        match self._mood:
            case Mood.SLOW:
                self._sleep(SLOW_SECONDS)
            case Mood.WRONG:
                return self._wrong(question)
        return self._well(question)
