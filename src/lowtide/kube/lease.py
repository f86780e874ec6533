"""Leader election by a coordination.k8s.io Lease, compatible with client-go's.

`run` is started by app in the modes that write; writers ask `is_leader` before each write."""

import asyncio
import math
import random
import socket
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from lowtide.kube.connection import Connection
from lowtide.kube.decoding import AnswerDecoder
from lowtide.kube.errors import ApiError, KubeError
from lowtide.kube.timestamps import micro_time
from lowtide.logs import Log

# A standby looks twice in a retry period, and when the lease runs out: what it sees late, it takes
# over late. Several of them look at different times.
LOOKS_IN_A_PERIOD = 2
JITTER = 0.2
RELEASE_TIMEOUT_SECONDS = 3.0
# How long a leader's lease may have run out before it is told that it is not healthy, as
# kube-scheduler's.
RUN_OUT_SECONDS = 20.0
# Of these, for the answer to a write that was under way.
LAST_ANSWER_SECONDS = 1.0
SHORTEST_TIMEOUT_SECONDS = 0.5

log = Log("kube")


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    duration_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0


def make_identity() -> str:
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaderLease:
    """Spans are counted on `clock`, which must never jump; `wall_clock` is only written down."""

    def __init__(
        self,
        connection: Connection,
        *,
        namespace: str,
        name: str,
        identity: str,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        timings: LeaseTimings,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._connection = connection
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._clock = clock
        self._wall_clock = wall_clock
        self._timings = timings
        self._sleep = sleep
        self._chance = chance
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._collection}/{name}"
        self._seen: dict[str, Any] | None = None
        self._seen_at = 0.0
        self._renewed_at: float | None = None
        self._is_failing = False
        self._doubtful_write: asyncio.Task[bytes] | None = None
        self._decoder = AnswerDecoder[dict[str, Any]](dict)

    def is_leader(self, now: float) -> bool:
        """Whether the lease was renewed recently enough to write in its name."""
        return (
            self._renewed_at is not None
            and now < self._renewed_at + self._timings.renew_deadline_seconds
        )

    def why_not_healthy(self, now: float) -> str | None:
        """Of one that holds the lease, and has neither renewed it nor ended."""
        if self.holder != self._identity or now <= self._runs_out_at() + RUN_OUT_SECONDS:
            return None
        return f"failed election to renew leadership on lease {self._name}"

    @property
    def holder(self) -> str:
        """Who held the lease when it was last seen, "" when nobody did."""
        spec = (self._seen or {}).get("spec") or {}
        return str(spec.get("holderIdentity") or "")

    async def run(self, on_started: Callable[[], None]) -> None:
        """Returns after the lease was lost; when cancelled, releases it first."""
        log.info("Attempting to acquire leader lease", lease=self._full_name)
        try:
            await self._acquire()
            log.info("Successfully acquired lease", lease=self._full_name)
            on_started()
            await self._hold()
        except asyncio.CancelledError:
            await self._release()
            raise
        log.error("The leader lease was lost", lease=self._full_name, err="not renewed in time")

    @property
    def _full_name(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def _acquire(self) -> None:
        told = ""
        while not await self._try():
            if self.holder != told:
                told = self.holder
                log.info("Another process leads", lease=self._full_name, holder=told)
            await self._sleep(self._seconds_to_next_look())

    def _seconds_to_next_look(self) -> float:
        seconds = self._timings.retry_period_seconds / LOOKS_IN_A_PERIOD
        seconds *= 1.0 + JITTER * self._chance()
        left_seconds = self._runs_out_at() - self._clock()
        return min(seconds, left_seconds) if left_seconds > 0 else seconds

    async def _hold(self) -> None:
        """Renews until it fails for the whole renew deadline, or another one holds the lease."""
        while self.is_leader(self._clock()):
            await self._sleep(self._timings.retry_period_seconds)
            if not await self._try() and self.holder != self._identity:
                break
        self._renewed_at = None

    async def _try(self) -> bool:
        """One attempt to get or renew the lease; failures are logged once and mean no."""
        started_at = self._clock()
        try:
            is_ours = await self._get_or_renew()
        except KubeError as error:
            if not self._is_failing:
                self._is_failing = True
                log.warning("Cannot get or renew the lease", lease=self._full_name, err=str(error))
            return False
        if self._is_failing:
            self._is_failing = False
            log.info("The lease can be reached again", lease=self._full_name)
        if is_ours:
            # The time before the request: others may count from the moment it was written.
            self._renewed_at = started_at
        return is_ours

    async def _get_or_renew(self) -> bool:
        if self._seen is not None and self.holder == self._identity and self._is_valid():
            try:
                await self._put(self._renewal(self._seen))
                return True
            except ApiError as error:
                if error.status not in (404, 409):
                    raise
        found = await self._get()
        if found is None:
            return await self._create()
        self._observe(found)
        if self.holder not in ("", self._identity) and self._is_valid():
            return False
        try:
            await self._put(self._renewal(found))
        except ApiError as error:
            if error.status == 409:  # another one was faster
                return False
            raise
        return True

    def _is_valid(self) -> bool:
        return self._clock() < self._runs_out_at()

    def _runs_out_at(self) -> float:
        """By how long we have not seen a change: the holder's clock may differ from ours."""
        spec = (self._seen or {}).get("spec") or {}
        return self._seen_at + float(spec.get("leaseDurationSeconds") or 0)

    def _observe(self, lease: dict[str, Any]) -> None:
        if self._seen is None or self._seen.get("spec") != lease.get("spec"):
            self._seen_at = self._clock()
        self._seen = lease

    def _renewal(self, lease: dict[str, Any]) -> dict[str, Any]:
        """The lease in our name; what others wrote beside it (labels, strategy) stays."""
        spec = dict(lease.get("spec") or {})
        now = micro_time(self._wall_clock())
        if spec.get("holderIdentity") != self._identity:
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
            spec["acquireTime"] = now
        spec["holderIdentity"] = self._identity
        spec["leaseDurationSeconds"] = math.ceil(self._timings.duration_seconds)
        spec["renewTime"] = now
        return {**lease, "spec": spec}

    async def _get(self) -> dict[str, Any] | None:
        try:
            response = await self._request("GET", self._path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return self._lease(response)

    async def _create(self) -> bool:
        now = micro_time(self._wall_clock())
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": math.ceil(self._timings.duration_seconds),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        }
        try:
            await self._write("POST", self._collection, lease)
        except ApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    async def _put(self, lease: dict[str, Any]) -> None:
        await self._write("PUT", self._path, lease)

    async def _write(self, method: str, path: str, lease: dict[str, Any]) -> None:
        """Is not cut when we are cancelled: the server may store it all the same. It is doubtful
        until the answer has told what was stored."""
        self._doubtful_write = asyncio.create_task(self._request(method, path, lease))
        await asyncio.wait([self._doubtful_write])
        self._observe(self._lease(self._doubtful_write.result()))
        self._doubtful_write = None

    async def _release(self) -> None:
        """Lets the next one in at once instead of after the lease ran out, wherever the server
        names us as the holder."""
        self._renewed_at = None
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT_SECONDS):
                await self._settle_last_write()
                while self.holder == self._identity:
                    await self._try_to_release()
        except TimeoutError:
            problem = f"not done within {RELEASE_TIMEOUT_SECONDS:g} seconds"
            log.warning("Cannot release the lease", lease=self._full_name, err=problem)
        except KubeError as error:
            log.warning("Cannot release the lease", lease=self._full_name, err=str(error))

    async def _settle_last_write(self) -> None:
        """A write that is under way could be stored after a look that was too early."""
        write, self._doubtful_write = self._doubtful_write, None
        if write is None:
            return
        await asyncio.wait([write], timeout=LAST_ANSWER_SECONDS)
        write.cancel()
        await asyncio.gather(write, return_exceptions=True)
        await self._look()

    async def _try_to_release(self) -> None:
        assert self._seen is not None
        now = micro_time(self._wall_clock())
        spec = {
            **self._seen["spec"],
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": now,
            "renewTime": now,
        }
        try:
            released = await self._request("PUT", self._path, {**self._seen, "spec": spec})
            self._observe(self._lease(released))
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            await self._look()
        else:
            log.info("Released the leader lease", lease=self._full_name)

    async def _look(self) -> None:
        found = await self._get()
        if found is None:
            self._seen = None
        else:
            self._observe(found)

    async def _request(self, method: str, path: str, lease: dict[str, Any] | None = None) -> bytes:
        response = await self._connection.request(
            method,
            path,
            body=None if lease is None else msgspec.json.encode(lease),
            timeout_seconds=self._timeout_seconds(),
            attempts=1,
        )
        return response.body

    def _lease(self, body: bytes) -> dict[str, Any]:
        return self._decoder.decode(body, "The server answered with no Lease")

    def _timeout_seconds(self) -> float:
        """Half the deadline, but a leader does not wait past it."""
        deadline_seconds = self._timings.renew_deadline_seconds
        if self._renewed_at is None:
            return deadline_seconds / 2
        left_seconds = self._renewed_at + deadline_seconds - self._clock()
        return min(deadline_seconds / 2, max(left_seconds, SHORTEST_TIMEOUT_SECONDS))
