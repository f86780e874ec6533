"""The shadow mode: decides for every pod that others place, beside any scheduler. It writes nothing
to the cluster: permissions to read are enough."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry

from lowtide.app.beside import Beside, BesideParts
from lowtide.app.guarding import started_server
from lowtide.app.notes import Notes
from lowtide.app.rejected_answers import RejectedAnswers
from lowtide.app.shadow_metrics import ShadowNumbers
from lowtide.app.shown import Shown
from lowtide.framework.profile import Profile
from lowtide.logs import Log
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.events import Event, ReadingPublished
from lowtide.scheduler.shadow import Shadowed
from lowtide.server.api_routes import at_once
from lowtide.server.health import health_routes
from lowtide.server.http import Server
from lowtide.server.metrics import metrics_routes
from lowtide.server.serving import Serving
from lowtide.simulator.shadow_report import Difference, ShadowSummary
from lowtide.simulator.shadowing import Shadowing
from lowtide.telemetry.metrics import MeasuredGauges

log = Log("shadow")


class ShadowApp:
    """`tell` hears of each pod that would be elsewhere."""

    def __init__(
        self,
        parts: BesideParts,
        profiles: Mapping[str, Profile],
        tell: Callable[[Difference], None],
        serving: Serving,
    ) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._tell = tell
        self._serving = serving
        timed = {name: profile.timed_by(parts.clock) for name, profile in profiles.items()}
        self._began_at = parts.clock()
        self._shadowing = Shadowing(timed, self._began_at, self._note)
        self._shadow = self._shadowing.shadow
        self._notes = Notes(timed, self._shadow.state, parts.clock)
        self._beside = Beside(parts, timed, self._shadow.plugins_by_kind, self._take)
        self.server: Server | None = None

    def stop(self) -> None:
        self._beside.stop()

    async def run(self) -> ShadowSummary:
        """KubeError where the cluster was never seen."""
        async with AsyncExitStack() as stack:
            await self._serve(stack)
            await self._beside.run()
        self._beside.check_seen()
        return self._summary()

    # Parts of it.

    def _take(self, event: Event) -> None:
        was_synced = self._shadow.is_synced
        self._began_at = self._clock()
        difference = self._shadowing.step(event, self._began_at)
        if isinstance(event, ReadingPublished):
            self._notes.note_reading(event.source, event.reading)
        if difference is not None:
            self._tell(difference)
        if self._shadow.is_synced and not was_synced:
            log.info("Shadowing", nodes=self._shadow.state.count)

    def _note(self, shadowed: Shadowed) -> None:
        decision, now = shadowed.decision, self._began_at
        if decision is None:
            return
        first_seen_at = now - shadowed.waited_seconds
        decided = Decided(decision, 1, first_seen_at, shadowed.spent)
        self._notes.note(decided, now, is_on=shadowed.node_name)

    async def _serve(self, stack: AsyncExitStack) -> None:
        parts, serving = self._parts, self._serving
        if serving.port < 0:
            return
        registry = CollectorRegistry()
        registry.register(MeasuredGauges(self._beside.measuring.numbers))
        registry.register(RejectedAnswers(self._beside.rejected_answers))
        registry.register(ShadowNumbers(self._summary))
        self.server = await started_server(
            stack,
            serving,
            parts.access,
            shown=self._shown(),
            ask=at_once,
            routes=[
                *health_routes(healthz=[], livez=[], readyz=[("cluster", self._why_not_synced)]),
                *metrics_routes(registry),
            ],
            clock=parts.clock,
            wall_clock=parts.wall_clock,
        )
        log.info(f"Serving {serving.what}", address=self.server.address.url)

    def _shown(self) -> Shown:
        return Shown(
            self._shadow,
            self._notes.ring,
            self._notes.history,
            mode="shadow",
            clock=self._clock,
            measured=self._beside.measuring.numbers,
            is_leader=lambda: None,
            diagnosis=self._beside.measuring.diagnosis,
            stale_watches=self._beside.outages.stale_watches,
        )

    def _why_not_synced(self) -> str | None:
        return None if self._shadow.is_synced else "nodes and pods are not listed yet"

    def _summary(self) -> ShadowSummary:
        return self._shadowing.summary(self._clock())
