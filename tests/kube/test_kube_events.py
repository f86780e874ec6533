"""Events against a small real server: series, order, losses and the older API."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from tests.kube.conftest import Answer, ApiServer, ManualClock, document, redirect, status

from lowtide.kube.connection import Connection
from lowtide.kube.event_form import ObjectReference
from lowtide.kube.kube_events import CONCURRENT_WRITES, MOST_TRIES, KubeEvents

NEWER = "/apis/events.k8s.io/v1/namespaces/default/events"
OLDER = "/api/v1/namespaces/default/events"
POD = ObjectReference(kind="Pod", namespace="default", name="web-0", uid="u-1", api_version="v1")
OK = document({}, 201)
MANY = 3 * CONCURRENT_WRITES


class Bindings:
    """Whether bindings are under way, said by the test."""

    is_under_way = False


@pytest.fixture
def bindings() -> Bindings:
    return Bindings()


@pytest.fixture
def events(connection: Connection, clock: ManualClock, bindings: Bindings) -> KubeEvents:
    return KubeEvents(
        connection,
        host_name="host-1",
        is_busy=lambda: bindings.is_under_way,
        clock=clock,
        sleep=clock.wait,
        queue_length=5,
        most_giving_way=4,
    )


def record(events: KubeEvents, pod: ObjectReference = POD, **changes: Any) -> None:
    fields: dict[str, Any] = {
        "scheduler_name": "lowtide",
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": "0/1 nodes are available",
    }
    events.record(pod, **(fields | changes))


def pod(name: str) -> ObjectReference:
    return ObjectReference(kind="Pod", namespace="default", name=name, uid=name, api_version="v1")


@asynccontextmanager
async def running(events: KubeEvents) -> AsyncIterator[None]:
    task = asyncio.create_task(events.run())
    await asyncio.sleep(0)
    try:
        yield
    finally:
        if task.done():
            task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def let_run(clock: ManualClock, seconds: float) -> None:
    """Moves the clock, and gives the tasks that it wakes their turns."""
    clock.advance(seconds)
    for _ in range(5):
        await asyncio.sleep(0)


async def test_an_event_has_the_fields_of_kube_scheduler(
    events: KubeEvents, server: ApiServer
) -> None:
    server.answers = [OK]
    record(events, note="x" * 2000, related=ObjectReference(kind="Pod", name="other"))
    async with running(events):
        await server.asked_times(1)
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("POST", NEWER)
    assert asked.json == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web-0.18fae27693b40000", "namespace": "default"},
        "eventTime": "2027-01-15T08:00:00.000000Z",
        "reportingController": "lowtide",
        "reportingInstance": "lowtide-host-1",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "regarding": {
            "kind": "Pod",
            "namespace": "default",
            "name": "web-0",
            "uid": "u-1",
            "apiVersion": "v1",
        },
        "related": {"kind": "Pod", "name": "other"},
        "note": "x" * 1020 + " ...",
        "type": "Warning",
    }


async def test_events_of_one_instant_have_names_of_their_own(
    events: KubeEvents, server: ApiServer
) -> None:
    server.answers = [OK]
    record(events, reason="One")
    record(events, reason="Other")
    await events.flush(10)
    assert sorted(asked.json["metadata"]["name"] for asked in server.asked) == [
        "web-0.18fae27693b40000",
        "web-0.18fae27693b40001",
    ]


async def test_repetitions_become_a_series(
    events: KubeEvents, server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [OK]
    async with running(events):
        record(events)
        await server.asked_times(1)
        await let_run(clock, 1)
        record(events, note="another note is the same event")
        await server.asked_times(2)
        await let_run(clock, 1)
        record(events)
        record(events)
        record(events, reason="Other")
        await server.asked_times(3)
        await let_run(clock, 6 * 60)
        await server.asked_times(4)
        record(events)
        await server.asked_times(5)
    name = server.asked[0].json["metadata"]["name"]
    assert [(asked.method, asked.path) for asked in server.asked] == [
        ("POST", NEWER),
        ("PATCH", f"{NEWER}/{name}"),
        ("POST", NEWER),
        ("PATCH", f"{NEWER}/{name}"),
        ("POST", NEWER),
    ]
    assert server.asked[1].json == {
        "series": {"count": 2, "lastObservedTime": "2027-01-15T08:00:01.000000Z"}
    }
    assert server.asked[3].json == {
        "series": {"count": 4, "lastObservedTime": "2027-01-15T08:00:02.000000Z"}
    }
    assert server.asked[4].json["metadata"]["name"] != name


async def test_a_long_series_is_written_every_half_hour(
    events: KubeEvents, server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [OK]
    async with running(events):
        record(events)
        await server.asked_times(1)
        record(events)
        await server.asked_times(2)
        for _ in range(29):
            await let_run(clock, 60)
            record(events)
        assert len(server.asked) == 2
        await let_run(clock, 60)
        await server.asked_times(3)
    assert server.asked[2].json["series"]["count"] == 31


async def test_an_event_that_the_server_forgot_is_made_again(
    events: KubeEvents, server: ApiServer
) -> None:
    server.answers = [OK, status(404, "NotFound", "gone"), OK]
    async with running(events):
        record(events)
        record(events)
        await server.asked_times(4)
    assert [asked.method for asked in server.asked] == ["POST", "PATCH", "POST", "PATCH"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        pytest.param(404, "NotFound", id="turns to core/v1 when the newer API is unknown"),
        pytest.param(403, "Forbidden", id="turns to core/v1 when the newer API is forbidden"),
    ],
)
async def test_older_api(events: KubeEvents, server: ApiServer, code: int, reason: str) -> None:
    server.answers = [status(code, reason, "no"), OK]
    async with running(events):
        record(events)
        await server.asked_times(2)
        record(events)
        record(events, pod=pod("b"))
        await server.asked_times(4)
    asked = server.asked[1]
    name = asked.json["metadata"]["name"]
    assert server.requests() == [
        ("POST", NEWER),
        ("POST", OLDER),
        ("PATCH", f"{OLDER}/{name}"),
        ("POST", OLDER),
    ]
    assert asked.json == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {
            "kind": "Pod",
            "namespace": "default",
            "name": "web-0",
            "uid": "u-1",
            "apiVersion": "v1",
        },
        "reason": "FailedScheduling",
        "message": "0/1 nodes are available",
        "type": "Warning",
        "action": "Scheduling",
        "source": {"component": "lowtide", "host": "host-1"},
        "reportingComponent": "lowtide",
        "reportingInstance": "lowtide-host-1",
        "firstTimestamp": "2027-01-15T08:00:00Z",
        "lastTimestamp": "2027-01-15T08:00:00Z",
        "count": 1,
    }
    assert server.asked[2].json == {"count": 2, "lastTimestamp": "2027-01-15T08:00:00Z"}


async def test_a_namespace_that_is_gone_does_not_switch_to_the_older_api(
    events: KubeEvents, server: ApiServer, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    gone = status(404, "NotFound", 'namespaces "default" not found')
    server.answers = [gone, gone, OK]
    with caplog.at_level(logging.WARNING):
        async with running(events):
            record(events)
            await server.asked_times(2)
            record(events, pod=pod("b"))
            await server.asked_times(3)
            await let_run(clock, 60)
    assert [asked.path for asked in server.asked] == [NEWER, OLDER, NEWER]
    assert [record.__dict__["lowtide_fields"] for record in caplog.records] == [
        {
            "dropped": 0,
            "failed": 1,
            "err": 'namespaces "default" not found (HTTP 404 NotFound)',
        }
    ]


async def test_what_does_not_fit_is_counted_in_one_line(
    events: KubeEvents, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [OK]
    for number in range(9):
        record(events, pod=pod(f"p{number}"))
    with caplog.at_level(logging.WARNING):
        await events.flush(10)
    assert len(server.asked) == 5
    assert [record.__dict__["lowtide_fields"] for record in caplog.records] == [
        {"dropped": 4, "failed": 0, "err": "the queue was full"}
    ]


class Gate:
    """Holds every request until opened, and knows how many were there at once."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.present = 0
        self.most = 0

    async def answer(self, _: web.Request) -> web.StreamResponse:
        self.present += 1
        self.most = max(self.most, self.present)
        await self.opened.wait()
        self.present -= 1
        return web.json_response({}, status=201)


