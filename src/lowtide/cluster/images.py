"""Which nodes hold an image, and how large it is there: columns made at first use and kept true.

ClusterState tells of nodes that come, change and go; rules read a column by `nodes.image_sizes`.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from lowtide.cluster.columns import Column, KeptColumns
from lowtide.objects.node import ContainerImage

# Beyond any image. A float holds it exactly, and one more than ImageLocality counts fits beside it.
_LARGEST_BYTES = 2**62


class Images:
    def __init__(self) -> None:
        self._bytes_on: dict[str, dict[str, int]] = {}  # by image name, then by node name
        self._kept: KeptColumns[str, Column] = KeptColumns()  # by image

    @property
    def columns(self) -> Iterable[Column]:
        return self._kept

    def let_columns_go(self) -> None:
        self._kept.clear()

    def node_count(self, image: str) -> int:
        """How many nodes hold it."""
        return len(self._bytes_on.get(image, ()))

    def column(self, image: str, *, capacity: int, row_of: Callable[[str], int | None]) -> Column:
        """Its size in bytes on each row; 0 where it is not."""

        def make() -> Column:
            column = Column(np.int64, 0, capacity)
            for node_name, size_bytes in self._bytes_on.get(image, {}).items():
                column.array[row_of(node_name)] = size_bytes
            return column

        return self._kept.asked(image, make)

    def replace(
        self,
        row: int,
        node_name: str,
        before: Sequence[ContainerImage],
        after: Sequence[ContainerImage],
    ) -> None:
        """What a node holds, which stands in this row."""
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

    def remove(self, node_name: str, held: Sequence[ContainerImage]) -> None:
        """A node is gone; its row in the columns is the table's affair."""
        for image in _bytes_by_name(held):
            self._forget(node_name, image)

    def _forget(self, node_name: str, image: str) -> None:
        on_nodes = self._bytes_on[image]
        del on_nodes[node_name]
        if not on_nodes:
            del self._bytes_on[image]

    def _write(self, row: int, image: str, size_bytes: int) -> None:
        column = self._kept.get(image)
        if column is not None:
            column.array[row] = size_bytes


def _bytes_by_name(images: Sequence[ContainerImage]) -> dict[str, int]:
    """A name that a node lists twice counts as it stands there first, as for kube-scheduler."""
    found: dict[str, int] = {}
    for image in images:
        for name in image.names:
            found.setdefault(name, min(max(image.size_bytes, 0), _LARGEST_BYTES))
    return found
