"""NodeUnschedulable: rejects cordoned nodes for pods that do not tolerate them."""

from collections.abc import Iterator

import numpy as np

from lowtide.framework.plugin import NODE, Change, Nodes, Pod, Rejection
from lowtide.objects.matching import NO_SCHEDULE, is_tolerated
from lowtide.objects.node import Taint

CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class NodeUnschedulable:
    name = "NodeUnschedulable"
    retry_on = NODE

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        cordoned = nodes.unschedulable
        if np.count_nonzero(cordoned) and not is_tolerated(CORDONED, pod.spec.tolerations):
            yield Rejection(cordoned, "node(s) were unschedulable")

    def may_help(self, pod: Pod, change: Change) -> bool:
        return change.is_new(lambda node: not node.spec.unschedulable)