async def test_idle_events_are_written_together(events: KubeEvents, server: ApiServer) -> None:
    gate = Gate()
    server.answers = [gate.answer]
    for number in range(5):
        record(events, pod=pod(f"p{number}"))
    async with running(events):
        await server.asked_times(5)
        gate.opened.set()
    assert gate.most == 5


async def test_while_bindings_are_under_way_events_go_one_by_one_with_pauses(
    events: KubeEvents, server: ApiServer, clock: ManualClock, bindings: Bindings
) -> None:
    bindings.is_under_way = True
    server.answers = [OK]
    for number in range(3):
        record(events, pod=pod(f"p{number}"))
    async with running(events):
        await server.asked_times(1)
        for count in (2, 3):
            while len(server.asked) < count:
                assert len(server.asked) == count - 1
                await let_run(clock, 0.05)
    # At most one for each pause of 0.05 s.
    assert clock.now - 1_800_000_000.0 >= 0.1


@pytest.fixture
def many_events(connection: Connection, clock: ManualClock, bindings: Bindings) -> KubeEvents:
    """More than are written at once."""
    made = KubeEvents(
        connection,
        host_name="host-1",
        is_busy=lambda: bindings.is_under_way,
        clock=clock,
        sleep=clock.wait,
    )
    for number in range(2 * CONCURRENT_WRITES):
        record(made, pod=pod(f"p{number:02}"))
    return made


