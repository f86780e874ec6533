"""A pod that fits nowhere, as `post_filter` sees it: where it was refused, and whether it would fit
in thought. Made by `decide`; the nominated pods that stand in a pod's way are found here too."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from lowtide.cluster.columns import BoolArray, Rows
from lowtide.cluster.indexes.nominations import PrecedingPods
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import NodeRejection
from lowtide.framework.plugin import PluginError, PostFiltered
from lowtide.framework.profile import Profile
from lowtide.framework.rejections import Rejections
from lowtide.framework.verdict import Verdict
from lowtide.objects.pod import Pod


class RefusedPod:
    """`promised` are nodes that are refused because of the pods nominated to them; refusals that
    give way do so to a pod that has waited `waited_seconds`."""

    def __init__(
        self,
        pod: Pod,
        verdict: Verdict,
        *,
        profile: Profile,
        state: ClusterState,
        promised: Mapping[int, NodeRejection],
        turn: int,
        gives_way_after: float = math.inf,
        waited_seconds: float = -math.inf,
    ) -> None:
        self.turn = turn
        self.gives_way_after = gives_way_after
        self._pod = pod
        self._verdict = verdict
        self._profile = profile
        self._state = state
        self._promised = promised
        self._waited_seconds = waited_seconds

    @property
    def eviction_may_help(self) -> BoolArray:
        if self._verdict.pod_rejection is not None:
            _, rejection = self._verdict.pod_rejection
            return np.full(self._state.count, rejection.eviction_helps)
        helps = self._verdict.eviction_may_help
        rows = np.fromiter(self._promised, np.intp, len(self._promised))
        helps[rows] = [refused.eviction_helps for refused in self._promised.values()]
        return helps

    def was_reached(self, rule_name: str) -> bool:
        names = [rule.name for rule in self._profile.rules_at.get("preFilter", ())]
        if rule_name not in names:
            return False
        if self._verdict.pod_rejection is None:
            return True
        refused_by, rejection = self._verdict.pod_rejection
        return rejection.eviction_helps or names.index(rule_name) <= names.index(refused_by)

    def on(self, nodes: Nodes) -> Mapping[int, NodeRejection]:
        """A node is asked about with the pods nominated to it first, and then without them."""
        found = dict(self._verdict.rejections_on(nodes, self._waited_seconds))
        positions, promised = self._promised_among(nodes)
        if len(positions):
            refused = self._verdict.rejections_on(promised, self._waited_seconds)
            found.update({int(positions[at]): rejection for at, rejection in refused.items()})
        return found

    def fits(self, nodes: Nodes) -> BoolArray:
        fits = self._is_accepted(nodes)
        positions, promised = self._promised_among(nodes)
        if len(positions):
            fits[positions] &= self._is_accepted(promised)
        return fits

    @cached_property
    def _rivals(self) -> PrecedingPods | None:
        return rivals_of(self._pod, self._state)

    def _promised_among(self, nodes: Nodes) -> tuple[Rows, Nodes]:
        """The positions that pods which matter as much are nominated to, with these pods."""
        if self._rivals is None:
            return np.empty(0, np.intp), nodes
        chosen = np.flatnonzero(np.isin(nodes.rows, self._rivals.rows))
        rows = nodes.rows[chosen].tolist()
        pods = {position: self._rivals.by_row[row] for position, row in enumerate(rows)}
        return chosen, nodes.take(chosen).with_placed(pods)

    def _is_accepted(self, nodes: Nodes) -> BoolArray:
        accepted = np.ones(len(nodes), np.bool_)
        rows = np.arange(len(nodes))
        for rule in self._changeable:
            rejections = Rejections(rule.name)
            answer = self._profile.asking(rule, "filter", self._pod, nodes)
            rejections.judge(answer, rows, len(nodes))
            stands = rejections.stands(len(nodes), self._waited_seconds)
            if stands is not None:
                accepted &= ~stands
        return accepted

    @cached_property
    def _changeable(self) -> list[Any]:
        """The filters that can change their mind when pods come and go."""
        return self._verdict.filters_about_pods


def rivals_of(pod: Pod, state: ClusterState) -> PrecedingPods | None:
    """The nominated pods that matter as much as this one or more; None where there are none."""
    return state.nominations.preceding(pod)


def post_filtered(
    profile: Profile, pod: Pod, state: ClusterState, refused: RefusedPod
) -> tuple[PostFiltered, str] | None:
    """What the rules can do, asked in order until one can or meets an error; and the first of
    those that cannot. None where the profile has no such rule."""
    reasons: list[str] = []
    found = PostFiltered()
    for rule in profile.at("postFilter"):
        answer: PostFiltered = profile.asking(rule, "post_filter", pod, state.nodes(), refused)
        if not isinstance(answer, PostFiltered):
            raise PluginError(
                f"{rule.name}.post_filter answers with {answer!r}; it must be a PostFiltered",
                rule_name=rule.name,
            )
        if answer.eviction is not None:
            return replace(answer, said_before=", ".join(reasons)), ""
        if answer.is_error:
            return answer, rule.name
        reasons += [answer.reason] if answer.reason else []
        found = PostFiltered(
            ", ".join(reasons),
            nominated_node_name=_either(answer.nominated_node_name, found.nominated_node_name),
            still_refused=answer.still_refused or found.still_refused,
        )
    rules = profile.at("postFilter")
    return (found, rules[0].name) if rules else None


def _either(first: str | None, second: str | None) -> str | None:
    return second if first is None else first
