"""When questions are due again."""

import pytest

from lowtide.readings.due_times import DueTimes


def asked(due_times: DueTimes, name: str, now: float, *, is_answered: bool) -> None:
    due_times.asking([name])
    due_times.answered(["receive", *([name] if is_answered else [])], now)


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
    due_times = DueTimes()
    assert due_times.is_due("speed", every_seconds, 0.0)
    asked(due_times, "speed", 0.0, is_answered=is_answered)
    assert not due_times.is_due("speed", every_seconds, due_after_seconds - 1)
    assert due_times.is_due("speed", every_seconds, due_after_seconds)


def test_an_answer_ends_the_shorter_interval() -> None:
    due_times = DueTimes()
    asked(due_times, "speed", 0.0, is_answered=False)
    asked(due_times, "speed", 60.0, is_answered=True)
    assert not due_times.is_due("speed", 300.0, 120.0)


def test_what_is_forgotten_is_due_at_once() -> None:
    due_times = DueTimes()
    asked(due_times, "speed", 0.0, is_answered=True)
    due_times.forget(["speed", "flags"])
    assert due_times.is_due("speed", 300.0, 1.0)


def test_what_is_not_asked_is_not_unanswered() -> None:
    due_times = DueTimes()
    asked(due_times, "speed", 0.0, is_answered=True)
    asked(due_times, "flags", 15.0, is_answered=True)
    assert not due_times.is_due("speed", 300.0, 90.0)
