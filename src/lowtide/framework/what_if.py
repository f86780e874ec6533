"""What plugins would answer about a hypothetical table. Nothing of the answers is kept.

There are two kinds of hypothesis. Overlays of Nodes add or remove pods: each position is judged as
if only its own node had changed. In `ClusterState.without` a pod is on no node at all.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lowtide.cluster.changes import depends_on_pods
from lowtide.cluster.columns import BoolArray, Rows
from lowtide.cluster.indexes.nominated_pods import PrecedingPods
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import UNTIMED, Asking
from lowtide.framework.decision import NodeRejection
from lowtide.framework.evaluation import NEVER, ChangedRows
from lowtide.framework.plugin import Eviction, PluginError, PostFiltered
from lowtide.framework.pre_filters import PreFilters
from lowtide.framework.profile import Profile
from lowtide.framework.rejections import NOT_AT_ALL, Rejections
from lowtide.framework.verdict import Verdict
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError


class WhatIf:
    """Asks the filters about one pod on Nodes with overlays. A filter comes with its kept
    Rejections if they hold with overlays too; such a filter is not asked again."""

    def __init__(
        self,
        pod: Pod,
        filters: Sequence[tuple[Any, Rejections | None]],
        state: ClusterState,
        asking: Asking = UNTIMED,
    ) -> None:
        self._pod = pod
        self._filters = filters
        self._state = state
        self._asking = asking

    def rejections(
        self, nodes: Nodes, waited_seconds: float = NOT_AT_ALL
    ) -> dict[int, NodeRejection]:
        """By position: the first rejection of a pod that has waited so long."""
        found: dict[int, NodeRejection] = {}
        is_left = np.ones(len(nodes), np.bool_)
        for by_filter, rows, stands in self.still_rejecting(nodes, waited_seconds):
            rejected = np.flatnonzero(stands & is_left)
            is_left[rejected] = False
            for group in by_filter.alike(rows[rejected]):
                rejection = by_filter.as_node_rejection(int(group[0]))
                positions = rejected[np.isin(rows[rejected], group)]
                found.update(dict.fromkeys(positions.tolist(), rejection))
        return found

    def accepted(self, nodes: Nodes, waited_seconds: float = NOT_AT_ALL) -> BoolArray:
        """By position: whether every filter accepts a pod that has waited so long."""
        accepted = np.ones(len(nodes), np.bool_)
        for _, _, stands in self.still_rejecting(nodes, waited_seconds):
            accepted &= ~stands
        return accepted

    def still_rejecting(
        self, nodes: Nodes, waited_seconds: float
    ) -> Iterator[tuple[Rejections, Rows, BoolArray]]:
        """For each filter with rejections: these, the row in them for each position, and by
        position whether the filter rejects a pod that has waited so long."""
        count = len(nodes)
        for plugin, kept in self._filters:
            rejections, rows = kept, nodes.rows
            if rejections is None:
                rejections, rows = Rejections(plugin.name), np.arange(count)
                answer, _ = self._asking.observed(self._state, plugin, "filter", self._pod, nodes)
                rejections.put(slice(None), rejections.read(answer, count), count)
            stands = rejections.still_rejected(rows, waited_seconds)
            if stands is not None:
                yield rejections, rows, stands


def what_if(verdict: Verdict, asking: Asking = UNTIMED) -> WhatIf:
    """A filter that read nothing that depends on pods answers the same with overlays."""
    filters = [
        (plugin, None if depends_on_pods(touched) else kept)
        for plugin, touched, kept in verdict.filters_with_rejections()
    ]
    return WhatIf(verdict.pod, filters, verdict.state, asking)


def reasons_against(
    pod: Pod, row: int, profile: Profile, state: ClusterState, *, waited_seconds: float
) -> tuple[str, ...]:
    """The reasons of the first plugin that rejects the pod on this row; empty if it fits. Filters
    judge only this row. Rejections that give way to a pod that has waited so long do not count.
    An error of a plugin is raised only if no other plugin rejects the pod."""
    concerned, error = profile.concerned_by(pod), None
    questions = [
        *((_pre_filter_reasons, plugin) for plugin in concerned.pre_filters.plugins),
        *((_filter_reasons, plugin) for plugin in concerned.filters.plugins),
    ]
    for reasons_of_one, plugin in questions:
        try:
            if reasons := reasons_of_one(plugin, pod, row, state, waited_seconds):
                return reasons
        except (PluginError, QuantityError) as raised:
            error = error or raised
    if error is not None:
        raise error
    return ()


def _pre_filter_reasons(
    plugin: Any, pod: Pod, row: int, state: ClusterState, waited_seconds: float
) -> tuple[str, ...]:
    pre_filters = PreFilters((plugin,), state, pod)
    pre_filters.start_again(state.count)
    pre_filters.refresh(ChangedRows(state, NEVER, UNTIMED))
    if pre_filters.pod_rejection is not None:
        return (pre_filters.pod_rejection[1].reason,)
    if pre_filters.leaves_out(np.array([row]))[0]:
        return pre_filters.exclusion_at(row).reasons
    return ()


def _filter_reasons(
    plugin: Any, pod: Pod, row: int, state: ClusterState, waited_seconds: float
) -> tuple[str, ...]:
    one = state.nodes().take(np.array([row]))
    asked = WhatIf(pod, [(plugin, None)], state)
    for rejections, _, stands in asked.still_rejecting(one, waited_seconds):
        if stands[0]:
            return rejections.as_node_rejection(0).reasons
    return ()


def rejections_with_nominated(
    preceding: PrecedingPods,
    verdict: Verdict,
    *,
    waited_seconds: float = NOT_AT_ALL,
    asking: Asking = UNTIMED,
) -> dict[int, NodeRejection]:
    """The rejections by row if each node also had the pods nominated to it that have the same or a
    higher priority (`preceding`). Nodes that a pre-filter left out are not judged.

    By default no rejection gives way, because the waiting time is not known.
    """
    nodes = preceding.with_them(verdict.state.nodes())
    if verdict.narrowed_to is not None:
        excluded = [verdict.is_excluded(row) for row in preceding.rows.tolist()]
        nodes = nodes.take(np.flatnonzero(~np.array(excluded, np.bool_)))
    rows = nodes.rows.tolist()
    rejections = what_if(verdict, asking).rejections(nodes, waited_seconds)
    return {rows[position]: rejection for position, rejection in rejections.items()}


class PostFilterContext:
    """What `post_filter` is given about a pod that fits nowhere (`plugin.PostFilterContext`).
    `also_rejected` are rejections that the verdict does not have, by row: of nodes with the pods
    nominated to them added, and by extenders."""

    def __init__(
        self,
        pod: Pod,
        verdict: Verdict,
        *,
        profile: Profile,
        asking: Asking,
        also_rejected: Mapping[int, NodeRejection],
        turn: int,
        gives_way_after: float = math.inf,
        waited_seconds: float = NOT_AT_ALL,
    ) -> None:
        self.turn = turn
        self.gives_way_after = gives_way_after
        self._pod = pod
        self._verdict = verdict
        self._what_if = what_if(verdict, asking)
        self._profile = profile
        self._state = verdict.state
        self._also_rejected = also_rejected
        self._waited_seconds = waited_seconds

    @property
    def eviction_may_help(self) -> BoolArray:
        if self._verdict.pod_rejection is not None:
            _, rejection = self._verdict.pod_rejection
            return np.full(self._state.count, rejection.eviction_helps)
        helps = self._verdict.eviction_may_help
        rows = np.fromiter(self._also_rejected, np.intp, len(self._also_rejected))
        helps[rows] = [rejection.eviction_helps for rejection in self._also_rejected.values()]
        return helps

    def was_reached(self, plugin_name: str) -> bool:
        names = [plugin.name for plugin in self._profile.plugins_at.get("preFilter", ())]
        if plugin_name not in names:
            return False
        if self._verdict.pod_rejection is None:
            return True
        rejected_by, rejection = self._verdict.pod_rejection
        return rejection.eviction_helps or names.index(plugin_name) <= names.index(rejected_by)

    def on(self, nodes: Nodes) -> Mapping[int, NodeRejection]:
        """As in kube-scheduler, a node must accept the pod both with and without the pods nominated
        to it. A rejection with them takes precedence."""
        found = self._what_if.rejections(nodes, self._waited_seconds)
        positions, joined = self._with_nominated(nodes)
        if len(positions):
            rejected = self._what_if.rejections(joined, self._waited_seconds)
            found.update({int(positions[at]): rejection for at, rejection in rejected.items()})
        return found

    def fits(self, nodes: Nodes) -> BoolArray:
        fits = self._what_if.accepted(nodes, self._waited_seconds)
        positions, joined = self._with_nominated(nodes)
        if len(positions):
            fits[positions] &= self._what_if.accepted(joined, self._waited_seconds)
        return fits

    @cached_property
    def _rivals(self) -> PrecedingPods | None:
        return self._state.nominated_pods.preceding(self._pod)

    def _with_nominated(self, nodes: Nodes) -> tuple[Rows, Nodes]:
        """The positions with nominated pods of the same or a higher priority; and these positions
        with those pods added."""
        if self._rivals is None:
            return np.empty(0, np.intp), nodes
        chosen = np.flatnonzero(np.isin(nodes.rows, self._rivals.rows))
        rows = nodes.rows[chosen].tolist()
        pods = {position: self._rivals.by_row[row] for position, row in enumerate(rows)}
        return chosen, nodes.take(chosen).with_placed(pods)


class PostFilterOutcome(NamedTuple):
    answer: PostFiltered
    plugin_name: str = ""  # the first plugin that could do nothing, or that returned an error
    reasons_before: Sequence[str] = ()  # of the plugins asked before one returned an eviction


def post_filtered(
    profile: Profile, pod: Pod, state: ClusterState, context: PostFilterContext, asking: Asking
) -> PostFilterOutcome | None:
    """Asks the plugins in order until one returns an eviction or an error. None where the profile
    has no such plugin."""
    reasons: list[str] = []
    found = PostFiltered()
    plugins = profile.plugins_for_point("postFilter")
    for plugin in plugins:
        answer, _ = asking.observed(state, plugin, "post_filter", pod, state.nodes(), context)
        if not isinstance(answer, PostFiltered):
            raise PluginError(
                f"{plugin.name}.post_filter returned {answer!r}; it must be a PostFiltered",
                plugin_name=plugin.name,
            )
        if not _has_right_types(answer):
            raise PluginError(
                f"{plugin.name}.post_filter returned {answer!r}; it must be a PostFiltered with "
                "a string as `reason`, a node name or None as `nominated_node_name`, an Eviction "
                "or None as `eviction` and Evictions as `candidates`, with Pods as victims",
                plugin_name=plugin.name,
            )
        if answer.eviction is not None:
            return PostFilterOutcome(answer, reasons_before=reasons)
        if answer.is_error:
            return PostFilterOutcome(answer, plugin.name)
        reasons += [answer.reason] if answer.reason else []
        found = PostFiltered(
            ", ".join(reasons),
            nominated_node_name=_either(answer.nominated_node_name, found.nominated_node_name),
            still_rejected=answer.still_rejected or found.still_rejected,
        )
    return PostFilterOutcome(found, plugins[0].name) if plugins else None


def _has_right_types(answer: PostFiltered) -> bool:
    found: Any = answer.candidates
    if not isinstance(found, tuple | list):
        return False
    if answer.eviction is not None:
        found = (answer.eviction, *found)
    return (
        isinstance(answer.reason, str)
        and isinstance(answer.nominated_node_name, str | None)
        and all(_is_eviction(each) for each in found)
    )


def _is_eviction(answer: Any) -> bool:
    return (
        isinstance(answer, Eviction)
        and isinstance(answer.node_name, str)
        and isinstance(answer.victims, tuple | list)
        and all(isinstance(victim, Pod) for victim in answer.victims)
    )


def _either(first: str | None, second: str | None) -> str | None:
    return second if first is None else first