def names_asked(server: ApiServer) -> list[str]:
    return [asked.json["regarding"]["name"] for asked in server.asked]


async def test_many_are_written_in_their_order_and_only_some_at_once(
    many_events: KubeEvents, server: ApiServer
) -> None:
    gate = Gate()
    server.answers = [gate.answer]
    async with running(many_events):
        await server.asked_times(CONCURRENT_WRITES)
        await let_arrive()
        assert len(server.asked) == CONCURRENT_WRITES
        gate.opened.set()
        await server.asked_times(2 * CONCURRENT_WRITES)
    assert gate.most == CONCURRENT_WRITES
    assert set(names_asked(server)[:CONCURRENT_WRITES]) == {
        f"p{number:02}" for number in range(CONCURRENT_WRITES)
    }


async def test_those_not_begun_give_way_to_bindings_that_begin_meanwhile(
    many_events: KubeEvents, server: ApiServer, bindings: Bindings
) -> None:
    gate = Gate()
    server.answers = [gate.answer]
    async with running(many_events):
        await server.asked_times(CONCURRENT_WRITES)
        bindings.is_under_way = True
        gate.opened.set()
        await server.asked_times(CONCURRENT_WRITES + 1)
        await let_arrive()
        assert len(server.asked) == CONCURRENT_WRITES + 1  # the next one waits for the clock
    await many_events.flush(10)
    names = names_asked(server)
    assert names[CONCURRENT_WRITES] == f"p{CONCURRENT_WRITES:02}"
    assert (len(names), len(set(names))) == (2 * CONCURRENT_WRITES,) * 2


async def test_the_end_loses_none_and_writes_first_what_was_begun(
    many_events: KubeEvents, server: ApiServer
) -> None:
    gate = Gate()
    server.answers = [gate.answer]
    async with running(many_events):
        await server.asked_times(CONCURRENT_WRITES)
    gate.opened.set()
    await many_events.flush(10)
    begun, again, others = (
        set(names_asked(server)[at : at + CONCURRENT_WRITES])
        for at in range(0, 3 * CONCURRENT_WRITES, CONCURRENT_WRITES)
    )
    assert begun == again
    assert len(begun | others) == 2 * CONCURRENT_WRITES


async def test_after_an_error_of_our_own_the_others_are_written_once(
    connection: Connection, server: ApiServer
) -> None:
    asked_at: list[int] = []

    def clock() -> float:
        asked_at.append(len(server.asked))
        if len(asked_at) == 2 * MANY + 20:  # each asks when it is recorded, and when it is begun
            raise RuntimeError("the clock stopped")
        return 1_800_000_000.0

    async def no_pause(_: float) -> None: ...

    events = KubeEvents(
        connection, host_name="host-1", is_busy=lambda: False, clock=clock, sleep=no_pause
    )
    server.answers = [OK]
    for number in range(MANY):
        record(events, pod=pod(f"p{number}"))
    asked_at[:] = [0] * 2 * MANY
    with pytest.raises(RuntimeError, match="the clock stopped"):
        await events.flush(10)
    await let_arrive()
    await events.flush(10)
    names = names_asked(server)
    assert (len(names), len(set(names))) == (MANY - 1,) * 2


async def test_a_server_that_fails_is_left_alone_after_some(
    many_events: KubeEvents, server: ApiServer
) -> None:
    server.answers = [status(503, "ServiceUnavailable", "no etcd")]
    async with running(many_events):
        await server.asked_times(CONCURRENT_WRITES)
        await let_arrive()
        assert len(server.asked) == CONCURRENT_WRITES


