"""Which claims and disks are used on the nodes of a view, and how many volumes are attached.

Volume plugins read it as `nodes.volumes`. Hypothetical pods are counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from lowtide.cluster.changes import NODE, TAKEN
from lowtide.cluster.columns import BoolArray, Column, IntArray
from lowtide.cluster.indexes.attached_volumes import (
    KINDS_THAT_ATTACH,
    NOT_COUNTED,
    VolumesOfNode,
    csi_sources_of,
)
from lowtide.cluster.indexes.volumes import VolumeKey, keys_of
from lowtide.objects.pod import Pod
from lowtide.objects.storage import (
    CSINode,
    CsiSource,
    PersistentVolume,
)

if TYPE_CHECKING:
    from lowtide.cluster.nodes import Nodes
    from lowtide.cluster.state import ClusterState

T = TypeVar("T")


class VolumesOnNodes:
    """Hypothetical pods count as differences to the indexes: lookahead adds one pod at a thousand
    positions, and preemption removes thousands of pods."""

    def __init__(
        self,
        nodes: Nodes,
        state: ClusterState,
        *,
        gather: Callable[[Column], npt.NDArray[Any]],
    ) -> None:
        """`gather` returns a column's values for the rows of these nodes."""
        self._nodes = nodes
        self._state = state
        self._gather = gather

    def of_class(self, class_name: str) -> Mapping[str, PersistentVolume]:
        """All volumes of a StorageClass by name, wherever they can be used."""
        self._nodes.touch_kinds(PersistentVolume)
        return MappingProxyType(self._state.volumes_of_class.volumes(class_name))

    def is_migrated(self, plugin: str) -> BoolArray:
        """True where a CSI driver has replaced this in-tree driver."""
        self._nodes.touch(NODE)
        self._nodes.touch_kinds(CSINode)
        return self._gather(self._state.migrated_drivers.nodes.columns[plugin]) > 0

    def pods_using(self, key: VolumeKey) -> Iterator[tuple[int, Pod]]:
        """Each pod that uses this claim or disk, with its position."""
        self._nodes.touch(TAKEN)
        is_user = _once_per_pod(lambda pod: key in keys_of(pod))
        removed: set[tuple[int, str]] = set()
        for position, pod, times in self._nodes.differences():
            if times < 0:
                removed.add((position, pod.uid))
            elif is_user(pod):
                yield position, pod
        by_node: dict[str, list[Pod]] = defaultdict(list)
        for placed in self._state.volume_users.users(key).values():
            by_node[placed.node_name].append(placed.pod)
        for position in np.flatnonzero(self._nodes.is_named(*by_node)).tolist():
            for pod in by_node[self._names[position]]:
                if (position, pod.uid) not in removed:
                    yield position, pod

    def attached_count(self, driver: str) -> IntArray:
        """How many volumes of this CSI driver are attached. Known only for nodes with a CSINode."""
        self._touch_attached()
        count = self._gather(self._state.attached_volumes.count(driver)).copy()
        for source in self._changes:
            if source.driver != driver:
                continue
            for position, users, really in self._hypothetical_users(source):
                if source not in really.attachments:
                    count[position] += (users > 0) - (source in really.users)
        return count

    def attach_limit(self, driver: str) -> IntArray:
        """How many volumes of this driver can be attached; NO_LIMIT without a stated limit."""
        self._touch_attached()
        return self._gather(self._state.attached_volumes.limit(driver))

    def is_attached(self, source: CsiSource) -> BoolArray:
        """True where a pod uses this volume already. Known only for nodes with a CSINode."""
        self._touch_attached()
        used: BoolArray = self._gather(self._state.attached_volumes.user_count(source)) > 0
        for position, users, _ in self._hypothetical_users(source):
            used[position] = users > 0
        return used

    def _touch_attached(self) -> None:
        self._nodes.touch(TAKEN)
        self._nodes.touch_kinds(*KINDS_THAT_ATTACH)

    def _hypothetical_users(self, source: CsiSource) -> Iterator[tuple[int, int, VolumesOfNode]]:
        """For each position where users change: how many pods use the volume then, and what is
        really there."""
        for position, change in self._changes.get(source, {}).items():
            really = self._really_on(position)
            yield position, really.users.get(source, 0) + change, really

    @cached_property
    def _changes(self) -> Mapping[CsiSource, Mapping[int, int]]:
        """By volume and position: how many users hypothetical pods add or remove."""
        used_by = _once_per_pod(lambda pod: csi_sources_of(pod, self._nodes.objects))
        changes: dict[CsiSource, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for position, pod, times in self._nodes.differences():
            if times < 0:  # taken from the index, as thousands of pods may be removed
                used: Collection[CsiSource] = self._really_on(position).of_pods.get(pod.uid, ())
            else:
                used = used_by(pod)
            for source in used:
                changes[source][position] += times
        return changes

    def _really_on(self, position: int) -> VolumesOfNode:
        return self._on_nodes.get(self._names[position], NOT_COUNTED)

    @cached_property
    def _on_nodes(self) -> Mapping[str, VolumesOfNode]:
        return self._state.attached_volumes.on_nodes()

    @cached_property
    def _names(self) -> Sequence[str]:
        return self._nodes.names


def _once_per_pod(judge: Callable[[Pod], T]) -> Callable[[Pod], T]:
    """Call `judge` once per pod, however many positions it is added at."""
    known: dict[int, T] = {}  # by the id of the pod

    def judged(pod: Pod) -> T:
        if id(pod) not in known:
            known[id(pod)] = judge(pod)
        return known[id(pod)]

    return judged
