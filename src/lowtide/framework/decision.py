"""A Decision: the node chosen for a pod, and why, as data.

Made by `scheduler.decide`; events, logs, conditions and explanations are all written from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lowtide.framework.plugin import PodRejection
from lowtide.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class RuleScore:
    raw: int
    normalized: int
    weighted: int


@dataclass(frozen=True, slots=True)
class NodeScore:
    node_name: str
    total: int
    by_rule: Mapping[str, RuleScore]


@dataclass(frozen=True, slots=True)
class NodeRejection:
    """Why a node was refused: by the first rule that refuses it, as kube-scheduler reports it."""

    plugin: str
    reasons: tuple[str, ...]
    eviction_helps: bool
    also: tuple["NodeRejection", ...] = ()
    excluded_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    pod: Pod
    scheduler_name: str
    node_name: str | None
    node_count: int
    feasible_count: int
    best: tuple[NodeScore, ...] = ()
    by_nomination: bool = False
    pod_rejection: PodRejection | None = None
    rejected_by: frozenset[str] = frozenset()
    reason_counts: Mapping[str, int] = field(default_factory=dict)
    rejections: Mapping[str, NodeRejection] = field(default_factory=dict)  # only if asked for
    narrowed_to: frozenset[str] | None = None

    @property
    def fit_error(self) -> str:
        """kube-scheduler's sentence for a pod that fits nowhere."""
        if self.node_count == 0:
            return "no nodes available to schedule pods"
        opening = f"0/{self.node_count} nodes are available:"
        if self.pod_rejection is not None:
            return f"{opening} {self.pod_rejection.reason}."
        counted = sorted(f"{count} {reason}" for reason, count in self.reason_counts.items())
        return f"{opening} {', '.join(counted)}."
