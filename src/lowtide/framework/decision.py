"""A Decision: the node chosen for a pod, and why, as data.

`scheduler.decide` makes it. Events, logs, conditions and explanations are written from it."""

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
    """The scores of some nodes, best first, as arrays, which are cheap to keep."""

    node_names: tuple[str, ...]
    rows: Rows  # of the nodes in the table, until that changes
    totals: IntArray
    plugins: tuple[str, ...]
    weights: tuple[int, ...]
    raw: IntArray  # one row per plugin, one element per node
    normalized: npt.NDArray[np.integer]

    def unpacked(self) -> tuple[NodeScore, ...]:
        return tuple(self._at(number) for number in range(len(self.node_names)))

    def node_score(self, node_name: str | None) -> NodeScore | None:
        """The scores of one node; None if it has none."""
        if node_name not in self.node_names:
            return None
        return self._at(self.node_names.index(node_name))

    def first(self, count: int) -> "ScoreTable":
        """The scores of the best nodes, so many of them."""
        return replace(
            self,
            node_names=self.node_names[:count],
            rows=self.rows[:count].copy(),
            totals=self.totals[:count].copy(),
            raw=self.raw[:, :count].copy(),
            normalized=self.normalized[:, :count].copy(),
        )

    def with_points(self, name: str, points: IntArray) -> "ScoreTable":
        """These scores with points that an extender added to the totals, under this name."""
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
    """The first plugin that rejects a node, and why, as kube-scheduler reports it."""

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
    touched: int = ~0  # what those of them without a `retry_on` read; ~0: unknown
    reason_counts: Mapping[str, int] = {}
    rejections: Mapping[str, NodeRejection] = {}  # by node name; only in full decisions
    narrowed_to: frozenset[str] | None = None
    gives_way_after: float = math.inf  # seconds in the queue in all, after which to try again
    gave_way: NodeRejection | None = None  # the rejection of the chosen node that gave way
    post_filtered: PostFiltered | None = None  # what can be done for a pod that fits nowhere
    post_filtered_by: str = ""  # the first plugin that could do nothing, or that returned an error
    signature: bytes = b""  # of the pod, if it has a node: the key of its verdict

    @property
    def best(self) -> tuple[NodeScore, ...]:
        """The best nodes with their scores by each plugin; empty if nothing was scored."""
        return self.scores.unpacked()

    @property
    def fit_error(self) -> str:
        """kube-scheduler's message for a pod that fits on no node."""
        if self.node_count == 0:
            return "no nodes available to schedule pods"
        opening = f"0/{self.node_count} nodes are available:"
        if self.pod_rejection is not None:
            return f"{opening} {self.pod_rejection.reason}."
        counted = sorted(f"{count} {reason}" for reason, count in self.reason_counts.items())
        return f"{opening} {', '.join(counted)}." if counted else opening

    @property
    def fit_error_final(self) -> str:
        """The same message with the reasons of the post-filter plugins."""
        reason = "" if self.post_filtered is None else self.post_filtered.reason
        return f"{self.fit_error} {reason}" if reason else self.fit_error
