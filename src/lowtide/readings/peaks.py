"""The highest rates seen so far, used as the capacity of links whose speed is unknown.

Judging adds the rates of each reading; capacity reads them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from lowtide.cluster.columns import FloatArray, IntArray

MOST_KINDS_REMEMBERED: Final = 1000


class Peak(NamedTuple):
    bytes_per_second: float
    node_name: str


# Peaks of two different nodes, the higher first: enough to find the highest peak of another node.
TwoPeaks = tuple[Peak, ...]


@dataclass(frozen=True, slots=True)
class Peaks:
    """The two highest peaks by instance type ("" for nodes without one). They remain when their
    nodes are deleted."""

    of_kind: Mapping[str, TwoPeaks] = field(default_factory=dict)

    def of_all(self) -> TwoPeaks:
        return _two_highest(peak for each in self.of_kind.values() for peak in each)

    def with_rates(
        self, rates: FloatArray, names: Sequence[str], kind: IntArray, kinds: Sequence[str]
    ) -> "Peaks":
        """The peaks after these rates, one per node; NaN and 0 are ignored. `kind` holds indexes
        into `kinds`."""
        rows = np.flatnonzero(rates > 0)
        rows = rows[np.lexsort((rates[rows], kind[rows]))]
        # Sorted by kind and rate: the last two of each kind are its highest.
        is_last = np.append(np.diff(kind[rows]) != 0, True)[: len(rows)]
        is_among_last_two = is_last | np.append(is_last[1:], True)[: len(rows)]
        found: dict[str, list[Peak]] = {}
        for row in rows[is_among_last_two].tolist():
            found.setdefault(kinds[kind[row]], []).append(Peak(float(rates[row]), names[row]))
        of_kind = dict(self.of_kind)
        for each, peaks in found.items():
            of_kind[each] = _two_highest((*of_kind.pop(each, ()), *peaks))
        while len(of_kind) > MOST_KINDS_REMEMBERED:
            del of_kind[next(iter(of_kind))]  # the first was updated least recently
        return Peaks(of_kind)


def _two_highest(peaks: Iterable[Peak]) -> TwoPeaks:
    highest: dict[str, Peak] = {}
    for peak in sorted(peaks):
        highest[peak.node_name] = peak
    return tuple(sorted(highest.values(), reverse=True)[:2])
