"""Answers as arrays: what is kept of them, and what is forgotten."""

from tests.readings.conftest import NOW

from lowtide.readings.answers import KeptAnswers
from lowtide.readings.series import Series


def series(*pairs: tuple[str, str], value: float = 1.0) -> list[Series]:
    """By instance and device, with a label that nobody looks at."""
    return [
        Series({"instance": instance, "device": device, "pod": "p"}, value, NOW)
        for instance, device in pairs
    ]


def test_answers_about_the_same_devices_share_their_shape() -> None:
    kept = KeptAnswers()
    kept.take("receive", series(("x", "eth0"), ("y", "eth0"), ("x", "eth1")))
    kept.take("transmit", series(("x", "eth0"), ("y", "eth0"), ("x", "eth1"), value=2.0))
    kept.take("speed", series(("y", "eth0")))
    receive, transmit, speed = map(kept.answer_named, ("receive", "transmit", "speed"))
    assert receive.shape is transmit.shape
    assert (receive.value.tolist(), transmit.value.tolist()) == ([1.0] * 3, [2.0] * 3)
    assert (receive.shape.target.tolist(), receive.shape.device.tolist()) == ([0, 1, 0], [0, 0, 1])
    assert (speed.shape.target.tolist(), speed.shape.device.tolist()) == ([1], [0])


def test_what_was_never_answered_is_empty() -> None:
    assert KeptAnswers().answer_named("speed").value.tolist() == []


def test_tidying_forgets_what_no_answer_has_any_more() -> None:
    kept = KeptAnswers()
    kept.take("receive", series(("x", "eth0"), ("y", "eth1")))
    kept.take("receive", series(("z", "eth2"), ("y", "eth1")))
    kept.tidy()
    assert kept.targets == {("", "", "", "y", ""): 0, ("", "", "", "z", ""): 1}
    assert kept.devices == {"eth1": 0, "eth2": 1}
    shape = kept.answer_named("receive").shape
    assert (shape.target.tolist(), shape.device.tolist()) == ([1, 0], [1, 0])
