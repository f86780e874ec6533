"""Since when a watch does not keep up, and why."""

import pytest

from lowtide.kube.following import Following, Lost
from lowtide.testing import ManualClock

REFUSED = "the API server is away: Connection refused"


def lost(since: float) -> Lost:
    return Lost("pods", since, REFUSED)


@pytest.mark.parametrize(
    ("course", "told"),
    [
        pytest.param([], None, id="nothing while nothing is wrong"),
        pytest.param([("failed", 0)], None, id="nothing of a cut that has only just happened"),
        pytest.param([("failed", 2)], 0.0, id="what has lasted"),
        pytest.param([("failed", 1), ("failed", 1)], 0.0, id="the first of several failures"),
        pytest.param([("failed", 2), ("opened", 0)], 0.0, id="not yet that it is open again"),
        pytest.param([("failed", 2), ("opened", 1)], None, id="nothing once it stays open"),
        pytest.param([("failed", 2), ("renewed", 0)], None, id="nothing once all is listed"),
        pytest.param(
            [("failed", 2), ("opened", 0.5), ("failed", 2)],
            0.0,
            id="that it opens and ends at once",
        ),
        pytest.param(
            [("failed", 2), ("opened", 60), ("failed", 2)], 62.0, id="a later cut by its own time"
        ),
        pytest.param(
            [("failed", 2), ("renewed", 60), ("failed", 2)], 62.0, id="a cut after a list likewise"
        ),
    ],
)
def test_it_tells(course: list[tuple[str, float]], told: float | None) -> None:
    clock = ManualClock(0.0)
    following = Following("pods", clock)
    for what, seconds in course:
        match what:
            case "failed":
                following.failed(REFUSED)
            case "opened":
                following.opened()
            case _:
                following.renewed()
        clock.advance(seconds)
    assert following.lost == (None if told is None else lost(told))
