"""Writes decisions to a file beside the scheduling: in batches, on a thread of its own. When that
fails, scheduling goes on."""

import asyncio

from lowtide.logs import Log
from lowtide.records.journal import Journal
from lowtide.records.record import DecisionRecord
from lowtide.records.ring import Kept

log = Log("scheduler")

EVERY_SECONDS = 1.0
MOST_WAITING = 5000


class Journaling:
    def __init__(self, journal: Journal, every_seconds: float = EVERY_SECONDS) -> None:
        self._journal = journal
        self._every_seconds = every_seconds
        self._waiting: list[Kept] = []
        self._lost = 0
        self._has_failed = False

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
        if not self._waiting:
            return
        batch, self._waiting = self._waiting, []
        try:
            await asyncio.to_thread(self._write, batch)
        except Exception as error:  # a record that cannot be made is no reason to stop either
            self._lost += len(batch)
            if not self._has_failed:
                self._has_failed = True
                log.warning("Decisions cannot be written; scheduling goes on", err=error)
            return
        if self._has_failed or self._lost:
            log.warning("Decisions are written again", lost=self._lost)
            self._has_failed, self._lost = False, 0

    def _write(self, batch: list[Kept]) -> None:
        self._journal.write(DecisionRecord.of(kept) for kept in batch)
