"""TaintToleration: refuses nodes with a taint the pod does not tolerate, and prefers nodes with
few `PreferNoSchedule` taints that it does not tolerate."""

from collections.abc import Iterator, Sequence

from lowtide.framework.plugin import NODE, BoolArray, IntArray, Nodes, Pod, Rejection
from lowtide.objects.matching import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, is_tolerated
from lowtide.objects.node import Taint
from lowtide.objects.pod import Toleration


class TaintToleration:
    name = "TaintToleration"
    reads = NODE
    scale = "lowest_best"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield Rejection(has_untolerated(pod, nodes), "node(s) had untolerated taint(s)")

    def score(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> IntArray:
        preferences = [t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]
        return nodes.by_taints(
            lambda taints: _untolerated(taints, preferences, (PREFER_NO_SCHEDULE,))
        )


def has_untolerated(pod: Pod, nodes: Nodes) -> BoolArray:
    """Where a taint keeps the pod away."""
    untolerated = nodes.by_taints(
        lambda taints: _untolerated(taints, pod.spec.tolerations, (NO_SCHEDULE, NO_EXECUTE))
    )
    return untolerated > 0


def _untolerated(
    taints: Sequence[Taint], tolerations: Sequence[Toleration], effects: tuple[str, ...]
) -> int:
    return sum(taint.effect in effects and not is_tolerated(taint, tolerations) for taint in taints)