async def test_when_many_wait_they_do_not_give_way(
    events: KubeEvents, server: ApiServer, clock: ManualClock, bindings: Bindings
) -> None:
    bindings.is_under_way = True
    server.answers = [OK]
    for number in range(5):
        record(events, pod=pod(f"p{number}"))
    async with running(events):
        await server.asked_times(5)
        assert clock.now == 1_800_000_000.0
        for number in range(5, 7):
            record(events, pod=pod(f"p{number}"))
        await server.asked_times(6)
        assert len(server.asked) == 6  # the last of the two waits


async def test_flush_ends_in_time_and_tells_what_was_left(
    events: KubeEvents, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [Gate().answer]
    record(events)
    record(events, pod=pod("b"))
    with caplog.at_level(logging.WARNING):
        await events.flush(0.05)
    assert [record.__dict__["lowtide_fields"] for record in caplog.records] == [
        {"dropped": 2, "failed": 0, "err": "not done within 0.05 seconds"}
    ]


async def test_flush_writes_the_count_of_open_series(events: KubeEvents, server: ApiServer) -> None:
    server.answers = [OK]
    for _ in range(2):
        record(events)
    await events.flush(10)
    for _ in range(3):
        record(events)
    await events.flush(10)
    assert [asked.json["series"]["count"] for asked in server.asked[1:]] == [2, 5]


@pytest.fixture
def patient_events(connection: Connection, clock: ManualClock) -> KubeEvents:
    """Their pauses pass at once."""
    return KubeEvents(
        connection, host_name="host-1", is_busy=lambda: False, clock=clock, sleep=clock.sleep
    )


async def no_answer(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def test_an_event_waits_for_a_server_that_is_away(
    patient_events: KubeEvents,
    server: ApiServer,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    no_right = status(403, "Forbidden", "no permissions are known yet")
    server.answers = [no_answer, status(503, "ServiceUnavailable", "no etcd"), *[no_right] * 2, OK]
    record(patient_events)
    with caplog.at_level(logging.WARNING):
        await patient_events.flush(10)
    assert len({asked.json["metadata"]["name"] for asked in server.asked}) == 1
    assert (len(server.asked), clock.slept, caplog.records) == (5, [0.8, 1.6, 3.2], [])


async def test_no_event_is_given_up_while_a_proxy_wants_a_login(
    patient_events: KubeEvents,
    server: ApiServer,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.answers = [*[redirect] * 2 * MOST_TRIES, OK]
    record(patient_events)
    with caplog.at_level(logging.WARNING):
        await patient_events.flush(10)
    assert (len(server.asked), caplog.records) == (2 * MOST_TRIES + 1, [])
    assert clock.slept[-1] == 30.0  # it does not spin


async def let_arrive() -> None:
    """What the server has sent."""
    for _ in range(200):
        await asyncio.sleep(0)


async def test_the_end_loses_no_event_that_failed_beside_one_under_way(
    events: KubeEvents, server: ApiServer
) -> None:
    gate = Gate()
    server.answers = [gate.answer, status(503, "ServiceUnavailable", "no etcd"), OK]
    record(events, pod=pod("under-way"))
    record(events, pod=pod("failed"))
    async with running(events):
        await server.asked_times(2)
        await let_arrive()
    await events.flush(10)
    names = [asked.json["regarding"]["name"] for asked in server.asked]
    assert sorted(names) == ["failed", "failed", "under-way", "under-way"]


async def test_an_event_that_the_server_always_fails_at_is_given_up(
    patient_events: KubeEvents, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [status(500, "InternalError", "no")]
    record(patient_events)
    with caplog.at_level(logging.WARNING):
        await patient_events.flush(10)
    assert len(server.asked) == MOST_TRIES
    assert [record.__dict__["lowtide_fields"] for record in caplog.records] == [
        {"dropped": 0, "failed": 1, "err": "no (HTTP 500 InternalError)"}
    ]


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([status(500, "InternalError", "no"), OK], id="makes up for a failed creation"),
        pytest.param(
            [status(409, "AlreadyExists", "there"), OK], id="takes one that exists as its own"
        ),
    ],
)
async def test_a_creation_that_went_wrong(
    events: KubeEvents, server: ApiServer, answers: list[Answer]
) -> None:
    server.answers = answers
    async with running(events):
        record(events)
        await server.asked_times(1)
        record(events)
        await events.flush(10)
    assert server.asked[-1].json["series"]["count"] == 2
