"""TaintToleration: refuses nodes with a taint the pod does not tolerate, and prefers nodes with
few `PreferNoSchedule` taints that it does not tolerate."""

from collections.abc import Iterator, Sequence

import numpy as np

from lowtide.framework.plugin import NODE, BoolArray, IntArray, Nodes, Pod, Rejection
from lowtide.objects.matching import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, is_tolerated
from lowtide.objects.node import Taint
from lowtide.objects.pod import Toleration


class TaintToleration:
    name = "TaintToleration"
    reads = NODE
    scale = "lowest_best"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        tolerations = pod.spec.tolerations
        refused = np.array(
            [
                _untolerated(taints, tolerations, (NO_SCHEDULE, NO_EXECUTE)) > 0
                for taints in nodes.taint_sets
            ],
            np.bool_,
        )
        if refused.any():
            yield Rejection(refused[nodes.taint_set], "node(s) had untolerated taint(s)")

    def score(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> IntArray:
        preferences = [t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]
        counts = np.array(
            [
                _untolerated(taints, preferences, (PREFER_NO_SCHEDULE,))
                for taints in nodes.taint_sets
            ],
            np.int64,
        )
        scores: IntArray = counts[nodes.taint_set]
        return scores


def _untolerated(
    taints: Sequence[Taint], tolerations: Sequence[Toleration], effects: tuple[str, ...]
) -> int:
    return sum(taint.effect in effects and not is_tolerated(taint, tolerations) for taint in taints)
