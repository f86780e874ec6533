"""The record mode: writes down what a cluster does and what is measured on it, from outside, beside
any scheduler."""

from collections.abc import Callable, Mapping

from lowtide.app.beside import Beside, BesideParts
from lowtide.framework.profile import Profile, plugins_by_kind
from lowtide.logs import Log
from lowtide.objects.events import Listed
from lowtide.records.recorder import Recorder
from lowtide.records.recording_header import RecordingError
from lowtide.scheduler.events import Event

log = Log("record")


class RecordApp:
    def __init__(
        self,
        parts: BesideParts,
        profiles: Mapping[str, Profile],
        make_recorder: Callable[[Mapping[str, Profile]], Recorder],
    ) -> None:
        self._clock = parts.clock
        self._recorder = make_recorder(profiles)
        self._unlisted = {"Node", "Pod"}
        self._beside = Beside(parts, profiles, plugins_by_kind(profiles.values()), self._take)
        self.event_count = 0

    def stop(self) -> None:
        self._beside.stop()

    async def run(self) -> None:
        """RecordingError where the file ends before the run, KubeError where the cluster was never
        seen; then no file is left, and what was there before is."""
        try:
            with self._recorder:
                await self._beside.run()
        finally:
            if not self._beside.has_seen:
                self._recorder.discard()
        if self._recorder.failure:
            raise RecordingError(f"the recording is cut: {self._recorder.failure}")
        self._beside.check_seen()

    def _take(self, event: Event) -> None:
        self.event_count += 1
        self._recorder.applied(event, self._clock())
        if self._recorder.failure:
            self.stop()
        if isinstance(event, Listed) and event.kind in self._unlisted:
            self._unlisted.discard(event.kind)
            if not self._unlisted:
                log.info("Nodes and pods are listed")
