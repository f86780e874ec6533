"""The shadow mode: decides for every pod that others place, beside any scheduler. It writes nothing
to the cluster: rights to read are enough."""

from collections.abc import Callable, Mapping

from lowtide.app.beside import Beside, BesideParts
from lowtide.framework.profile import Profile
from lowtide.logs import Log
from lowtide.scheduler.events import Event
from lowtide.simulator.shadow_report import Difference, ShadowSummary
from lowtide.simulator.shadowing import Shadowing

log = Log("shadow")


class ShadowApp:
    """`tell` hears of each pod that would be elsewhere."""

    def __init__(
        self,
        parts: BesideParts,
        profiles: Mapping[str, Profile],
        tell: Callable[[Difference], None],
    ) -> None:
        self._clock = parts.clock
        self._tell = tell
        self._shadowing = Shadowing(profiles, parts.clock())
        rules_by_kind = self._shadowing.shadow.rules_by_kind
        self._beside = Beside(parts, profiles, rules_by_kind, self._take)

    def stop(self) -> None:
        self._beside.stop()

    async def run(self) -> ShadowSummary:
        await self._beside.run()
        return self._shadowing.summary(self._clock())

    def _take(self, event: Event) -> None:
        shadow = self._shadowing.shadow
        was_synced = shadow.is_synced
        difference = self._shadowing.step(event, self._clock())
        if difference is not None:
            self._tell(difference)
        if shadow.is_synced and not was_synced:
            log.info("Shadowing", nodes=shadow.state.count)
