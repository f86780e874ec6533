"""Advisor: advises another scheduler, which places the pods itself, which nodes to leave out and
which to prefer. Pure: it takes events, and gives advice from the state they left.

`advising` runs it for the extender."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from lowtide.advisor.advice import (
    Asked,
    AskedPreemption,
    FilterAdvice,
    PreemptionAdvice,
    PriorityAdvice,
)
from lowtide.advisor.asked_rows import AskedRejections, AskedRows, RowFinder
from lowtide.advisor.bookings import Bookings
from lowtide.advisor.listener import Listener
from lowtide.advisor.preempting import fitting_without_victims
from lowtide.advisor.requested_nodes import as_requested
from lowtide.cluster.columns import BoolArray, IntArray
from lowtide.cluster.state import ClusterState
from lowtide.config.extender_settings import ExtenderSettings
from lowtide.framework.asking import Asking, ask
from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import PluginError, PodRejection
from lowtide.framework.profile import Profile, plugins_by_kind
from lowtide.framework.ranking import RankedAmong
from lowtide.framework.verdict import Verdict
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.extender import MOST_PRIORITY
from lowtide.objects.pod import Pod, PodSpec
from lowtide.objects.quantity import QuantityError
from lowtide.objects.requests import scored_requests
from lowtide.scheduler.actions import AnsweredPriorities, Decided
from lowtide.scheduler.decide import DecisionWriter, decided_now
from lowtide.scheduler.events import Event
from lowtide.scheduler.feasibility import Feasibility, feasibility
from lowtide.scheduler.object_events import ObjectEvents
from lowtide.scheduler.unbound_pods import UnboundPods

T = TypeVar("T")
Work = Callable[[VerdictCache, Asking], T]

FILTER, PRIORITIZE = "filter", "prioritize"
UNKNOWN_NODE = "node(s) are not known to Lowtide yet"
# Limits of the verdict caches: of each profile, and of profiles without their broken plugins.
_MOST_BYTES = 64 * 1024 * 1024
_MOST_BYTES_BROKEN = 4 * 1024 * 1024
_MOST_BROKEN = 16


class Advisor:
    """Uses the profile that the pod's schedulerName names, or else the first profile."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        settings: Mapping[str, ExtenderSettings],
        listener: Listener,
    ) -> None:
        self.state = ClusterState()
        self.profiles = profiles
        self._settings = settings
        self._listener = listener
        self._verdicts: dict[tuple[str, frozenset[str]], VerdictCache] = {}
        self._objects = ObjectEvents(self.state, profiles.values(), self)
        self.queue = UnboundPods()
        self._bookings = Bookings(self.state)
        self._finder = RowFinder(self.state)
        self._turns = 0
        self._untold: tuple[Decided, float] | None = None

    @property
    def plugins_by_kind(self) -> dict[type, tuple[str, ...]]:
        """The object types to watch besides nodes and pods, with the plugins that need them."""
        return plugins_by_kind(self.profiles.values())

    @property
    def unlisted(self) -> frozenset[str]:
        """The kinds whose objects have not been listed yet."""
        return frozenset(self._objects.unlisted)

    def profile_for(self, pod: Pod) -> Profile:
        first = next(iter(self.profiles.values()))
        return self.profiles.get(pod.spec.scheduler_name, first)

    def settings_for(self, pod: Pod) -> ExtenderSettings:
        return self._settings[self.profile_for(pod).scheduler_name]

    # Events of watches and meters.

    def step(self, event: Event, now: float) -> None:
        self._bookings.expire(now)
        self._objects.step(event, now)

    def pod_pending(self, pod: Pod, now: float) -> None:
        self.queue.keep(pod, now)
        placed = self.state.placed(pod.uid)
        if placed is not None and not placed.is_assumed:
            self.state.remove_pod(pod.uid)  # the API server was restored from a backup
        if pod.is_rejected:
            self._bookings.drop(pod.uid)
        if pod.status.nominated_node_name:
            self.state.nominate(pod, pod.status.nominated_node_name)
        else:
            self.state.drop_nomination(pod.uid)

    def pod_bound(self, pod: Pod, now: float) -> None:
        self.queue.drop(pod.uid)
        self._bookings.drop(pod.uid)
        self.state.drop_nomination(pod.uid)
        self.state.place(pod)
        self._listener.pod_placed(pod.uid, pod.spec.node_name)

    def pod_gone(self, pod: Pod, now: float) -> None:
        self.queue.drop(pod.uid)
        self._bookings.drop(pod.uid)
        self.state.drop_nomination(pod.uid)
        self.state.remove_pod(pod.uid)

    # Questions.

    def warm_up(self) -> None:
        """Judge an empty pod on every node. First calls are slow, and the first request should not
        wait for them."""

        def judge(verdicts: VerdictCache, _: Asking) -> None:
            verdict = verdicts.verdict_on(Pod())
            if self.state.count:
                verdict.rank_among(np.ones(self.state.count, np.bool_))

        for name in self.profiles:
            self._without_broken_plugins(Pod(spec=PodSpec(scheduler_name=name)), judge)

    def filter(self, asked: Asked, *, now: float, waited_seconds: float = 0.0) -> FilterAdvice:
        """Raise QuantityError if the pod has an invalid quantity."""
        return self._advice(
            asked,
            now,
            lambda verdicts, asking: self._filter(asked, verdicts, asking, now, waited_seconds),
        )

    def prioritize(
        self, asked: Asked, *, now: float, waited_seconds: float = 0.0
    ) -> PriorityAdvice:
        return self._advice(
            asked,
            now,
            lambda verdicts, asking: self._prioritize(asked, verdicts, asking, now, waited_seconds),
        )

    def preempt(
        self, asked: AskedPreemption, *, now: float, waited_seconds: float = 0.0
    ) -> PreemptionAdvice:
        """The nodes that the pod fits without the victims. Rejections that have given way to it are
        overlooked only if no node is left otherwise."""
        self._bookings.expire(now)
        self._bookings.drop(asked.pod.uid)  # it must not be in its own way

        def kept(verdicts: VerdictCache, _: Asking) -> PreemptionAdvice:
            firmly = fitting_without_victims(asked, verdicts, self._turns, -np.inf)
            return PreemptionAdvice(
                firmly or fitting_without_victims(asked, verdicts, self._turns, waited_seconds)
            )

        return self._without_broken_plugins(asked.pod, kept)

    def _advice(self, asked: Asked, now: float, work: Work[T]) -> T:
        self._untold = None
        self._bookings.expire(now)
        if asked.pod.uid not in self._bookings:
            self._turns += 1
        self._bookings.drop(asked.pod.uid)
        with as_requested(self.state, asked.nodes or ()):
            return self._without_broken_plugins(asked.pod, work)

    def _filter(
        self,
        asked: Asked,
        verdicts: VerdictCache,
        asking: Asking,
        now: float,
        waited_seconds: float,
    ) -> FilterAdvice:
        verdict = verdicts.verdict_on(asked.pod, asking)
        rows = self._rows_of(asked)
        if self._listener.wants_details(verdicts.profile):
            nodes = self.state.nodes().take(rows.known)
            self._listener.filtered(asked.pod, verdicts.profile, nodes)
        rejections = AskedRejections(asked.names, rows)
        rejections.add_unknown(UNKNOWN_NODE)
        feasible = self._left(asked, verdict, rows, rejections, waited_seconds, asking)
        decision = (
            self._best(asked, verdicts, feasible, asking)[0]
            if feasible.any()
            else self._nothing(asked, verdicts, rejections)
        )
        self._answered(FILTER, decision, asking, now, waited_seconds)
        if decision.node_name is None:
            error = self._why_nothing(asked, verdicts, rows, decision)
            return FilterAdvice((), rejections.failed, rejections.unresolvable, error)
        kept = rows.positions(feasible) if rejections.has_any else None
        return FilterAdvice(kept, rejections.failed, rejections.unresolvable)

    def _left(
        self,
        asked: Asked,
        verdict: Verdict,
        rows: AskedRows,
        rejections: AskedRejections,
        waited_seconds: float,
        asking: Asking,
    ) -> BoolArray:
        """By row: which of the asked nodes are left. The reasons against the others are added to
        `rejections`."""
        if verdict.pod_rejection is not None:
            plugin_name, rejection = verdict.pod_rejection
            helps = rejection.eviction_helps
            rejections.add(rows.known, (rejection.reason,), by=plugin_name, eviction_helps=helps)
            for each, rejected in verdict.rejected_alike(rows.known):
                rejections.add(rejected, each.reasons, by=each.plugin, eviction_helps=helps)
            return np.zeros(self.state.count, np.bool_)
        fit = feasibility(
            asked.pod, verdict, waited_seconds=waited_seconds, among=rows.among, asking=asking
        )
        for each, rejected in verdict.rejected_alike(rows.known[~fit.feasible[rows.known]]):
            helps = each.eviction_helps
            rejections.add(rejected, each.reasons, by=each.plugin, eviction_helps=helps)
        for row, each in fit.rejected.items():
            if rows.among[row] and not fit.feasible[row]:
                at, helps = np.array([row], np.intp), each.eviction_helps
                rejections.add(at, each.reasons, by=each.plugin, eviction_helps=helps)
        return fit.feasible

    def _nothing(
        self, asked: Asked, verdicts: VerdictCache, rejections: AskedRejections
    ) -> Decision:
        return Decision(
            pod=asked.pod,
            scheduler_name=verdicts.profile.scheduler_name,
            node_name=None,
            node_count=len(asked.names),
            feasible_count=0,
            rejected_by=rejections.rejected_by,
            reason_counts=rejections.counts(),
        )

    def _best(
        self, asked: Asked, verdicts: VerdictCache, feasible: BoolArray, asking: Asking
    ) -> tuple[Decision, IntArray, RankedAmong | None]:
        """The decision for the best of these rows, the ranks of all rows, and their scores if these
        rows are not what the filters left."""
        verdict = verdicts.verdict_on(asked.pod, asking)
        # Usually the request asks about all feasible nodes, whose ranks are kept.
        is_narrowed = not np.array_equal(feasible, verdict.feasible)
        among = verdict.rank_among(feasible, asking) if is_narrowed else None
        ranked = verdict.rank(asking) if among is None else among.ranked
        fit = Feasibility(feasible, int(np.count_nonzero(feasible)), {}, is_narrowed=is_narrowed)
        name = verdicts.profile.scheduler_name
        best = DecisionWriter(asked.pod, name, verdict, self._turns).best(fit, ranked, among=among)
        return replace(best, node_count=len(asked.names)), ranked, among

    def _answered(
        self,
        verb: str,
        decision: Decision,
        asking: Asking,
        now: float,
        waited_seconds: float,
        told: AnsweredPriorities | None = None,
    ) -> None:
        """Book the pod on the best node, so that the next pods find it less free before this one is
        bound. Remember the decision until it is handed out."""
        pod = decision.pod
        seconds = self.settings_for(pod).book_for_seconds
        if seconds > 0 and decision.node_name is not None:
            self._bookings.book(pod, decision.node_name, until=now + seconds)
        first_seen_at, spent = now - waited_seconds, asking.spent
        self._untold = Decided(decision, 1, first_seen_at, spent, verb, priorities=told), now

    def handed_out(self) -> None:
        """The last advice was handed out: report it."""
        if self._untold is not None:
            self._listener.answered(*self._untold)

    def was_neutral(
        self, verb: str, pod: Pod, count: int, why: str, *, now: float, waited_seconds: float
    ) -> None:
        """A neutral answer about `count` nodes was handed out: report it."""
        name = self.profile_for(pod).scheduler_name
        decision = Decision(pod, name, None, node_count=count, feasible_count=count)
        first_seen_at = now - waited_seconds
        self._listener.answered(Decided(decision, 1, first_seen_at, asked=verb, neutral=why), now)

    def _why_nothing(
        self, asked: Asked, verdicts: VerdictCache, rows: AskedRows, decision: Decision
    ) -> str:
        """The error for a request that leaves no node, if the profile asks for one: the reason of a
        pre-filter that rejects the pod on these nodes, or else the counted reasons.

        "" if the plugins accept a node that was not asked about. The other scheduler has ruled that
        node out itself, perhaps for lack of room, and would not preempt after an error."""
        profile, verdict = verdicts.profile, verdicts.verdict_on(asked.pod)
        if not asked.names or not self._settings[profile.scheduler_name].is_empty_an_error:
            return ""
        if verdict.pod_rejection is None and verdict.feasible.any():
            return ""
        nodes = self.state.nodes().take(rows.known)
        for plugin in verdict.pre_filters:
            answer = ask(plugin, "pre_filter", asked.pod, nodes)
            if isinstance(answer, PodRejection):
                return answer.reason
        return decision.fit_error

    def _prioritize(
        self,
        asked: Asked,
        verdicts: VerdictCache,
        asking: Asking,
        now: float,
        waited_seconds: float,
    ) -> PriorityAdvice:
        verdict = verdicts.verdict_on(asked.pod, asking)
        rows = self._rows_of(asked)
        if not len(rows.known):
            return PriorityAdvice([0] * len(asked.names))
        decision, ranked, among = self._best(asked, verdicts, rows.among, asking)
        most = verdict.most_points(among)
        if self._listener.wants_details(verdicts.profile):
            scores = verdict.scores_of(rows.known, ranked, among)
            self._listener.scored(verdicts.profile, scores, self.state.nodes())
        by_row = ranked * MOST_PRIORITY // most if most else 0 * ranked
        answered = rows.spread(by_row)
        told = AnsweredPriorities.from_answered(answered, by_row[decision.scores.rows])
        self._answered(PRIORITIZE, decision, asking, now, waited_seconds, told)
        return PriorityAdvice(answered.tolist())

    # Read-only questions, for explanations.

    @property
    def binding_count(self) -> None:
        """Unknown: the other scheduler binds."""

    def decided_now(self, pod: Pod, now: float) -> Decision:
        """What would be decided now about a known pod, among all nodes."""

        def decide_now(verdicts: VerdictCache, _: Asking) -> Decision:
            waited_seconds = self.queue.waited_seconds(pod.uid, now)
            return decided_now(pod, verdicts, turn=self._turns, waited_seconds=waited_seconds)

        with self._bookings.without(pod):
            return self._without_broken_plugins(pod, decide_now, is_look=True)

    def rejection_of(self, pod: Pod, node_name: str) -> NodeRejection | None:
        return self._without_broken_plugins(
            pod, lambda verdicts, _: verdicts.rejection_on(pod, node_name), is_look=True
        )

    def gate_of(self, pod: Pod) -> tuple[str, PodRejection] | None:
        return self.profile_for(pod).gate(pod)

    # Helpers.

    def _rows_of(self, asked: Asked) -> AskedRows:
        found = asked.rows
        if found is None or found.version != self.state.table_version:
            found = self._finder.find_rows(asked.names)
        return found

    def _without_broken_plugins(self, pod: Pod, work: Work[T], *, is_look: bool = False) -> T:
        """Do the work, and again without each plugin that fails. Report the failures unless the
        question is read-only."""
        broken: frozenset[str] = frozenset()
        while True:
            verdicts = self._verdicts_of(self.profile_for(pod), broken)
            try:
                return work(verdicts, Asking(verdicts.profile.clock))
            except PluginError as error:
                if not error.plugin_name or error.plugin_name in broken:
                    raise
                if not is_look:
                    self._listener.plugin_failed(error)
                broken |= {error.plugin_name}
            except QuantityError as error:
                scored_requests(pod)  # raises a QuantityError if it is the pod's own
                raise PluginError(f"a plugin read an invalid quantity: {error}") from error

    def _verdicts_of(self, profile: Profile, broken: frozenset[str]) -> VerdictCache:
        key = (profile.scheduler_name, broken)
        verdicts = self._verdicts.get(key)
        if verdicts is None:
            if len(self._verdicts) >= len(self.profiles) + _MOST_BROKEN:
                self._verdicts.clear()
            left = profile.without(broken) if broken else profile
            verdicts = VerdictCache(left, self.state, _MOST_BYTES_BROKEN if broken else _MOST_BYTES)
            self._verdicts[key] = verdicts
        return verdicts
