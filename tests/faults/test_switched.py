"""The servers that the fault suite breaks: each mood is met by who asks, and is over afterwards."""

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from faults.switched import BROKEN, SLOW_SECONDS, Mood, Switched

REJECTED = b"ConnectionRefusedError"


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def switched(slept: list[float]) -> Iterator[Switched]:
    switched = Switched(
        lambda _: b"well",
        lambda _: b"nonsense",
        always={"/always": b"here"},
        sleep=slept.append,
    )
    with switched.server:
        yield switched


def said(switched: Switched, path: str = "/") -> bytes:
    """The answer, or why there is none."""
    try:
        with urllib.request.urlopen(f"{switched.server.url}{path}", timeout=10) as response:
            return bytes(response.read())
    except urllib.error.URLError as error:
        return type(error.reason).__name__.encode()


@pytest.mark.parametrize(
    ("mood", "want"),
    [
        pytest.param(Mood.DOWN, (REJECTED, REJECTED, []), id="rejects connections when it is down"),
        pytest.param(
            Mood.SLOW, (b"well", b"here", [SLOW_SECONDS]), id="takes its time when it is slow"
        ),
        pytest.param(Mood.WRONG, (b"nonsense", b"here", []), id="talks nonsense when it is wrong"),
    ],
)
def test_while_it_is_broken_it(
    switched: Switched, slept: list[float], mood: Mood, want: tuple[bytes, bytes, list[float]]
) -> None:
    with switched.broken(mood):
        assert (said(switched), said(switched, "/always"), slept) == want


@pytest.mark.parametrize("mood", BROKEN)
def test_afterwards_it_is_well(switched: Switched, slept: list[float], mood: Mood) -> None:
    with switched.broken(mood):
        pass
    assert (said(switched), slept) == (b"well", [])
