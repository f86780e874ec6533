"""Times as API objects spell them."""

import pytest

from lowtide.objects.times import epoch_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("1970-01-01T00:01:00Z", 60.0, id="are seconds since 1970"),
        pytest.param("soon", None, id="are none where the text is no time"),
        pytest.param("0001-01-01T00:00:00", None, id="are none where they are too early"),
        pytest.param("1970-01-01T00:01:00Z" + " " * 100, None, id="are none where it is long"),
    ],
)
def test_times(text: str, seconds: float | None) -> None:
    assert epoch_seconds(text) == seconds
