"""Which nodes hold an image, and how large it is there: columns made at first use and kept true.

Plugins read a column by `nodes.image_sizes`.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from lowtide.cluster.columns import Column, KeptColumns
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.table import Table
from lowtide.objects.node import ContainerImage, Node

# Beyond any image. A float holds it exactly, and one more than ImageLocality counts fits beside it.
_LARGEST_BYTES = 2**62


class Images(Index):
    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._bytes_on: dict[str, dict[str, int]] = {}  # by image name, then by node name
        self.sizes: KeptColumns[str, Column] = KeptColumns(self._make_sizes)  # by image, in bytes

    @property
    def columns(self) -> Iterable[Column]:
        return self.sizes

    def let_columns_go(self) -> None:
        self.sizes.clear()

    def node_count(self, image: str) -> int:
        """How many nodes hold it."""
        return len(self._bytes_on.get(image, ()))

    def node_added(self, row: int, node: Node) -> None:
        self._replace(row, node.name, (), node.status.images)

    def node_changed(self, row: int, before: Node, after: Node) -> None:
        self._replace(row, after.name, before.status.images, after.status.images)

    def node_removed(self, row: int, node: Node) -> None:
        self._replace(row, node.name, node.status.images, ())

    def _make_sizes(self, image: str) -> Column:
        column = Column(np.int64, 0, self._table.capacity)
        for node_name, size_bytes in self._bytes_on.get(image, {}).items():
            column.array[self._table.row_by_name[node_name]] = size_bytes
        return column

    def _replace(
        self,
        row: int,
        node_name: str,
        before: Sequence[ContainerImage],
        after: Sequence[ContainerImage],
    ) -> None:
        if before == after:
            return
        was, holds = _bytes_by_name(before), _bytes_by_name(after)
        for image in was.keys() - holds.keys():
            self._forget(node_name, image)
            self._write(row, image, 0)
        for image, size_bytes in holds.items():
            if was.get(image) != size_bytes:
                self._bytes_on.setdefault(image, {})[node_name] = size_bytes
                self._write(row, image, size_bytes)

    def _forget(self, node_name: str, image: str) -> None:
        on_nodes = self._bytes_on[image]
        del on_nodes[node_name]
        if not on_nodes:
            del self._bytes_on[image]

    def _write(self, row: int, image: str, size_bytes: int) -> None:
        column = self.sizes.get(image)
        if column is not None:
            column.array[row] = size_bytes


def _bytes_by_name(images: Sequence[ContainerImage]) -> dict[str, int]:
    """Of a name that a node lists twice the first entry counts, as for kube-scheduler."""
    found: dict[str, int] = {}
    for image in images:
        for name in image.names:
            found.setdefault(name, min(max(image.size_bytes, 0), _LARGEST_BYTES))
    return found
