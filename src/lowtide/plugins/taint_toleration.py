"""TaintToleration: rejects nodes with a taint that the pod does not tolerate, and prefers nodes
with few untolerated `PreferNoSchedule` taints."""

from collections.abc import Iterator, Sequence

import numpy as np

from lowtide.framework.plugin import NODE, BoolArray, Change, IntArray, Nodes, Pod, Rejection
from lowtide.objects.matching import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, is_tolerated
from lowtide.objects.node import Taint
from lowtide.objects.pod import Toleration


class TaintToleration:
    name = "TaintToleration"
    retry_on = NODE
    scale = "lowest_best"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        rejected = has_untolerated(pod, nodes)
        if np.count_nonzero(rejected):
            yield Rejection(rejected, "node(s) had untolerated taint(s)")

    def may_help(self, pod: Pod, change: Change) -> bool:
        return change.is_new(lambda node: not _keep_away(node.spec.taints, pod))

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        preferences = [t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]
        return nodes.by_taints(
            lambda taints: _untolerated(taints, preferences, (PREFER_NO_SCHEDULE,))
        )


def has_untolerated(pod: Pod, nodes: Nodes) -> BoolArray:
    """The nodes with a NoSchedule or NoExecute taint that the pod does not tolerate."""
    return nodes.by_taints(lambda taints: _keep_away(taints, pod)) > 0


def _keep_away(taints: Sequence[Taint], pod: Pod) -> int:
    return _untolerated(taints, pod.spec.tolerations, (NO_SCHEDULE, NO_EXECUTE))


def _untolerated(
    taints: Sequence[Taint], tolerations: Sequence[Toleration], effects: tuple[str, ...]
) -> int:
    return sum(taint.effect in effects and not is_tolerated(taint, tolerations) for taint in taints)
