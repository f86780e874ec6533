"""Pods added to and removed from one row, in thought only. Nodes makes them for `with_pods`,
`without` and `returning`."""

from collections.abc import Callable, Hashable, Mapping

from lowtide.cluster.placed import PlacedPod

Amount = Callable[[PlacedPod], int]  # what one pod adds to a column


class Overlay:
    """Remembers by how much columns change: preemption asks about overlays by the thousand that
    differ from another by one pod."""

    __slots__ = ("_changes", "added", "removed")

    def __init__(
        self, added: tuple[PlacedPod, ...] = (), removed: frozenset[str] = frozenset()
    ) -> None:
        self.added = added
        self.removed = removed
        self._changes: dict[Hashable, tuple[int, Amount]] = {}  # by column

    def change(self, column: Hashable, amount: Amount, present: Mapping[str, PlacedPod]) -> int:
        """By how much this column differs; `present` are the pods that the row really has.
        Nothing is remembered of a column that is None."""
        known = self._changes.get(column)
        if known is not None:
            return known[0]
        change = sum(amount(placed) for placed in self.added)
        change -= sum(amount(present[uid]) for uid in self.removed if uid in present)
        if column is not None:
            self._changes[column] = change, amount
        return change

    def returning(self, placed: PlacedPod) -> "Overlay":
        """The same, with a removed pod back again."""
        overlay = Overlay(self.added, self.removed - {placed.pod.uid})
        overlay._changes = {
            column: (change + amount(placed), amount)
            for column, (change, amount) in self._changes.items()
        }
        return overlay
