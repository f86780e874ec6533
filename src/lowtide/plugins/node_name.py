"""NodeName: rejects every node but the one in the pod's `spec.nodeName`."""

from collections.abc import Iterator

from lowtide.framework.plugin import NODE, Nodes, Pod, Rejection


class NodeName:
    name = "NodeName"
    retry_on = NODE

    def concerns(self, pod: Pod) -> bool:
        return bool(pod.spec.node_name)

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        if pod.spec.node_name:
            named = nodes.is_named(pod.spec.node_name)
            yield Rejection(~named, "node(s) didn't match the requested node name")
