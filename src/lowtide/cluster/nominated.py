"""The pods that are nominated to nodes, kept as overlays: every decision asks which of them stand
in the pod's way, and mostly they are the same as before. Used by `framework/what_if`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.overlay import ImaginedPods, Overlays, imagined
from lowtide.cluster.placed import PlacedPod
from lowtide.objects.meta import as_int32
from lowtide.objects.pod import Pod

if TYPE_CHECKING:
    from lowtide.cluster.nodes import Nodes
    from lowtide.cluster.state import ClusterState

_NO_PRIORITIES: IntArray = np.empty(0, np.int64)


class Rivals:
    """Pods that matter as much as another one or more, on the nodes that they are nominated to."""

    def __init__(self, pods: ImaginedPods, row_at: Rows, counts: BoolArray) -> None:
        self._pods = pods
        self._counts = counts
        self._places = np.flatnonzero(np.bincount(pods.places[counts]))
        self.rows: Rows = row_at[self._places]  # each once

    def with_them(self, nodes: Nodes) -> Nodes:
        """Their rows of the whole table, with them."""
        overlays = Overlays(self._pods, self._places, self._counts.astype(np.int64))
        return nodes.take(self.rows).overlaid(overlays)

    @cached_property
    def by_row(self) -> Mapping[int, Sequence[PlacedPod]]:
        row_of = dict(zip(self._places.tolist(), self.rows.tolist(), strict=True))
        found: dict[int, list[PlacedPod]] = {}
        for number in np.flatnonzero(self._counts).tolist():
            row = row_of[int(self._pods.places[number])]
            found.setdefault(row, []).append(self._pods.pods[number])
        return found


class NominatedPods:
    """Nobody tells when nominations change: they are compared with those seen last."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, Pod]] = {}  # by node name and uid
        self._table_version = -1
        self._pods = ImaginedPods((), np.empty(0, np.intp), times=1, place_count=0)
        self._number_of: dict[str, int] = {}  # by uid
        self._row_at: Rows = np.empty(0, np.intp)  # by place
        self._priorities = _NO_PRIORITIES

    def rivals_of(self, pod: Pod, state: ClusterState) -> Rivals | None:
        """None where nobody stands in its way."""
        nominated = state.nominated()
        if not nominated:
            return None
        self._see(nominated, state)
        counts = self._priorities >= as_int32(pod.spec.priority)
        if pod.uid in self._number_of:
            counts[self._number_of[pod.uid]] = False
        return Rivals(self._pods, self._row_at, counts) if counts.any() else None

    def _see(self, nominated: Mapping[str, Mapping[str, Pod]], state: ClusterState) -> None:
        if nominated == self._seen and state.table_version == self._table_version:
            return
        self._seen = {node_name: dict(pods) for node_name, pods in nominated.items()}
        self._table_version = state.table_version
        by_row = {
            row: [self._imagined(pod) for pod in pods.values()]
            for node_name, pods in nominated.items()
            if (row := state.row_of(node_name)) is not None
        }
        places = np.repeat(np.arange(len(by_row)), [len(pods) for pods in by_row.values()])
        self._pods = ImaginedPods(
            list(chain.from_iterable(by_row.values())), places, times=1, place_count=len(by_row)
        )
        self._row_at = np.array(list(by_row), np.intp)
        pods_seen = [placed.pod for placed in self._pods.pods]
        self._number_of = {pod.uid: number for number, pod in enumerate(pods_seen)}
        self._priorities = np.array([as_int32(pod.spec.priority) for pod in pods_seen], np.int64)

    def _imagined(self, pod: Pod) -> PlacedPod:
        """What a pod takes is worked out once."""
        number = self._number_of.get(pod.uid)
        known = None if number is None else self._pods.pods[number]
        return known if known is not None and known.pod is pod else imagined(pod)
