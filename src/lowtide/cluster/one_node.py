"""A single row of the table, for plugins that judge one node at a time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from lowtide.objects.pod import Pod

if TYPE_CHECKING:
    from lowtide.cluster.nodes import Nodes


class OneNode:
    """One row as plain Python values: the argument of `filter_each` and `score_each` plugins."""

    __slots__ = ("_nodes", "_position", "object")

    def __init__(self, nodes: Nodes, position: int) -> None:
        self._nodes = nodes
        self._position = position
        self.object = nodes.node(position)

    @property
    def name(self) -> str:
        return self.object.name

    @property
    def labels(self) -> dict[str, str]:
        return self.object.labels

    @property
    def pods(self) -> list[Pod]:
        return self._nodes.pods(self._position)

    def allocatable(self, resource: str) -> int:
        return int(self._nodes.allocatable(resource)[self._position])

    def requested(self, resource: str) -> int:
        return int(self._nodes.requested(resource)[self._position])

    def reading(self, source: Hashable) -> dict[str, float]:
        columns = self._nodes.reading(source)
        return {field: float(column[self._position]) for field, column in columns.items()}
