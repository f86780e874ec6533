"""Kubernetes Events about pods, written when there is time; repetitions become one series.

The tasks of scheduler/live record them; `run` and, at the end, `flush` write them."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

from lowtide.kube.backoff import Backoff
from lowtide.kube.connection import JSON, STRATEGIC_MERGE_PATCH, Connection
from lowtide.kube.errors import ApiError, KubeError, is_forbidden, may_pass
from lowtide.kube.event_form import (
    CORE_FORM,
    EVENTS_FORM,
    EventForm,
    ObjectReference,
    Series,
    cut_note,
    event_name,
)
from lowtide.kube.pacing import write_behind_bindings
from lowtide.logs import Log

QUEUE_LENGTH = 20_000  # about 600 bytes each
CONCURRENT_WRITES = 16
# To start a task for each would cost more than to make its Event: so many share CONCURRENT_WRITES.
TAKEN_AT_ONCE = 128
# So many give way to bindings: no more but those taken are lost with a process that is killed.
MOST_GIVING_WAY = 4_000
# Of an Event that the server answers with an error of its own: about three minutes.
MOST_TRIES = 12
SWEEP_EVERY_SECONDS = 60.0
SERIES_ENDS_AFTER_SECONDS = 6 * 60.0
SERIES_WRITTEN_EVERY_SECONDS = 30 * 60.0

log = Log("kube")

_Isomorphic = tuple[str, str, str, str, ObjectReference, ObjectReference | None]


class _Write(msgspec.Struct, frozen=True):
    """One thing to write about a series: the Event itself, or how often it was seen."""

    series: Series
    is_new: bool
    tries: int = 0  # that were answered with an error which may pass


class KubeEvents:
    """`is_busy` tells whether bindings are under way: they go before Events."""

    def __init__(
        self,
        connection: Connection,
        *,
        host_name: str,
        is_busy: Callable[[], bool],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        queue_length: int = QUEUE_LENGTH,
        most_giving_way: int = MOST_GIVING_WAY,
    ) -> None:
        self._connection = connection
        self._host_name = host_name
        self._is_busy = is_busy
        self._clock = clock
        self._sleep = sleep
        self._queue_length = queue_length
        self._most_giving_way = most_giving_way
        self._queue: deque[_Write] = deque()
        self._has_work = asyncio.Event()
        self._backoff = Backoff()
        self._series: dict[_Isomorphic, Series] = {}
        self._form: EventForm = EVENTS_FORM
        self._last_nanoseconds = 0
        self._dropped = 0
        self._failed = 0
        self._last_failure = ""

    def record(
        self,
        regarding: ObjectReference,
        *,
        scheduler_name: str,
        type: str,  # noqa: A002 (the field's name: "Normal" or "Warning")
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None = None,
    ) -> None:
        """Never waits: what does not fit into the queue is counted and left out."""
        now = self._clock()
        key = (type, action, reason, scheduler_name, regarding, related)
        known = self._series.get(key)
        if known is not None and now - known.last_seen_at < SERIES_ENDS_AFTER_SECONDS:
            known.count += 1
            known.last_seen_at = now
            if known.count == 2:
                known.has_pending_count = self._put(_Write(known, is_new=False))
            return
        series = Series(
            name=event_name(regarding.name, self._next_nanoseconds(now)),
            host_name=self._host_name,
            scheduler_name=scheduler_name,
            type=type,
            reason=reason,
            action=action,
            note=cut_note(note),
            regarding=regarding,
            related=related,
            first_seen_at=now,
            last_seen_at=now,
            written_at=now,
        )
        if known is not None:
            self._write_count(known)
        if self._put(_Write(series, is_new=True)):
            self._series[key] = series

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._write_forever())
            tasks.create_task(self._sweep_forever())

    async def flush(self, timeout_seconds: float) -> None:
        """Writes what is queued, and the counts of open series, as far as the time allows."""
        for series in self._series.values():
            self._write_count(series)
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._queue:
                    await self._write_next(TAKEN_AT_ONCE)
        except TimeoutError:
            self._dropped += len(self._queue)
            self._last_failure = f"not done within {timeout_seconds:g} seconds"
            self._queue.clear()
        self._log_losses()

    async def _write_forever(self) -> None:
        await write_behind_bindings(
            has_work=self._has_work,
            is_busy=self._should_give_way,
            write_next=self._write_next,
            at_once=TAKEN_AT_ONCE,
            sleep=self._sleep,
        )

    def _should_give_way(self) -> bool:
        return len(self._queue) < self._most_giving_way and self._is_busy()

    async def _sweep_forever(self) -> None:
        while True:
            await self._sleep(SWEEP_EVERY_SECONDS)
            self._sweep(self._clock())
            self._log_losses()

    def _sweep(self, now: float) -> None:
        """Ends series that were not seen for a while, and writes counts of those that go on."""
        for key, series in list(self._series.items()):
            if now - series.last_seen_at >= SERIES_ENDS_AFTER_SECONDS:
                self._write_count(series)
                del self._series[key]
            elif now - series.written_at >= SERIES_WRITTEN_EVERY_SECONDS:
                self._write_count(series)

    def _write_count(self, series: Series) -> None:
        is_behind = series.count > max(series.written_count, 1)  # the creation itself tells of one
        if is_behind and not series.has_pending_count:
            series.has_pending_count = self._put(_Write(series, is_new=False))

    def _put(self, write: _Write) -> bool:
        if len(self._queue) >= self._queue_length:
            self._dropped += 1
            return False
        self._queue.append(write)
        self._has_work.set()
        return True

    async def _write_next(self, limit: int) -> None:
        """Writes up to `limit`, some of them at once; two writes of one series never overtake each
        other. What the server did not take for now waits in line again, as does what gives way; if
        it took nothing, all wait."""
        batch: dict[int, _Write] = {}
        while self._queue and len(batch) < limit and id(self._queue[0].series) not in batch:
            write = self._queue.popleft()
            batch[id(write.series)] = write
        if not self._queue:
            self._has_work.clear()
        left = deque(batch.values())
        try:
            hands = min(len(left), CONCURRENT_WRITES)
            settled = await asyncio.gather(*(self._write_some(left) for _ in range(hands)))
        finally:
            if left:
                self._queue.extendleft(reversed(left))
                left.clear()
                self._has_work.set()
        if any(settled):
            self._backoff.reset()
        elif settled:
            await self._sleep(self._backoff.next_seconds())

    async def _write_some(self, left: deque[_Write]) -> bool:
        """Whether any of it is settled; goes on until one is not, or what is left should give way,
        which is looked for now and then: each time it costs as much as a task."""
        is_any_settled = False
        while left:
            write = left.popleft()
            try:
                is_settled = await self._write(write)
            except asyncio.CancelledError:
                left.appendleft(write)  # for flush
                raise
            if not is_settled:
                break
            is_any_settled = True
            if len(left) % CONCURRENT_WRITES == 0 and self._should_give_way():
                break
        return is_any_settled

    async def _write(self, write: _Write) -> bool:
        """Whether that is settled; else it waits in line again."""
        series = write.series
        if not write.is_new:
            series.has_pending_count = False
        series.written_at = self._clock()
        try:
            if not write.is_new:
                await self._patch(series)
            elif series.form is None:  # else a count made up for a creation that had failed
                await self._create(series)
        except KubeError as error:
            tries = write.tries + isinstance(error, ApiError)
            if (may_pass(error) or is_forbidden(error)) and tries < MOST_TRIES:
                self._queue.append(msgspec.structs.replace(write, tries=tries))
                self._has_work.set()
                return False
            self._failed += 1
            self._last_failure = str(error)
        return True

    async def _create(self, series: Series) -> None:
        try:
            await self._post(self._form, series)
        except ApiError as error:
            if error.status not in (403, 404) or self._form is CORE_FORM:
                raise
            # The namespace may be gone, or the server or our permissions may lack the newer API:
            # only when the older one takes the Event is it the latter.
            await self._post(CORE_FORM, series)
            self._form = CORE_FORM
            log.info("Events are written to core/v1: events.k8s.io/v1 is not available to us")

    async def _post(self, form: EventForm, series: Series) -> None:
        try:
            await self._connection.request(
                "POST", form.path(series), body=form.document(series), content_type=JSON
            )
        except ApiError as error:
            if error.status != 409:  # our own, whose answer was lost
                raise
        series.form = form
        series.written_count = 1

    async def _patch(self, series: Series) -> None:
        if series.form is None:  # the first write failed: this one makes up for it
            await self._create(series)
        try:
            await self._patch_count(series, series.form or self._form)
        except ApiError as error:
            if error.status != 404:
                raise
            await self._create(series)  # Events live for an hour only
            await self._patch_count(series, series.form or self._form)

    async def _patch_count(self, series: Series, form: EventForm) -> None:
        count = series.count
        await self._connection.request(
            "PATCH",
            f"{form.path(series)}/{series.name}",
            body=form.patch(series),
            content_type=STRATEGIC_MERGE_PATCH,
        )
        series.written_count = count

    def _next_nanoseconds(self, now: float) -> int:
        """Names of Events must differ even where the clock does not move between two of them."""
        self._last_nanoseconds = max(int(now * 1e9), self._last_nanoseconds + 1)
        return self._last_nanoseconds

    def _log_losses(self) -> None:
        if self._dropped or self._failed:
            log.warning(
                "Some Events were not written",
                dropped=self._dropped,
                failed=self._failed,
                err=self._last_failure or "the queue was full",
            )
        self._dropped = self._failed = 0
        self._last_failure = ""
