"""NodeName: a pod that names its node fits on no other."""

from collections.abc import Iterator

import numpy as np

from lowtide.framework.plugin import NODE, Nodes, Pod, Rejection


class NodeName:
    name = "NodeName"
    reads = NODE

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        wanted = pod.spec.node_name
        if wanted:
            other = np.fromiter((name != wanted for name in nodes.names), np.bool_, len(nodes))
            yield Rejection(other, "node(s) didn't match the requested node name")
