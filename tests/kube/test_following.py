"""Since when watches do not keep up, and why: what the page is told, and what is logged of it.

That is enough, and not the same again and again."""

import logging
import weakref
from collections.abc import Callable

import pytest

from lowtide.kube.errors import ApiError, KubeError, NoAnswer, NotConnected
from lowtide.kube.following import TOLD_EVERY_SECONDS, Following, Outages, StaleWatches
from lowtide.objects.kinds import NODE, POD, Kind
from lowtide.objects.pod import Pod
from lowtide.testing import ManualClock

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
FORBIDDEN = "pods are not for you (HTTP 403 Forbidden)"


def rejected(path: str) -> NotConnected:
    return NotConnected(f"No answer from k to GET {path}: rejected", "No answer from k: rejected")


def slow(path: str) -> NoAnswer:
    return NoAnswer(f"No answer from k to GET {path}: slow", "No answer from k: slow")


def starting(_: str = "") -> ApiError:
    return ApiError(503, "Unavailable", "starting")


def fail(*followings: Following, by: Callable[[str], KubeError] = rejected) -> None:
    for following in followings:
        following.failed(by(following.path))


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
def clock() -> ManualClock:
    return ManualClock(0.0)


@pytest.fixture
def outages(clock: ManualClock) -> Outages:
    return Outages(clock)


@pytest.fixture
def pods(outages: Outages) -> Following:
    return outages.following(POD)


@pytest.fixture
def nodes(outages: Outages) -> Following:
    return outages.following(NODE)


REJECTED = str(rejected(PODS))


@pytest.mark.parametrize(
    ("course", "told"),
    [
        pytest.param([], None, id="nothing while nothing is wrong"),
        pytest.param([("failed", 0)], None, id="nothing of a cut that has only just happened"),
        pytest.param([("failed", 2)], (0.0, REJECTED), id="what has lasted"),
        pytest.param(
            [("failed", 1), ("failed", 1)], (0.0, REJECTED), id="the first of several failures"
        ),
        pytest.param(
            [("failed", 2), ("opened", 0)], (0.0, REJECTED), id="not yet that it is open again"
        ),
        pytest.param([("failed", 2), ("opened", 1)], None, id="nothing once it stays open"),
        pytest.param([("failed", 2), ("answered", 0)], None, id="nothing once it is answered"),
        pytest.param(
            [("failed", 2), ("opened", 0.5), ("ended", 0), ("failed", 2)],
            (0.0, REJECTED),
            id="that it opens and ends at once",
        ),
        pytest.param(
            [("failed", 2), ("opened", 60), ("ended", 0), ("failed", 2)],
            (62.0, REJECTED),
            id="a later cut by its own time",
        ),
        pytest.param(
            [("failed", 2), ("answered", 60), ("failed", 2)],
            (62.0, REJECTED),
            id="a cut after an answer likewise",
        ),
        pytest.param(
            [("failed", 5), ("opened", 400), ("ended", 0), ("opened", 0)],
            None,
            id="nothing when a watch that had stayed open is followed by the next",
        ),
        pytest.param(
            [("rejected", 5)],
            None,
            id="nothing of a kind that there never was, or that never might",
        ),
        pytest.param(
            [("failed", 5), ("rejected", 5)], None, id="nor of one that answers so after an outage"
        ),
        pytest.param(
            [("rejected", 5), ("failed", 2)],
            (5.0, REJECTED),
            id="after such an answer, an outage by its own time",
        ),
        pytest.param(
            [("answered", 1), ("failed", 5), ("rejected", 0)],
            (1.0, FORBIDDEN),
            id="that what was listed before is rejected now, since nothing is heard of it",
        ),
        pytest.param(
            [("answered", 1), ("rejected", 5), ("rejected", 5)],
            (1.0, FORBIDDEN),
            id="that it is rejected, without an outage before",
        ),
    ],
)
def test_it_tells(
    outages: Outages,
    pods: Following,
    clock: ManualClock,
    course: list[tuple[str, float]],
    told: tuple[float, str] | None,
) -> None:
    for what, seconds in course:
        match what:
            case "failed":
                fail(pods)
            case "rejected":
                pods.rejected(FORBIDDEN)
            case "opened":
                pods.opened()
            case "ended":
                pods.ended()
            case _:
                pods.answered()
        clock.advance(seconds)
    want = None if told is None else StaleWatches(told[0], ["pods"], told[1])
    assert outages.stale_watches() == want


