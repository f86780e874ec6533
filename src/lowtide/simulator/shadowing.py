"""Shadow mode without I/O: events in, and a summary of what the plugins would have done with the
pods that others placed. `app/shadow` drives it on a cluster, `app/replay` by a recording."""

from collections.abc import Callable, Mapping

from lowtide.framework.profile import Profile
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.pod import Pod
from lowtide.records.measured import traffic_request_of
from lowtide.scheduler.events import Event, ReadingPublished
from lowtide.scheduler.shadow import Shadow, Shadowed
from lowtide.simulator.link_course import LinkCourse
from lowtide.simulator.predicted_links import PredictedLinks
from lowtide.simulator.shadow_report import Difference, ShadowReport, ShadowSummary


class Shadowing:
    """`on_shadowed` hears of each pod that was judged, before its traffic counts where it would
    be."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        since: float,
        on_shadowed: Callable[[Shadowed], None] = lambda shadowed: None,
    ) -> None:
        self._on_shadowed = on_shadowed
        self.shadow = Shadow(profiles)
        self._request = traffic_request_of(profiles.values())
        self._links = (
            None if self._request is None else PredictedLinks(self._request, self.shadow.state)
        )
        self._measured = LinkCourse(keeps_course=False)
        self._report = ShadowReport(since)

    def step(self, event: Event, now: float) -> Difference | None:
        """A pod that would be elsewhere, where the event tells of one."""
        shadowed = self.shadow.step(event, now)
        match event:
            case Deleted(object=Pod() as pod):
                self._gone(pod)
            case Added(object=Pod() as pod) | Modified(object=Pod() as pod) if pod.has_ended:
                self._gone(pod)
            case ReadingPublished(source, reading) if self._links and source == self._request:
                self._measured.look(reading, self.shadow.state, now)
                self._report.look(self._links.hottest())
        if shadowed is None:
            return None
        self._on_shadowed(shadowed)
        self._move(shadowed)
        return self._report.note(shadowed, now)

    def summary(self, now: float) -> ShadowSummary:
        shadow = self.shadow
        return self._report.summary(
            now,
            nodes=shadow.state.count,
            pending=len(shadow.queue),
            measured=self._measured.figures(),
        )

    def _move(self, shadowed: Shadowed) -> None:
        would_be_on = shadowed.would_be_on
        if self._links is not None and would_be_on != shadowed.node_name:
            self._links.move(shadowed.pod, shadowed.node_name, would_be_on)

    def _gone(self, pod: Pod) -> None:
        if self._links is not None:
            self._links.forget(pod.uid)
