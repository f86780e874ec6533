"""A Decision: the node chosen for a pod, and why, as data.

Made by `scheduler.decide`; events, logs, conditions and explanations are all written from it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from lowtide.cluster.columns import IntArray, Rows
from lowtide.framework.plugin import PodRejection, PostFiltered
from lowtide.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class PluginScore:
    raw: int
    normalized: int
    weighted: int


@dataclass(frozen=True, slots=True)
class NodeScore:
    node_name: str
    total: int
    by_plugin: Mapping[str, PluginScore]


class ScoreTable(msgspec.Struct, frozen=True):
    """The scores of a few nodes, best first, as arrays: cheap to keep, unpacked when looked at."""

    node_names: tuple[str, ...]
    rows: Rows  # theirs in the table, until that changes
    totals: IntArray
    plugins: tuple[str, ...]
    weights: tuple[int, ...]
    raw: IntArray  # one row per plugin, one element per node
    normalized: npt.NDArray[np.integer]

    def unpacked(self) -> tuple[NodeScore, ...]:
        return tuple(self._at(number) for number in range(len(self.node_names)))

    def node_score(self, node_name: str | None) -> NodeScore | None:
        """Of that node alone; None where it has none."""
        if node_name not in self.node_names:
            return None
        return self._at(self.node_names.index(node_name))

    def first(self, count: int) -> "ScoreTable":
        """Of so many of the best nodes."""
        return replace(
            self,
            node_names=self.node_names[:count],
            rows=self.rows[:count].copy(),
            totals=self.totals[:count].copy(),
            raw=self.raw[:, :count].copy(),
            normalized=self.normalized[:, :count].copy(),
        )

    def with_points(self, name: str, points: IntArray) -> "ScoreTable":
        """With what others than plugins added to the totals, under this name."""
        return replace(
            self,
            plugins=(*self.plugins, name),
            weights=(*self.weights, 1),
            raw=np.vstack([self.raw, points]),
            normalized=np.vstack([self.normalized, points]),
        )

    def _at(self, number: int) -> NodeScore:
        return NodeScore(self.node_names[number], int(self.totals[number]), self._by_plugin(number))

    def _by_plugin(self, number: int) -> dict[str, PluginScore]:
        columns = zip(self.plugins, self.weights, self.raw, self.normalized, strict=True)
        return {
            plugin: PluginScore(
                int(raw[number]), int(normalized[number]), weight * int(normalized[number])
            )
            for plugin, weight, raw, normalized in columns
        }


_NOTHING = np.empty((0, 0), np.int64)
NO_SCORES = ScoreTable((), np.empty(0, np.intp), np.empty(0, np.int64), (), (), _NOTHING, _NOTHING)


class NodeRejection(msgspec.Struct, frozen=True):
    """Why a node was rejected: by the first plugin that rejects it, as kube-scheduler reports
    it."""

    plugin: str
    reasons: tuple[str, ...]
    eviction_helps: bool
    also: tuple["NodeRejection", ...] = ()
    excluded_by: tuple[str, ...] = ()


class Decision(msgspec.Struct, frozen=True):
    pod: Pod
    scheduler_name: str
    node_name: str | None
    node_count: int
    feasible_count: int
    scores: ScoreTable = NO_SCORES
    by_nomination: bool = False
    pod_rejection: PodRejection | None = None
    rejected_by: frozenset[str] = frozenset()
    touched: int = ~0  # by those of them that do not say what they retry on; ~0: not known
    reason_counts: Mapping[str, int] = {}
    rejections: Mapping[str, NodeRejection] = {}  # only if asked for
    narrowed_to: frozenset[str] | None = None
    gives_way_after: float = math.inf  # seconds of waiting in all, after which to try again
    gave_way: NodeRejection | None = None  # why the node was rejected while others were hoped for
    post_filtered: PostFiltered | None = None  # what could be done for a pod that fits nowhere
    post_filtered_by: str = ""  # the first plugin that could do nothing, or that met an error
    signature: bytes = b""  # of the pod, where it has a node: kept verdicts know it by that

    @property
    def best(self) -> tuple[NodeScore, ...]:
        """The best nodes with their scores by each plugin; empty where nothing was scored."""
        return self.scores.unpacked()

    @property
    def fit_error(self) -> str:
        """kube-scheduler's sentence for a pod that fits nowhere."""
        if self.node_count == 0:
            return "no nodes available to schedule pods"
        opening = f"0/{self.node_count} nodes are available:"
        if self.pod_rejection is not None:
            return f"{opening} {self.pod_rejection.reason}."
        counted = sorted(f"{count} {reason}" for reason, count in self.reason_counts.items())
        return f"{opening} {', '.join(counted)}." if counted else opening

    @property
    def fit_error_final(self) -> str:
        """The same with what the plugins say that were asked what could be done about it."""
        reason = "" if self.post_filtered is None else self.post_filtered.reason
        return f"{self.fit_error} {reason}" if reason else self.fit_error
