"""What a mode keeps for those who look: its decisions, in memory and in a file where one is wanted,
and what was measured lately. Modes on a cluster have one each."""

from collections.abc import Coroutine, Hashable, Mapping
from typing import Any

from lowtide.app.clocks import Clock
from lowtide.app.journaling import Journaling
from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.framework.profile import Profile
from lowtide.logs import Log
from lowtide.records.history import History
from lowtide.records.journal import Journal
from lowtide.records.measured import traffic_request_of
from lowtide.records.ring import Ring
from lowtide.scheduler.actions import Decided

log = Log("records")


class Notes:
    """Decisions are noted by who owns the state; readings and the file belong to the event loop."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        state: ClusterState,
        clock: Clock,
        *,
        journal: Journal | None = None,
        rows_may_change: bool = True,
    ) -> None:
        self._clock = clock
        self._request = traffic_request_of(profiles.values())
        self._journaling = None if journal is None else Journaling(journal)
        self.ring = Ring(profiles, state, clock, rows_may_change=rows_may_change)
        self.history = History()

    def note(self, decided: Decided, began_at: float, is_on: str | None = None) -> None:
        """As Ring.note. Whatever goes wrong in it, the decision stands."""
        try:
            kept = self.ring.note(decided, began_at, is_on)
            if self._journaling is not None:
                self._journaling.note(kept)
        except Exception:
            log.exception("A decision cannot be kept", pod=decided.decision.pod.key)

    def note_reading(self, source: Hashable, reading: Reading) -> None:
        if source == self._request and reading.is_sampled:
            self.history.note(reading, self._clock())

    def background(self) -> list[Coroutine[Any, Any, None]]:
        """To be run for as long as anything is noted."""
        return [] if self._journaling is None else [self._journaling.run()]

    async def flush(self) -> None:
        if self._journaling is not None:
            await self._journaling.flush()
