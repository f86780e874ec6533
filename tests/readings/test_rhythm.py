"""When questions are due again."""

import pytest

from lowtide.readings.rhythm import Rhythm


def asked(rhythm: Rhythm, name: str, now: float, *, is_answered: bool) -> None:
    rhythm.asking([name])
    rhythm.answered(["receive", *([name] if is_answered else [])], now)


@pytest.mark.parametrize(
    ("is_answered", "every_seconds", "due_after_seconds"),
    [
        pytest.param(True, 300.0, 300.0, id="after its interval"),
        pytest.param(False, 300.0, 60.0, id="after a minute where it was not answered"),
        pytest.param(False, 30.0, 30.0, id="not later than its interval"),
    ],
)
def test_a_question_is_asked_again(
    is_answered: bool, every_seconds: float, due_after_seconds: float
) -> None:
    rhythm = Rhythm()
    assert rhythm.is_due("speed", every_seconds, 0.0)
    asked(rhythm, "speed", 0.0, is_answered=is_answered)
    assert not rhythm.is_due("speed", every_seconds, due_after_seconds - 1)
    assert rhythm.is_due("speed", every_seconds, due_after_seconds)


def test_an_answer_ends_the_shorter_interval() -> None:
    rhythm = Rhythm()
    asked(rhythm, "speed", 0.0, is_answered=False)
    asked(rhythm, "speed", 60.0, is_answered=True)
    assert not rhythm.is_due("speed", 300.0, 120.0)


def test_what_is_forgotten_is_due_at_once() -> None:
    rhythm = Rhythm()
    asked(rhythm, "speed", 0.0, is_answered=True)
    rhythm.forget(["speed", "flags"])
    assert rhythm.is_due("speed", 300.0, 1.0)


def test_what_is_not_asked_is_not_unanswered() -> None:
    rhythm = Rhythm()
    asked(rhythm, "speed", 0.0, is_answered=True)
    asked(rhythm, "flags", 15.0, is_answered=True)
    assert not rhythm.is_due("speed", 300.0, 90.0)
