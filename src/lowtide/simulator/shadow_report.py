"""What shadow mode has found so far: agreement with who places the pods, the pods that would be
elsewhere and why, and the busiest link with and without that."""

from collections import Counter, deque
from typing import Final

import msgspec

from lowtide.framework.decision import Decision
from lowtide.scheduler.shadow import Agreement, Shadowed
from lowtide.simulator.link_course import LinkFigures
from lowtide.simulator.predicted_links import Hottest

# That are kept, and that a page shows: 1.5 MB, shown within two seconds; with five times as many it
# takes fourteen.
MOST_DIFFERENCES: Final = 10_000


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """`reason` is the plugin that speaks most for the other node, or what rejects the one it is on;
    `points` is how much better the other node is, where both were scored."""

    time: float
    pod: str
    scheduler: str
    node: str
    predicted_node: str | None
    agreement: str
    reason: str
    points: int | None = None


class LinkPeaks(msgspec.Struct, frozen=True, kw_only=True):
    """As shares of capacity, with what was just placed and is not measured yet: the highest that
    was seen, as it was and as it would have been."""

    readings: int
    hottest: float
    hottest_node: str
    predicted_hottest: float
    predicted_hottest_node: str
    highest_p95: float
    predicted_highest_p95: float


class ShadowSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`agreed` counts pods on the node that the plugins would have chosen, or on one as good;
    `differences` are the last of the others. `measured` is what links carried, the same as a
    comparison tells as recorded; `links` counts in what was just placed, as a prediction must."""

    since: float
    until: float
    nodes: int
    pods: int
    agreed: int
    agreement: dict[str, int]
    pending: int
    measured: LinkFigures | None = None
    links: LinkPeaks | None = None
    now: Hottest | None = None
    differences: list[Difference] = []

    @property
    def elsewhere(self) -> int:
        return self.pods - self.agreed

    @property
    def agreed_share(self) -> float | None:
        return self.agreed / self.pods if self.pods else None


class ShadowReport:
    def __init__(self, since: float, kept_differences: int = MOST_DIFFERENCES) -> None:
        self._since = since
        self._counts: Counter[Agreement] = Counter()
        self._differences: deque[Difference] = deque(maxlen=kept_differences)
        self._readings = 0
        self._now: Hottest | None = None
        self._worst: Hottest | None = None
        self._worst_predicted: Hottest | None = None
        self._p95 = self._predicted_p95 = 0.0

    def note(self, shadowed: Shadowed, now: float) -> Difference | None:
        """None where the plugins agree."""
        self._counts[shadowed.agreement] += 1
        if shadowed.agreement in (Agreement.SAME, Agreement.AS_GOOD):
            return None
        decision = shadowed.decision
        behind = None
        if shadowed.total is not None and shadowed.best_total is not None:
            behind = shadowed.best_total - shadowed.total
        found = Difference(
            time=now,
            pod=shadowed.pod.key,
            scheduler=shadowed.pod.spec.scheduler_name,
            node=shadowed.node_name,
            predicted_node=None if decision is None else decision.node_name,
            agreement=shadowed.agreement.value,
            reason=_because(shadowed),
            points=behind,
        )
        self._differences.append(found)
        return found

    def look(self, hottest: Hottest | None) -> None:
        """After each reading."""
        self._now = hottest
        if hottest is None:
            return
        self._readings += 1
        if self._worst is None or hottest.share > self._worst.share:
            self._worst = hottest
        before = self._worst_predicted
        if before is None or hottest.predicted_share > before.predicted_share:
            self._worst_predicted = hottest
        self._p95 = max(self._p95, hottest.p95)
        self._predicted_p95 = max(self._predicted_p95, hottest.predicted_p95)

    def summary(
        self, now: float, *, nodes: int, pending: int, measured: LinkFigures | None = None
    ) -> ShadowSummary:
        return ShadowSummary(
            since=self._since,
            until=now,
            nodes=nodes,
            pods=self._counts.total(),
            agreed=self._counts[Agreement.SAME] + self._counts[Agreement.AS_GOOD],
            agreement={each.value: self._counts[each] for each in Agreement},
            pending=pending,
            measured=measured,
            links=self._links(),
            now=self._now,
            differences=list(self._differences),
        )

    def _links(self) -> LinkPeaks | None:
        if self._worst is None or self._worst_predicted is None:
            return None
        return LinkPeaks(
            readings=self._readings,
            hottest=self._worst.share,
            hottest_node=self._worst.node,
            predicted_hottest=self._worst_predicted.predicted_share,
            predicted_hottest_node=self._worst_predicted.predicted_node,
            highest_p95=self._p95,
            predicted_highest_p95=self._predicted_p95,
        )


def _because(shadowed: Shadowed) -> str:
    if shadowed.error:
        return shadowed.error
    if shadowed.rejection is not None:
        return f"{shadowed.rejection.plugin}: {', '.join(shadowed.rejection.reasons)}"
    decision = shadowed.decision
    if decision is None:
        return ""
    if decision.node_name is None:
        return decision.fit_error
    return shadowed.because


def speaks_for(decision: Decision, other_node: str) -> str:
    """The plugin that speaks most for the chosen node beside the other one; "" where none does, or
    nobody knows any more."""
    by_node = {each.node_name: each.by_plugin for each in decision.best}
    chosen, other = by_node.get(decision.node_name or ""), by_node.get(other_node)
    if chosen is None or other is None:
        return ""
    gains = {plugin: score.weighted - other[plugin].weighted for plugin, score in chosen.items()}
    best = max(gains, key=lambda plugin: gains[plugin], default="")
    return best if best and gains[best] > 0 else ""
