import pytest

from lowtide.localcluster.timestamps import age_text, timestamp, unix_seconds


def test_seconds_go_to_text_and_back() -> None:
    assert timestamp(1_700_000_000.9) == "2023-11-14T22:13:20Z"
    assert unix_seconds("2023-11-14T22:13:20Z") == 1_700_000_000.0
    assert unix_seconds("2023-11-14T22:13:20.500000Z") == 1_700_000_000.5


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        pytest.param(-3, "0s", id="shows nothing before its time"),
        pytest.param(119, "119s", id="counts seconds up to two minutes"),
        pytest.param(200, "3m20s", id="adds seconds to few minutes"),
        pytest.param(3000, "50m", id="drops seconds of many minutes"),
        pytest.param(3 * 3600 + 120, "3h2m", id="adds minutes to few hours"),
        pytest.param(30 * 3600, "30h", id="drops minutes of many hours"),
        pytest.param(3 * 86400 + 3600, "3d1h", id="adds hours to few days"),
        pytest.param(300 * 86400, "300d", id="counts days at last"),
    ],
)
def test_age(seconds: float, want: str) -> None:
    assert age_text(seconds) == want
