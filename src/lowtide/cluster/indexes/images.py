"""Which nodes have an image, and how large it is there.

Plugins read them through `nodes.image_sizes` and `nodes.image_node_count`.
"""

from collections.abc import Sequence

from lowtide.cluster.indexes.by_node import ByNode
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.table import Table
from lowtide.objects.node import ContainerImage, Node

# Larger than any image. A float holds it exactly, and ImageLocality's sums with it fit into int64.
_LARGEST_BYTES = 2**62


class Images(Index):
    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.sizes: ByNode[str] = ByNode(table)  # in bytes, by image name
        self._on_demand.append(self.sizes.columns)

    def node_added(self, row: int, node: Node) -> None:
        self.sizes.node_added(row, node.name)
        self.sizes.replace(node.name, (), _bytes_by_name(node.status.images))

    def node_changed(self, row: int, before: Node, after: Node) -> None:
        was, images = before.status.images, after.status.images
        if was != images:
            self.sizes.replace(after.name, _bytes_by_name(was), _bytes_by_name(images))

    def node_removed(self, row: int, node: Node) -> None:
        self.sizes.replace(node.name, _bytes_by_name(node.status.images), {})


def _bytes_by_name(images: Sequence[ContainerImage]) -> dict[str, int]:
    """If a node lists a name twice, the first entry counts, as in kube-scheduler."""
    found: dict[str, int] = {}
    for image in images:
        for name in image.names:
            found.setdefault(name, min(max(image.size_bytes, 0), _LARGEST_BYTES))
    return found
