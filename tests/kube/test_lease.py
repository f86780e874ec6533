"""Leader election against a small server that keeps one Lease as the real one does."""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web
from tests.kube.conftest import ManualClock, serve

from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.lease import (
    RELEASE_TIMEOUT_SECONDS,
    LeaderLease,
    LeaseTimings,
    make_identity,
)

COLLECTION = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


Happening = Callable[[web.Request], Awaitable[None]]


class LeaseServer:
    """One Lease with optimistic locking; `is_rejecting` makes it answer 500 while set.

    The next write meets `before_storing` and `before_answering`, where they are set."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.writes: list[dict[str, Any]] = []
        self.is_rejecting = False
        self.is_garbled = False
        self.before_storing: Happening | None = None
        self.before_answering: Happening | None = None
        self._version = 0

    def set(self, spec: dict[str, Any], **metadata: Any) -> None:
        self._version += 1
        about = {"name": "lowtide", "namespace": "kube-system", **metadata}
        self.lease = {"metadata": about | {"resourceVersion": str(self._version)}, "spec": spec}

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.is_rejecting:
            return web.json_response({"message": "etcd is away"}, status=500)
        if self.is_garbled:
            return web.Response(body=b'{"spec":"\xff"}')
        if request.method in ("POST", "PUT"):
            happening, self.before_storing = self.before_storing, None
            if happening is not None:
                await happening(request)
        if request.method == "POST" and request.path == COLLECTION and self.lease is None:
            return await self._store(request, 201)
        if request.path != f"{COLLECTION}/lowtide" or self.lease is None:
            return web.json_response({"message": "not found"}, status=404)
        if request.method == "GET":
            return web.json_response(self.lease)
        sent = await request.json()
        if sent["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            return web.json_response({"message": "modified"}, status=409)
        return await self._store(request, 200)

    async def _store(self, request: web.Request, code: int) -> web.Response:
        lease = await request.json()
        self._version += 1
        lease["metadata"]["resourceVersion"] = str(self._version)
        self.lease = lease
        self.writes.append(copy.deepcopy(lease["spec"]))
        happening, self.before_answering = self.before_answering, None
        if happening is not None:
            await happening(request)
        return web.json_response(lease, status=code)


class Hold:
    """Keeps a request waiting until it is let go."""

    def __init__(self) -> None:
        self.is_met = asyncio.Event()
        self.let_go = asyncio.Event()

    async def __call__(self, _: web.Request) -> None:
        self.is_met.set()
        await self.let_go.wait()


async def hang_up(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


class Candidate:
    """A lease, its task, and what it told."""

    def __init__(
        self, connection: Connection, clock: ManualClock, wall: ManualClock, identity: str
    ) -> None:
        self.told: list[str] = []
        self.lease = LeaderLease(
            connection,
            namespace="kube-system",
            name="lowtide",
            identity=identity,
            clock=clock,
            wall_clock=wall,
            timings=LeaseTimings(),
            sleep=self._sleep,
            chance=lambda: 0.5,
        )
        self.slept: list[float] = []
        self._asleep = asyncio.Event()
        self._clock = clock
        self._wall = wall
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        await self.lease.run(lambda: self.told.append("started"))
        self.told.append("lost")

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._asleep.set()
        await self._clock.wait(seconds)

    async def until_asleep(self) -> None:
        async with asyncio.timeout(10):
            await self._asleep.wait()
        self._asleep.clear()

    async def advance(self) -> None:
        """To the end of its sleep, and through the attempt that follows."""
        self._wall.advance(self.slept[-1])
        self._clock.advance(self.slept[-1])
        await self.until_asleep()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


Compete = Callable[[str], Candidate]


@pytest.fixture
def lease_server() -> LeaseServer:
    return LeaseServer()


@pytest.fixture
def wall() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def compete(
    stack: AsyncExitStack, lease_server: LeaseServer, clock: ManualClock, wall: ManualClock
) -> Compete:
    url = await serve(stack, lease_server.handle)
    connection = await stack.enter_async_context(Connection(plain_access(url), clock))

    def make(identity: str) -> Candidate:
        candidate = Candidate(connection, clock, wall, identity)
        stack.push_async_callback(candidate.stop)
        return candidate

    return make


async def test_a_missing_lease_is_created_and_renewed(
    compete: Compete, lease_server: LeaseServer, clock: ManualClock
) -> None:
    candidate = compete("us")
    await candidate.until_asleep()
    assert (candidate.told, candidate.lease.is_leader(clock.now)) == (["started"], True)
    await candidate.advance()
    first = {
        "holderIdentity": "us",
        "leaseDurationSeconds": 15,
        "acquireTime": "2027-01-15T08:00:00.000000Z",
        "renewTime": "2027-01-15T08:00:00.000000Z",
        "leaseTransitions": 0,
    }
    assert lease_server.writes == [first, first | {"renewTime": "2027-01-15T08:00:02.000000Z"}]
    assert candidate.slept == [2.0, 2.0]


async def test_a_leader_that_neither_renews_nor_ends_is_not_healthy(
    compete: Compete, clock: ManualClock
) -> None:
    candidate = compete("us")
    await candidate.until_asleep()
    lease, began_at = candidate.lease, clock.now
    assert [lease.why_not_healthy(began_at + seconds) for seconds in (0.0, 34.9, 35.1)] == [
        None,
        None,
        "failed election to renew leadership on lease lowtide",
    ]


async def test_a_standby_is_healthy_whatever_the_leader_does(
    compete: Compete, lease_server: LeaseServer, clock: ManualClock
) -> None:
    lease_server.set({"holderIdentity": "other", "leaseDurationSeconds": 15})
    candidate = compete("us")
    await candidate.until_asleep()
    assert candidate.lease.why_not_healthy(clock.now + 3600) is None


async def test_a_lease_that_is_renewed_by_another_is_waited_for_whatever_its_clock_says(
    compete: Compete, lease_server: LeaseServer, clock: ManualClock
) -> None:
    old = {"holderIdentity": "other", "leaseDurationSeconds": 15, "leaseTransitions": 4}
    lease_server.set(old | {"renewTime": "1999-01-01T00:00:00.000000Z"})
    candidate = compete("us")
    await candidate.until_asleep()
    for number in range(10):
        lease_server.set(old | {"renewTime": f"1999-01-01T00:00:0{number}.000000Z"})
        await candidate.advance()
    assert (candidate.told, candidate.lease.holder) == ([], "other")
    assert set(candidate.slept) == {1.0 * (1 + 0.2 * 0.5)}
    assert not candidate.lease.is_leader(clock.now)


async def test_a_lease_that_was_not_renewed_for_its_duration_is_taken_over(
    compete: Compete, lease_server: LeaseServer, clock: ManualClock
) -> None:
    lease_server.set(
        {
            "holderIdentity": "other",
            "leaseDurationSeconds": 15,
            "acquireTime": "2099-01-01T00:00:00.000000Z",
            "renewTime": "2099-01-01T00:00:00.000000Z",
            "leaseTransitions": 4,
            "strategy": "kept",
        },
        labels={"kept": "too"},
    )
    began_at = clock.now
    candidate = compete("us")
    await candidate.until_asleep()
    while not candidate.told:
        await candidate.advance()
    assert clock.now - began_at == pytest.approx(15.0)  # it looks in that moment
    assert lease_server.spec == {
        "holderIdentity": "us",
        "leaseDurationSeconds": 15,
        "acquireTime": "2027-01-15T08:00:15.000000Z",
        "renewTime": "2027-01-15T08:00:15.000000Z",
        "leaseTransitions": 5,
        "strategy": "kept",
    }
    assert lease_server.lease is not None
    assert lease_server.lease["metadata"]["labels"] == {"kept": "too"}


async def test_a_stopped_leader_releases_and_the_next_one_takes_over_at_once(
    compete: Compete, lease_server: LeaseServer, clock: ManualClock, wall: ManualClock
) -> None:
    leader = compete("us")
    await leader.until_asleep()
    standby = compete("them")
    await standby.until_asleep()
    clock.advance(1)
    wall.advance(1)
    await leader.stop()
    assert lease_server.writes[-1] == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2027-01-15T08:00:01.000000Z",
        "renewTime": "2027-01-15T08:00:01.000000Z",
        "leaseTransitions": 0,
    }
    assert (leader.told, leader.lease.is_leader(clock.now)) == (["started"], False)
    await standby.advance()
    assert (standby.told, lease_server.spec["holderIdentity"]) == (["started"], "them")
    assert lease_server.spec["leaseTransitions"] == 1


async def test_a_stopped_standby_leaves_the_lease_alone(
    compete: Compete, lease_server: LeaseServer
) -> None:
    lease_server.set({"holderIdentity": "other", "leaseDurationSeconds": 15})
    standby = compete("us")
    await standby.until_asleep()
    await standby.stop()
    assert lease_server.writes == []


HELD = ["before_storing", "before_answering"]
BEFORE = [
    pytest.param(None, id="creates the lease"),
    pytest.param({"holderIdentity": "", "leaseTransitions": 4}, id="takes the lease"),
]


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("before", BEFORE)
async def test_whoever_is_stopped_while_it(
    compete: Compete, lease_server: LeaseServer, before: dict[str, Any] | None, held: str
) -> None:
    """Nobody has to wait for a lease that the server stored for one who was on its way out."""
    if before is not None:
        lease_server.set(before)
    hold = Hold()
    setattr(lease_server, held, hold)
    candidate = compete("us")
    await met(hold)
    await stopped_by(candidate, hold)
    assert lease_server.spec["holderIdentity"] == ""
    assert (candidate.told, len(lease_server.writes)) == ([], 2)


@pytest.mark.parametrize("held", HELD)
async def test_a_leader_that_is_stopped_while_it_renews_releases(
    compete: Compete, lease_server: LeaseServer, clock: ManualClock, held: str
) -> None:
    leader = compete("us")
    await leader.until_asleep()
    hold = Hold()
    setattr(lease_server, held, hold)
    clock.advance(2)
    await met(hold)
    await stopped_by(leader, hold)
    assert lease_server.spec["holderIdentity"] == ""
    assert not leader.lease.is_leader(clock.now)


async def test_a_leader_that_is_stopped_waits_a_moment_only_for_an_answer(
    compete: Compete, lease_server: LeaseServer, clock: ManualClock
) -> None:
    leader = compete("us")
    await leader.until_asleep()
    lease_server.before_answering = hold = Hold()
    clock.advance(2)
    await met(hold)
    async with asyncio.timeout(RELEASE_TIMEOUT_SECONDS):
        await leader.stop()
    assert lease_server.spec["holderIdentity"] == ""
    hold.let_go.set()


async def test_a_lease_that_was_got_by_a_write_without_an_answer_is_released(
    compete: Compete, lease_server: LeaseServer
) -> None:
    lease_server.before_answering = hang_up
    candidate = compete("us")
    await candidate.until_asleep()
    assert (candidate.told, lease_server.spec["holderIdentity"]) == ([], "us")
    await candidate.stop()
    assert lease_server.spec["holderIdentity"] == ""


async def test_a_lease_that_was_edited_is_released_on_top_of_the_edit(
    compete: Compete, lease_server: LeaseServer
) -> None:
    leader = compete("us")
    await leader.until_asleep()
    lease_server.set(lease_server.spec, labels={"edited": "yes"})
    await leader.stop()
    assert lease_server.lease is not None
    assert lease_server.lease["metadata"]["labels"] == {"edited": "yes"}
    assert lease_server.spec["holderIdentity"] == ""


@pytest.mark.parametrize(
    "becomes",
    [
        pytest.param({"holderIdentity": "thief", "leaseDurationSeconds": 15}, id="somebody took"),
        pytest.param(None, id="was deleted"),
    ],
)
async def test_nothing_is_released_where_the_lease(
    compete: Compete,
    lease_server: LeaseServer,
    caplog: pytest.LogCaptureFixture,
    becomes: dict[str, Any] | None,
) -> None:
    leader = compete("us")
    await leader.until_asleep()
    if becomes is None:
        lease_server.lease = None
    else:
        lease_server.set(becomes)
    await leader.stop()
    assert (len(lease_server.writes), caplog.records) == (1, [])
    assert lease_server.lease is None or lease_server.spec == becomes


async def test_a_release_that_fails_is_told(
    compete: Compete, lease_server: LeaseServer, caplog: pytest.LogCaptureFixture
) -> None:
    leader = compete("us")
    await leader.until_asleep()
    lease_server.is_rejecting = True
    await leader.stop()
    (line,) = caplog.records
    assert line.getMessage() == "Cannot release the lease"
    assert line.__dict__["lowtide_fields"]["err"].startswith("etcd is away")


async def met(hold: Hold) -> None:
    async with asyncio.timeout(10):
        await hold.is_met.wait()


async def stopped_by(candidate: Candidate, hold: Hold) -> None:
    """The request goes on only after whoever sent it was cancelled, and knows it."""
    candidate.task.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    hold.let_go.set()
    async with asyncio.timeout(10):
        await asyncio.gather(candidate.task, return_exceptions=True)


async def test_a_renewal_that_takes_long_counts_from_when_it_was_sent(
    compete: Compete, lease_server: LeaseServer, clock: ManualClock
) -> None:
    leader = compete("us")
    await leader.until_asleep()

    async def five_seconds(_: web.Request) -> None:
        clock.advance(5)

    lease_server.before_answering = five_seconds
    sent_at = clock.now + leader.slept[-1]
    await leader.advance()
    assert clock.now == sent_at + 5
    assert leader.lease.is_leader(sent_at + 9.9)
    assert not leader.lease.is_leader(sent_at + 10)


async def test_a_leader_that_cannot_renew_stops_at_the_deadline_before_others_may_start(
    compete: Compete, lease_server: LeaseServer, clock: ManualClock
) -> None:
    leader = compete("us")
    await leader.until_asleep()
    lease_server.is_rejecting = True
    began_at = clock.now
    for _ in range(4):
        await leader.advance()
    assert leader.lease.is_leader(began_at + 9.9)
    assert not leader.lease.is_leader(began_at + 10)
    clock.advance(2)
    await asyncio.wait_for(leader.task, 10)
    assert (leader.told, clock.now - began_at) == (["started", "lost"], 10.0)


async def test_a_clock_set_back_does_not_keep_a_dead_leader_leading(
    compete: Compete, lease_server: LeaseServer, clock: ManualClock, wall: ManualClock
) -> None:
    leader = compete("us")
    await leader.until_asleep()
    wall.now -= 3600
    await leader.advance()
    assert lease_server.spec["renewTime"] == "2027-01-15T07:00:02.000000Z"
    lease_server.is_rejecting = True
    for _ in range(4):
        await leader.advance()
    clock.advance(2)
    await asyncio.wait_for(leader.task, 10)
    assert (leader.told, leader.lease.is_leader(clock.now)) == (["started", "lost"], False)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("is_rejecting", id="that are errors of the server"),
        pytest.param("is_garbled", id="that are answers of bytes that are no text"),
    ],
)
async def test_a_leader_survives_failures_shorter_than_the_deadline(
    compete: Compete, lease_server: LeaseServer, clock: ManualClock, fault: str
) -> None:
    leader = compete("us")
    await leader.until_asleep()
    setattr(lease_server, fault, True)
    for _ in range(3):
        await leader.advance()
    setattr(lease_server, fault, False)
    await leader.advance()
    assert (leader.told, leader.lease.is_leader(clock.now + 9)) == (["started"], True)


async def test_a_leader_whose_lease_somebody_took_stops(
    compete: Compete, lease_server: LeaseServer, clock: ManualClock
) -> None:
    leader = compete("us")
    await leader.until_asleep()
    lease_server.set({"holderIdentity": "thief", "leaseDurationSeconds": 15})
    clock.advance(2)
    await asyncio.wait_for(leader.task, 10)
    assert (leader.told, leader.lease.is_leader(clock.now)) == (["started", "lost"], False)


async def test_a_leader_whose_lease_was_edited_renews_on_top_of_the_edit(
    compete: Compete, lease_server: LeaseServer
) -> None:
    leader = compete("us")
    await leader.until_asleep()
    lease_server.set(lease_server.spec, labels={"edited": "yes"})
    await leader.advance()
    assert lease_server.lease is not None
    assert lease_server.lease["metadata"]["labels"] == {"edited": "yes"}
    assert leader.told == ["started"]


async def test_a_leader_whose_lease_was_deleted_creates_it_again(
    compete: Compete, lease_server: LeaseServer
) -> None:
    leader = compete("us")
    await leader.until_asleep()
    lease_server.lease = None
    await leader.advance()
    assert lease_server.spec["holderIdentity"] == "us"
    assert leader.told == ["started"]


def test_identities_differ_between_processes_of_one_host() -> None:
    one, other = make_identity(), make_identity()
    assert one.rpartition("_")[0] == other.rpartition("_")[0]
    assert one != other