def test_of_several_it_is_told_since_when_and_why_the_first_does_not_keep_up(
    outages: Outages, pods: Following, nodes: Following, clock: ManualClock
) -> None:
    fail(nodes)
    clock.advance(10)
    fail(pods, by=slow)
    clock.advance(10)
    assert outages.stale_watches() == StaleWatches(0.0, ["pods", "nodes"], str(rejected(NODES)))
    nodes.answered()
    assert outages.stale_watches() == StaleWatches(10.0, ["pods"], str(slow(PODS)))


def test_what_was_never_listed_is_told_with_its_own_reason(
    outages: Outages, pods: Following, nodes: Following
) -> None:
    assert outages.never_listed() == {"pods": "", "nodes": ""}
    fail(pods, nodes)
    assert outages.never_listed() == dict.fromkeys(["pods", "nodes"], "No answer from k: rejected")
    pods.rejected(FORBIDDEN)
    nodes.answered()
    fail(nodes)
    assert outages.never_listed() == {"pods": FORBIDDEN}


@pytest.mark.parametrize(
    ("open_seconds", "has_stayed"),
    [
        pytest.param(1.0, True, id="so long that it brings something"),
        pytest.param(0.9, False, id="not that long"),
        pytest.param(None, False, id="never, however long the answer took"),
    ],
)
def test_a_watch_has_stayed_open(
    pods: Following, clock: ManualClock, open_seconds: float | None, has_stayed: bool
) -> None:
    clock.advance(30)
    if open_seconds is not None:
        pods.opened()
        clock.advance(open_seconds)
    assert pods.ended() is has_stayed
    clock.advance(30)
    assert not pods.ended()


# What is logged

NOT_REACHED = "Cannot reach the cluster, trying again No answer from k: rejected"
NOT_FOLLOWED = f"Cannot follow {PODS}, trying again starting (HTTP 503 Unavailable)"
AGAIN = "The cluster answers again"


def test_a_server_that_is_away_is_told_of_once_for_all_and_once_a_minute(
    pods: Following, nodes: Following, said: Said, clock: ManualClock
) -> None:
    fail(pods, nodes, pods)
    assert said.lines() == [NOT_REACHED]
    clock.advance(TOLD_EVERY_SECONDS - 0.1)
    fail(pods)
    assert said.lines() == []
    clock.advance(0.1)
    fail(nodes, pods)
    assert said.lines() == [NOT_REACHED]


def test_another_reason_is_told_at_once(pods: Following, said: Said) -> None:
    for error in (rejected, starting, rejected):
        fail(pods, by=error)
    assert said.lines() == [NOT_REACHED, NOT_FOLLOWED]


def test_one_cut_of_what_was_listed_is_ordinary(pods: Following, said: Said) -> None:
    pods.answered()
    fail(pods, by=slow)
    pods.answered()
    assert said.lines() == []
    fail(pods, pods, by=slow)
    assert said.lines() == [f"Cannot follow {PODS}, trying again No answer from k: slow"]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        pytest.param(slow, "No answer from k: slow", id="silence"),
        pytest.param(lambda path: KubeError("no list"), "no list", id="any other"),
    ],
)
def test_what_may_concern_some_paths_names_all_of_them_within_a_minute(
    outages: Outages,
    said: Said,
    clock: ManualClock,
    error: Callable[[str], KubeError],
    why: str,
) -> None:
    kinds = [POD, NODE, *(Kind(name, name, "", Pod) for name in "cde")]
    followings = [outages.following(kind) for kind in kinds]
    fail(*followings, by=error)
    assert said.lines() == [f"Cannot follow {PODS}, trying again {why}"]
    clock.advance(TOLD_EVERY_SECONDS)
    fail(followings[-1], by=error)
    assert said.lines() == [f"Cannot follow {PODS}, {NODES}, /c and 2 more, trying again {why}"]


