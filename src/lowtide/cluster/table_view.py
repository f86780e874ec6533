"""Some rows of ClusterState, as they are or hypothetically changed.

A TableView knows which rows are read, and which pods are added to them or removed (`with_pods`,
`without`). `Nodes` adds the accessors that plugins use.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt

from lowtide.cluster.changes import ANY_ROW, NODES, PODS
from lowtide.cluster.columns import BoolArray, Column, IntArray, Rows, Totals
from lowtide.cluster.overlay import Amount, Overlays, hypothetical_pod
from lowtide.cluster.placed import PlacedPod
from lowtide.objects.pod import Pod

if TYPE_CHECKING:
    from lowtide.cluster.state import ClusterState


class TableView:
    __slots__ = (
        "_are_amounts_large",
        "_everything",
        "_feasible",
        "_is_hypothetical",
        "_overlays",
        "_removal",
        "_rows",
        "_state",
        "_touch_shift",
    )

    def __init__(
        self,
        state: ClusterState,
        rows: Rows | None = None,
        overlays: Overlays | None = None,
        *,
        touch_shift: int = 0,
        feasible: BoolArray | None = None,
    ) -> None:
        """Bits that a plugin reads are logged shifted by `touch_shift`: by ANY_ROW if reads count
        as reads of the whole table, else by 0. `feasible` is indexed by row."""
        self._state = state
        self._rows = rows
        self._overlays = overlays
        self._touch_shift = touch_shift
        self._feasible = feasible
        self._everything: Self | None = None
        self._are_amounts_large: bool | None = None
        self._is_hypothetical = overlays is not None or state.removed_pod is not None
        self._removal: Overlays | None = None
        if state.removed_pod is not None:
            everywhere = state.removed_pod.overlays
            self._removal = everywhere if rows is None else everywhere.take(rows)

    def __len__(self) -> int:
        self._touch_which_rows()
        return self._state.count if self._rows is None else len(self._rows)

    # Which rows.

    @property
    def rows(self) -> Rows:
        """The table row of each position."""
        self._touch_which_rows()
        if self._rows is None:
            return self._state.every_row
        rows = self._rows.view()
        rows.setflags(write=False)  # plugins share this view
        return rows

    @property
    def everything(self) -> Self:
        """The whole table, without the overlays of this view. An answer about one row that depends
        on other rows must read them here: elsewhere, a read counts for that row alone."""
        if self._touch_shift and self.is_whole:
            return self
        if self._everything is None:
            self._everything = type(self)(self._state, touch_shift=ANY_ROW, feasible=self._feasible)
        return self._everything

    @property
    def is_whole(self) -> bool:
        """Whether this view has all rows, without overlays."""
        return self._rows is None and self._overlays is None

    def take(self, positions: Rows) -> Self:
        rows = positions if self._rows is None else self._rows[positions]
        overlays = self._overlays
        return self._view(rows, None if overlays is None else overlays.take(positions))

    def with_pods(self, pods: Mapping[int, Sequence[Pod]]) -> Self:
        """This view with pods added, by position. Each position is a hypothesis of its own:
        `everything` does not see these pods."""
        return self.with_placed({at: map(hypothetical_pod, each) for at, each in pods.items()})

    def with_placed(self, pods: Mapping[int, Iterable[PlacedPod]]) -> Self:
        """`with_pods` for pods whose footprint is known."""
        return self._view(self._rows, self._overlays_so_far.adding(pods))

    def with_copies(self, placed: PlacedPod, times: IntArray) -> Self:
        """This view, which must not have overlays, with so many copies of the pod added at each
        position."""
        return self._view(self._rows, Overlays.repeating(placed, times))

    def without(self, pods: Mapping[int, Collection[str]]) -> Self:
        """This view without the pods of these uids, by position."""
        return self._view(self._rows, self._overlays_so_far.removing(pods, self._really_on))

    def without_lower(self, priority: int) -> tuple[Self, list[list[Pod]]]:
        """This view without the pods of lower priority, and those pods by position."""
        self.touch(PODS)
        lower = [
            [placed for placed in self._placed(at) if placed.pod.spec.priority < priority]
            for at in range(len(self))
        ]
        pods = [[placed.pod for placed in each] for each in lower]
        if self._overlays is None:
            overlays = self._overlays_so_far.removing_all(dict(enumerate(lower)))
            return self._view(self._rows, overlays), pods
        return self.without({at: [pod.uid for pod in each] for at, each in enumerate(pods)}), pods

    def restoring(self, indexes: Rows) -> Self:
        """Undo changes. `indexes` number all pods that overlays have added or removed, in order;
        without earlier overlays, these are the pods that `without_lower` returned."""
        return self._view(self._rows, self._overlays_so_far.restoring(indexes))

    def overlaid(self, overlays: Overlays) -> Self:
        """This view with these overlays, which are by position, in place of its own."""
        return self._view(self._rows, overlays)

    def with_feasible(self, feasible: BoolArray) -> Self:
        """This view, where `feasible` marks the table rows that passed the filters."""
        return type(self)(
            self._state,
            self._rows,
            self._overlays,
            touch_shift=self._touch_shift,
            feasible=feasible,
        )

    # Internals.

    def touch(self, bits: int) -> None:
        """Record that these bits of these rows were read."""
        self._state.touched |= bits << self._touch_shift

    def _touch_which_rows(self) -> None:
        """If reads count for the whole table, record that the answer depends on which nodes
        exist."""
        if self._touch_shift:
            self._state.touched |= NODES

    def _view(self, rows: Rows | None, overlays: Overlays | None) -> Self:
        return type(self)(
            self._state, rows, overlays, touch_shift=self._touch_shift, feasible=self._feasible
        )

    def _row(self, position: int) -> int:
        return position if self._rows is None else int(self._rows[position])

    def _gather(self, column: Column) -> npt.NDArray[Any]:
        rows = self._rows
        return column.read_only[: self._state.count] if rows is None else column.array[rows]

    def _gather_array(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """`_gather` for an array by row that is not a Column."""
        return array[: self._state.count] if self._rows is None else array[self._rows]

    @property
    def _overlays_so_far(self) -> Overlays:
        return Overlays.none(len(self)) if self._overlays is None else self._overlays

    @property
    def are_amounts_large(self) -> bool:
        """Whether an amount of a node or pod is so large that sums and products may overflow int64.
        This may change how an answer is computed, but never the answer."""
        known = self._are_amounts_large
        if known is None:
            state = self._state
            known = state.pod_totals.large_count + state.allocatable_amounts.large_count > 0
            if not known and self._overlays is not None:
                known = self._overlays.are_amounts_large
            self._are_amounts_large = known
        return known

    def _adjusted(self, column: IntArray, amount: Amount, name: Hashable) -> IntArray:
        """The column, hypothetical pods counted. Overlays cache by `name` what a pod adds."""
        if not self._is_hypothetical:
            return column
        if self._removal is not None:
            column = column + self._removal.change(name, amount)
        if self._overlays is not None:
            column = column + self._overlays.change(name, amount)
        return column

    @property
    def _layers(self) -> list[Overlays]:
        return [each for each in (self._removal, self._overlays) if each is not None]

    def _total(self, totals: Totals, resource: str) -> IntArray:
        """What the pods request in total of this resource, a key of Footprint.amounts."""
        if not self._is_hypothetical:
            return self._gather(totals)

        def amount(placed: PlacedPod) -> int:
            return placed.footprint.amounts.get(resource, 0)

        if not self.are_amounts_large:
            return self._adjusted(self._gather(totals), amount, resource)
        changes = [each.change_of_total(resource, amount) for each in self._layers]
        return totals.changed(self.rows, sum(changes[1:], changes[0]))

    def _placed(self, position: int) -> list[PlacedPod]:
        really = self._really_on(position)
        if self._overlays is None:
            return list(really.values())
        return self._overlays.placed(position, really)

    def _really_on(self, position: int) -> Mapping[str, PlacedPod]:
        really = self._state.placed_on(self._state.names[self._row(position)])
        if self._removal is None:
            return really
        return {placed.pod.uid: placed for placed in self._removal.placed(position, really)}
