"""Writes decisions to a file beside the deciding: in batches, on a thread of its own. When that
fails, deciding goes on."""

import asyncio
from collections import deque

from lowtide.logs import Log
from lowtide.records.journal import Journal
from lowtide.records.record import DecisionRecord
from lowtide.records.ring import Kept

log = Log("records")

EVERY_SECONDS = 1.0
MOST_WAITING = 5000


class Journaling:
    """`note` may be called by another thread."""

    def __init__(self, journal: Journal, every_seconds: float = EVERY_SECONDS) -> None:
        self._journal = journal
        self._every_seconds = every_seconds
        self._waiting: deque[Kept] = deque()
        self._lost = 0
        self._has_failed = False
        self._writing = asyncio.Lock()

    def note(self, kept: Kept) -> None:
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(kept)
        else:
            self._lost += 1

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(self._every_seconds)
            await self.flush()

    async def flush(self) -> None:
        """What waits, once no other write is under way: two that rotate would lose a file. A
        thread cannot be cancelled, so the write goes on, and is waited for by the next."""
        await asyncio.shield(asyncio.ensure_future(self._flush()))

    async def _flush(self) -> None:
        async with self._writing:
            await self._write_waiting()

    async def _write_waiting(self) -> None:
        batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not batch:
            return
        try:
            await asyncio.to_thread(self._write, batch)
        except Exception as error:  # a record that cannot be made is no reason to stop either
            self._lost += len(batch)
            if not self._has_failed:
                self._has_failed = True
                log.warning("Decisions cannot be written; deciding goes on", err=error)
            return
        if self._has_failed or self._lost:
            log.warning("Decisions are written again", lost=self._lost)
            self._has_failed, self._lost = False, 0

    def _write(self, batch: list[Kept]) -> None:
        self._journal.write(DecisionRecord.from_kept(kept) for kept in batch)