def test_an_end_is_told_when_all_answer_again_and_the_next_one_at_once(
    outages: Outages, pods: Following, nodes: Following, said: Said
) -> None:
    never_failed = outages.following(Kind("Other", "others", "", Pod))
    fail(pods, nodes)
    pods.answered()
    never_failed.answered()
    assert said.lines() == [NOT_REACHED]
    nodes.answered()
    nodes.answered()
    assert said.lines() == [AGAIN]
    fail(pods, pods)
    assert said.lines() == [NOT_REACHED]


def test_an_end_is_told_by_watches_that_stay_open_without_news(
    pods: Following, nodes: Following, said: Said, clock: ManualClock
) -> None:
    fail(pods, nodes)
    pods.opened()
    nodes.opened()
    clock.advance(5)
    pods.answered()
    assert said.lines() == [NOT_REACHED, AGAIN]
    nodes.answered()
    assert said.lines() == []


@pytest.fixture
def broken(outages: Outages) -> Following:
    """Of a kind that fails for good, by reasons of its own."""
    return outages.following(Kind("Broken", "broken", "", Pod))


def unlisted(path: str) -> KubeError:
    return KubeError(f"{path} is no list")


BROKEN = "Cannot follow /broken, trying again /broken is no list"


def test_one_kind_that_fails_for_good_silences_nothing_of_the_others(
    pods: Following, nodes: Following, broken: Following, said: Said, clock: ManualClock
) -> None:
    fail(broken, by=unlisted)
    assert said.lines() == [BROKEN]
    for _ in range(2):
        fail(pods, nodes, pods, nodes)
        assert said.lines() == [NOT_REACHED]
        clock.advance(5)
        pods.answered()
        nodes.answered()
        fail(broken, by=unlisted)
        assert said.lines() == [AGAIN]
    clock.advance(TOLD_EVERY_SECONDS)
    fail(broken, by=unlisted)
    assert said.lines() == [BROKEN]


def test_the_last_that_finds_the_server_there_may_fail_by_another_reason(
    pods: Following, broken: Following, said: Said
) -> None:
    fail(pods, broken)
    pods.answered()
    assert said.lines() == [NOT_REACHED]
    fail(broken, by=unlisted)
    assert said.lines() == [AGAIN, BROKEN]


def test_a_reason_that_passed_on_the_way_is_told_again_in_the_next_outage(
    pods: Following, said: Said, clock: ManualClock
) -> None:
    fail(pods)
    fail(pods, by=starting)
    pods.answered()
    assert said.lines() == [NOT_REACHED, NOT_FOLLOWED, AGAIN]
    clock.advance(40)
    fail(pods)
    fail(pods)
    assert said.lines() == [NOT_REACHED]


class Worded(str):
    """Unlike other strings, it can be seen to be given back."""


def test_words_that_are_never_the_same_again_are_not_kept(
    pods: Following, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="kube")  # else they are kept there
    kept = weakref.WeakSet[Worded]()
    for attempt in range(100):
        reason = Worded(f"attempt {attempt} has failed")
        kept.add(reason)
        pods.failed(NoAnswer("", reason))
        del reason
        clock.advance(TOLD_EVERY_SECONDS / 2)
    assert len(kept) < 5


def test_a_rejection_ends_an_outage(pods: Following, said: Said) -> None:
    fail(pods)
    pods.rejected(FORBIDDEN)
    assert said.lines() == [NOT_REACHED, AGAIN]
