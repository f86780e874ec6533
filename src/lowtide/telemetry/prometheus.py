"""A client for what Lowtide asks Prometheus: instant queries that give a vector or a matrix.

Called by the poller; made and closed by app."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar

import aiohttp
from yarl import URL

from lowtide.input_limits import Intake
from lowtide.logs import Log
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.address import ServiceAddress, UrlAddress, parse_address, shown_address
from lowtide.readings.rest import Rest, no_rest
from lowtide.readings.series import Series
from lowtide.telemetry.errors import AddressFailure, Fault, PrometheusError
from lowtide.telemetry.prometheus_access import Credentials
from lowtide.telemetry.prometheus_answers import Answer, AnswerReader, RangeSeries
from lowtide.telemetry.prometheus_endpoints import (
    Endpoint,
    KubeServiceProxy,
    ServiceEndpoint,
    UrlEndpoint,
)

__all__ = [
    "KubeServiceProxy",
    "OffThread",
    "Prometheus",
    "PrometheusError",
    "at_once",
    "query_url",
    "shown_address",
]

log = Log("telemetry")

FIRST_BACKOFF_SECONDS: Final = 1.0
LONGEST_BACKOFF_SECONDS: Final = 60.0

Result = TypeVar("Result")


class OffThread(Protocol):
    """Runs work that takes long with many nodes on another thread, one piece at a time, so that the
    event loop does not wait. Returns the work's result or raises its error."""

    def __call__(self, work: Callable[[], Result], /) -> Awaitable[Result]: ...


async def at_once(work: Callable[[], Result], /) -> Result:
    """Do the work on this thread."""
    return work()


@dataclass(slots=True)
class _Candidate:
    """An address and how it did lately."""

    endpoint: Endpoint
    failures: int = 0  # in a row
    turn_at: float = 0.0
    failure: AddressFailure | None = None


