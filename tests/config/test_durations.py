"""Go durations as seconds."""

import pytest

from lowtide.config.durations import seconds_from_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("15s", 15.0, id="reads seconds"),
        pytest.param("1h2m", 3720.0, id="adds up hours and minutes"),
        pytest.param("1.5h", 5400.0, id="reads a fraction"),
        pytest.param(".5s", 0.5, id="reads a fraction without a leading digit"),
        pytest.param("2m0.25s", 120.25, id="reads a fraction after a whole part"),
        pytest.param("300ms", 0.3, id="reads milliseconds"),
        pytest.param("2µs", 2e-6, id="reads the micro sign"),
        pytest.param("2μs", 2e-6, id="reads the Greek mu"),
        pytest.param("4ns", 4e-9, id="reads nanoseconds"),
        pytest.param("-1m", -60.0, id="reads a negative duration"),
        pytest.param("+1m", 60.0, id="reads an explicit plus"),
        pytest.param("0", 0.0, id="reads zero without a unit"),
        pytest.param("2562047h", 9223369200.0, id="reads the longest that Go can hold"),
    ],
)
def test_a_duration(text: str, seconds: float) -> None:
    assert seconds_from_duration(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("15", id="rejects a number without a unit"),
        pytest.param("", id="rejects nothing"),
        pytest.param("-", id="rejects a lone sign"),
        pytest.param("s", id="rejects a lone unit"),
        pytest.param("1d", id="rejects days"),
        pytest.param("1 s", id="rejects a space"),
        pytest.param("1s ", id="rejects a trailing space"),
        pytest.param("2562048h", id="rejects what Go cannot hold"),
        pytest.param("9" * 400 + "h", id="rejects what no float can hold"),
    ],
)
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        seconds_from_duration(text)
    assert str(caught.value) == f'"{text}" is not a duration such as 15s or 1h2m'


@pytest.mark.timeout(60)  # where time grows with the square of the length, it takes hours
def test_a_long_text_is_rejected_at_once() -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds_from_duration("1" * 2_000_000)
