"""A plugin of one's own: steady pods stay off spot nodes, which may be taken away at any time; all
other pods prefer them, as they are cheap."""

import msgspec

from lowtide.framework.plugin import MAX_SCORE, OneNode, Pod, filter_each, score_each


class SpotNodesArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    node_label: str = "example.com/spot"
    steady_label: str = "example.com/steady"


class SpotNodes:
    name = "SpotNodes"
    args = SpotNodesArgs

    def __init__(self, args: SpotNodesArgs) -> None:
        self._node_label = args.node_label
        self._steady_label = args.steady_label

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        if self._steady_label in pod.metadata.labels and self._node_label in node.labels:
            return "node(s) may be taken away"
        return None

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        return MAX_SCORE if self._node_label in node.labels else 0
