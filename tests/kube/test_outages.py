"""What is told while watches cannot follow: enough, and not the same again and again."""

import logging

import pytest
from tests.kube.conftest import ManualClock

from lowtide.kube.errors import ApiError, KubeError, NoAnswer, NotConnected
from lowtide.kube.outages import TOLD_EVERY_SECONDS, Outages

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"


def refused(path: str) -> NotConnected:
    return NotConnected(f"No answer from k to GET {path}: refused", "No answer from k: refused")


def slow(path: str) -> NoAnswer:
    return NoAnswer(f"No answer from k to GET {path}: slow", "No answer from k: slow")


class Said:
    """The lines that were logged since it was last asked."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, logger="kube")
        self._caplog = caplog

    def lines(self) -> list[str]:
        found = [
            " ".join([record.getMessage(), *map(str, record.__dict__["lowtide_fields"].values())])
            for record in self._caplog.records
            if record.name == "kube"
        ]
        self._caplog.clear()
        return found


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Said:
    return Said(caplog)


@pytest.fixture
def outages(clock: ManualClock) -> Outages:
    return Outages(clock)


NOT_REACHED = "Cannot reach the cluster, trying again No answer from k: refused"


def test_a_server_that_is_away_is_told_of_once_for_all_and_once_a_minute(
    outages: Outages, said: Said, clock: ManualClock
) -> None:
    for path in (PODS, NODES, PODS):
        outages.failed(path, refused(path))
    assert said.lines() == [NOT_REACHED]
    clock.advance(TOLD_EVERY_SECONDS - 0.1)
    outages.failed(PODS, refused(PODS))
    assert said.lines() == []
    clock.advance(0.1)
    for path in (NODES, PODS):
        outages.failed(path, refused(path))
    assert said.lines() == [NOT_REACHED]


def test_another_reason_is_told_at_once(outages: Outages, said: Said) -> None:
    errors = [refused(PODS), ApiError(503, "Unavailable", "starting"), refused(PODS)]
    for error in errors:
        outages.failed(PODS, error)
    assert said.lines() == [
        NOT_REACHED,
        f"Cannot follow {PODS}, trying again starting (HTTP 503 Unavailable)",
    ]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        pytest.param(slow, "No answer from k: slow", id="silence"),
        pytest.param(lambda path: KubeError("no list"), "no list", id="any other"),
    ],
)
def test_what_may_concern_some_paths_names_all_of_them_within_a_minute(
    outages: Outages, said: Said, clock: ManualClock, error: object, why: str
) -> None:
    assert callable(error)
    paths = [PODS, NODES, "/c", "/d", "/e"]
    for path in paths:
        outages.failed(path, error(path))
    assert said.lines() == [f"Cannot follow {PODS}, trying again {why}"]
    clock.advance(TOLD_EVERY_SECONDS)
    outages.failed("/e", error("/e"))
    assert said.lines() == [f"Cannot follow {PODS}, {NODES}, /c and 2 more, trying again {why}"]


def test_an_end_is_told_when_all_answer_again_and_the_next_one_at_once(
    outages: Outages, said: Said
) -> None:
    outages.failed(PODS, refused(PODS))
    outages.failed(NODES, refused(NODES))
    outages.ended(PODS)
    outages.ended("/never/failed")
    assert said.lines() == [NOT_REACHED]
    outages.ended(NODES)
    outages.ended(NODES)
    assert said.lines() == ["The cluster answers again"]
    outages.failed(PODS, refused(PODS))
    assert said.lines() == [NOT_REACHED]
