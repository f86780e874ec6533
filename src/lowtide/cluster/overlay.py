"""Pods hypothetically added to rows or removed from them: `with_pods`, `without` and `restoring` of
Nodes.

Preemption tries thousands of pods, step by step. So each pod's amounts are computed once, and each
step only adds them up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from operator import is_
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import IntArray, Rows
from lowtide.cluster.placed import PlacedPod, footprint_of
from lowtide.objects.pod import Pod

Amount = Callable[[PlacedPod], int]  # what one pod adds to a column
Difference = tuple[int, Pod, int]  # position, pod, number of copies added (-1: removed)

_NOWHERE = -1
_LARGEST_USUAL = 2**40  # the sum of 8 million such amounts fits into 64 bits
# The cache is dropped when it holds this many columns: overlays of nominated pods may live long,
# and plugins may read more and more columns.
_MOST_COLUMNS = 64


def hypothetical_pod(pod: Pod) -> PlacedPod:
    """A hypothetical pod: it has a footprint, but no node yet."""
    return PlacedPod(pod, "", footprint_of(pod), is_assumed=True)


class HypotheticalPods:
    """All pods that a series of overlays adds or removes. Each has a place, a number that stands
    for a row of the table. Unlike positions, places are the same in every view."""

    def __init__(
        self,
        pods: Sequence[PlacedPod],
        places: Rows,
        *,
        times: int,
        place_count: int,
        before: HypotheticalPods | None = None,
    ) -> None:
        """`times` is 1 if `pods` are added, -1 if they are removed. The pods of `before` come
        first; their amounts are not computed again."""
        self._new = pods
        self._are_added = times > 0
        self._is_one = len(pods) > 1 and all(map(partial(is_, pods[0]), pods))  # one, repeated
        self._before = before
        self._amounts: dict[Hashable, IntArray] = {}
        self.place_count = place_count
        self.pods = pods
        self.places = places
        self.times: IntArray = np.full(len(pods), times, np.int64)
        if before is not None:
            self.pods = [*before.pods, *pods]
            self.places = np.concatenate([before.places, places])
            self.times = np.concatenate([before.times, self.times])

    def amounts(self, column: Hashable, amount: Amount) -> IntArray:
        known = self._amounts.get(column)
        if known is None:
            known = self._new_amounts(amount)
            if self._before is not None:
                known = np.concatenate([self._before.amounts(column, amount), known])
            if len(self._amounts) >= _MOST_COLUMNS:
                self._amounts.clear()
            self._amounts[column] = known
        return known

    def amounts_now(self, amount: Amount) -> IntArray:
        """`amounts` without the cache, for an amount that may change."""
        known = self._new_amounts(amount)
        return (
            known
            if self._before is None
            else np.concatenate([self._before.amounts_now(amount), known])
        )

    @cached_property
    def are_amounts_large(self) -> bool:
        """Whether an added pod has a large amount. ClusterState counts the pods that exist."""
        if self._before is not None and self._before.are_amounts_large:
            return True
        new = self._new[:1] if self._is_one else self._new
        return self._are_added and any(placed.footprint.is_large for placed in new)

    def _new_amounts(self, amount: Amount) -> IntArray:
        if self._is_one:
            return np.full(len(self._new), amount(self._new[0]), np.int64)
        return np.array([amount(placed) for placed in self._new], np.int64)

    @cached_property
    def at_places(self) -> Mapping[int, Sequence[int]]:
        """The numbers of the pods, by place."""
        found: dict[int, list[int]] = {}
        for number, place in enumerate(self.places.tolist()):
            found.setdefault(place, []).append(number)
        return found


class Overlays:
    """Which hypothetical pods count in a view, and the place of each position."""

    __slots__ = ("_hypothetical", "_places", "_times")

    def __init__(self, hypothetical: HypotheticalPods, places: Rows, times: IntArray) -> None:
        self._hypothetical = hypothetical
        self._places = places  # by position
        self._times = times  # by number of the pod; 0 if it does not count

    @classmethod
    def none(cls, count: int) -> Overlays:
        nothing = HypotheticalPods((), np.empty(0, np.intp), times=0, place_count=0)
        return cls(nothing, np.full(count, _NOWHERE, np.intp), nothing.times)

    def take(self, positions: Rows) -> Overlays | None:
        """The overlays of these positions; None if no pod is added or removed there."""
        places = self._places[positions]
        return Overlays(self._hypothetical, places, self._times) if (places >= 0).any() else None

    def adding(self, pods: Mapping[int, Iterable[PlacedPod]]) -> Overlays:
        return self._with({at: list(each) for at, each in pods.items()}, self._times, 1)

    @classmethod
    def repeating(cls, placed: PlacedPod, times: IntArray) -> Overlays:
        """Overlays that add so many copies of one pod at each position."""
        touched = np.flatnonzero(times)
        numbers = np.arange(len(touched))
        places = np.full(len(times), _NOWHERE, np.intp)
        places[touched] = numbers
        pods = HypotheticalPods([placed] * len(touched), numbers, times=1, place_count=len(touched))
        return cls(pods, places, times[touched])

    def removing(
        self,
        pods: Mapping[int, Collection[str]],
        really_on: Callable[[int], Mapping[str, PlacedPod]],
    ) -> Overlays:
        """Remove the pods of these uids, by position. Unknown uids are ignored."""
        times = self._times.copy()
        removed: dict[int, list[PlacedPod]] = {}
        for at, uids in pods.items():
            really = really_on(at)
            known = self._remove_earlier(at, uids, times) if len(times) else ()
            new = [uid for uid in dict.fromkeys(uids) if uid in really and uid not in known]
            removed[at] = [really[uid] for uid in new]
        return self._with(removed, times, -1)

    def removing_all(self, pods: Mapping[int, Sequence[PlacedPod]]) -> Overlays:
        """Remove pods that exist, at positions without added or removed pods."""
        return self._with(pods, self._times, -1)

    def restoring(self, numbers: Rows) -> Overlays:
        """Undo changes: these pods do not count. Pods are numbered in the order in which they were
        added or removed."""
        times = self._times.copy()
        times[numbers] = 0
        return Overlays(self._hypothetical, self._places, times)

    def change(self, column: Hashable, amount: Amount) -> IntArray:
        """By how much this column of counts changes at each position."""
        return self._summed(self._hypothetical.amounts(column, amount))

    @property
    def are_amounts_large(self) -> bool:
        return self._hypothetical.are_amounts_large

    def change_of_total(self, column: Hashable, amount: Amount) -> npt.NDArray[Any]:
        """`change` for a column of amounts, as Python integers if sums may not fit into int64."""
        amounts = self._hypothetical.amounts(column, amount)
        is_usual = np.maximum.reduce(amounts, initial=0) <= _LARGEST_USUAL
        return self._summed(amounts if is_usual else amounts.astype(np.object_))

    def change_now(self, amount: Amount) -> IntArray:
        """`change` without the cache, for an amount that may change."""
        return self._summed(self._hypothetical.amounts_now(amount))

    @property
    def positions(self) -> list[int]:
        """The positions where pods are added or removed."""
        return np.flatnonzero(self._places >= 0).tolist()

    def pods(self) -> Iterator[Difference]:
        positions = np.full(self._hypothetical.place_count, _NOWHERE, np.intp)
        touched = np.flatnonzero(self._places >= 0)
        positions[self._places[touched]] = touched
        numbers = np.flatnonzero(self._times)
        numbers = numbers[positions[self._hypothetical.places[numbers]] >= 0]
        at, pods = positions[self._hypothetical.places[numbers]].tolist(), self._hypothetical.pods
        counted = [pods[number].pod for number in numbers.tolist()]
        return zip(at, counted, self._times[numbers].tolist(), strict=True)

    def placed(self, position: int, really: Mapping[str, PlacedPod]) -> list[PlacedPod]:
        """The pods at a position whose node has the pods `really`."""
        pods, left = self._hypothetical.pods, dict(really)
        added: list[PlacedPod] = []
        for number in self._hypothetical.at_places.get(int(self._places[position]), ()):
            if self._times[number] < 0:
                left.pop(pods[number].pod.uid, None)
            else:
                added += [pods[number]] * int(self._times[number])
        return [*left.values(), *added]

    def _summed(self, amounts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        hypothetical = self._hypothetical
        by_place = np.zeros(hypothetical.place_count + 1, amounts.dtype)  # the last is for _NOWHERE
        np.add.at(by_place, hypothetical.places, self._times * amounts)
        return by_place[self._places]

    def _remove_earlier(self, position: int, uids: Collection[str], times: IntArray) -> set[str]:
        """Apply a removal to pods of earlier overlays. An added pod stops counting. Returns the
        uids of removed pods: they count as removed, also after `restoring`."""
        found = set()
        for number in self._hypothetical.at_places.get(int(self._places[position]), ()):
            uid = self._hypothetical.pods[number].pod.uid
            if uid in uids and self._hypothetical.times[number] > 0:
                times[number] = 0
            elif uid in uids:
                times[number] = -1
                found.add(uid)
        return found

    def _with(
        self, pods: Mapping[int, Sequence[PlacedPod]], before: IntArray, times: int
    ) -> Overlays:
        """These overlays with more pods. `before` are the new times of the earlier pods."""
        touched = np.fromiter(pods, np.intp, len(pods))
        count, places = self._hypothetical.place_count, self._places.copy()
        new = touched[places[touched] == _NOWHERE]
        places[new] = np.arange(count, count + len(new))
        lengths = np.fromiter(map(len, pods.values()), np.intp, len(pods))
        hypothetical = HypotheticalPods(
            list(chain.from_iterable(pods.values())),
            np.repeat(places[touched], lengths),
            times=times,
            place_count=count + len(new),
            before=self._hypothetical if len(before) else None,
        )
        return Overlays(
            hypothetical, places, np.concatenate([before, hypothetical.times[len(before) :]])
        )


class RemovedPod(NamedTuple):
    """A placed pod that is hypothetically on no node, with the overlays for the whole table."""

    placed: PlacedPod
    overlays: Overlays