class Prometheus:
    """Speaks to Prometheus, or to what answers its queries (Thanos, Mimir, VictoriaMetrics).

    Of several addresses the first that answers is asked; one that fails is left alone for a
    while. `clock` never jumps. The first query opens the connections; `close` ends them. Answers
    are read on another thread."""

    def __init__(
        self,
        access: PrometheusAccess,
        *,
        clock: Callable[[], float],
        proxy: KubeServiceProxy | None = None,
        off_thread: OffThread = at_once,
        rest: Rest = no_rest,
    ) -> None:
        credentials = Credentials(access)
        self._intake = Intake()
        self._clock = clock
        self._off_thread = off_thread
        self._candidates = [
            _Candidate(self._endpoint(_parsed(address), access, credentials, proxy))
            # Without any address the missing one is told like a malformed one.
            for address in access.addresses or ("",)
        ]
        self._answered = self._candidates[0]
        self._reader = AnswerReader(rest)
        self._session: aiohttp.ClientSession | None = None

    @property
    def address(self) -> str:
        """Which address answered last, without any password: fit for a log."""
        return self._answered.endpoint.address

    @property
    def rejected(self) -> int:
        """How many answers were rejected for their size, since the start."""
        return self._intake.rejected

    async def query(self, promql: str) -> list[Series]:
        """The vector that this query gives now; PrometheusError when there is none."""
        return await self._ask(promql, self._reader.vector)

    async def query_all(
        self, queries: Mapping[str, str], *, at_once: int | None = None
    ) -> tuple[dict[str, list[Series]], dict[str, PrometheusError]]:
        """The answers by the names of the queries, and why the others have none."""
        slots = asyncio.Semaphore(at_once or max(1, len(queries)))

        async def ask(promql: str) -> list[Series] | PrometheusError:
            async with slots:
                try:
                    return await self.query(promql)
                except PrometheusError as error:
                    return error

        outcomes = await asyncio.gather(*map(ask, queries.values()))
        answers: dict[str, list[Series]] = {}
        failures: dict[str, PrometheusError] = {}
        for name, outcome in zip(queries, outcomes, strict=True):
            if isinstance(outcome, PrometheusError):
                failures[name] = outcome
            else:
                answers[name] = outcome
        return answers, failures

    async def query_range_vector(self, promql: str) -> list[RangeSeries]:
        """The samples that a query such as `up[15m]` gives now; PrometheusError without any."""
        return await self._ask(promql, self._reader.matrix)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _ask(self, promql: str, read: Callable[[Answer, str], Result]) -> Result:
        failures: dict[int, AddressFailure] = {}
        for candidate in self._in_turn():
            failures_before = candidate.failures
            try:
                answer = await candidate.endpoint.ask(promql)
                result = await self._off_thread(partial(read, answer, promql))
            except AddressFailure as error:
                # Not the error itself is kept: its frames hold the answer, which may be large.
                failure = AddressFailure(error.address, error.text, error.fault)
            else:
                self._note_answer(candidate)
                return result
            if failure.fault is Fault.QUERY:
                self._note_answer(candidate)
                raise PrometheusError(str(failure), failure.fault)
            failures[id(candidate)] = failure
            self._note_failure(candidate, failure, failures_before)
        raise self._no_answer(failures)

    def _in_turn(self) -> list[_Candidate]:
        """Whose turn it is, and last the one whose turn is next: something is always asked."""
        now = self._clock()
        due = [candidate for candidate in self._candidates if candidate.turn_at <= now]
        later = [candidate for candidate in self._candidates if candidate.turn_at > now]
        return [*due, *sorted(later, key=lambda candidate: candidate.turn_at)[:1]]

    def _note_answer(self, candidate: _Candidate) -> None:
        if candidate.failures and len(self._candidates) > 1:
            log.info("An address of Prometheus answers again", address=candidate.endpoint.address)
        candidate.failures, candidate.turn_at, candidate.failure = 0, 0.0, None
        self._answered = candidate

    def _note_failure(
        self, candidate: _Candidate, failure: AddressFailure, failures_before: int
    ) -> None:
        candidate.failure = failure
        # Queries that were under way together and failed together count as one failure.
        if candidate.failures > failures_before:
            return
        if candidate.failures == 0 and len(self._candidates) > 1:
            log.warning("An address of Prometheus fails; the next one is asked", err=failure)
        backoff_seconds = FIRST_BACKOFF_SECONDS * 2.0 ** min(candidate.failures, 16)
        candidate.failures += 1
        candidate.turn_at = self._clock() + min(backoff_seconds, LONGEST_BACKOFF_SECONDS)

    def _no_answer(self, asked: Mapping[int, AddressFailure]) -> PrometheusError:
        """Of an address that was left alone this time the last reason is told."""
        told = [asked.get(id(one), one.failure) for one in self._candidates]
        failures = [failure for failure in told if failure is not None]
        if len(failures) == 1:
            return PrometheusError(str(failures[0]), failures[0].fault)
        sentence = "; ".join(f"{failure.address} {failure.text}" for failure in failures)
        return PrometheusError(f"no address of Prometheus answers: {sentence}", failures[0].fault)

    def _endpoint(
        self,
        address: UrlAddress | ServiceAddress,
        access: PrometheusAccess,
        credentials: Credentials,
        proxy: KubeServiceProxy | None,
    ) -> Endpoint:
        if isinstance(address, ServiceAddress):
            return ServiceEndpoint(address, access, proxy=proxy)
        return UrlEndpoint(
            address, access, credentials=credentials, session=self._opened, intake=self._intake
        )

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        return self._session


def query_url(address: str) -> URL:
    """Where queries go for an address as people write it; PrometheusError if it is none.

    For a Service that is a path on the API server."""
    parsed = _parsed(address)
    return URL(parsed.query_path) if isinstance(parsed, ServiceAddress) else parsed.query_url


def _parsed(address: str) -> UrlAddress | ServiceAddress:
    try:
        return parse_address(address)
    except ValueError as error:
        raise PrometheusError(str(error)) from None
