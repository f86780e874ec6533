"""How busy links were from reading to reading, in a few figures: the same for a shadow and for what
a recording is compared with."""

import msgspec
import numpy as np

from lowtide.cluster.columns import FloatArray
from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.objects.requests import CPU
from lowtide.readings.columns import SHARE
from lowtide.readings.request import duration
from lowtide.simulator.report import fairness_of, highest_over_mean

_STEPS_PER_SHARE = 1000
_HIGHEST_SHARE = 10  # above that it is all the same


class LinkFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured, without what was placed since. `p95` is what links stay below for 95 % of
    their readings; fairness (Jain's) and the imbalance of requested CPU are those when all links
    together carry most."""

    readings: int
    window_seconds: float  # each averages over as much; the longest
    peak: float
    peak_node: str
    p95: float
    fairness: float
    cpu_imbalance: float | None  # None where no pod requests any

    @property
    def counted(self) -> str:
        return "1 reading" if self.readings == 1 else f"{self.readings} readings"

    @property
    def cpu_imbalance_in_words(self) -> str:
        return "-" if self.cpu_imbalance is None else f"{self.cpu_imbalance:.2f}"

    @property
    def averaging(self) -> str:
        """In words, behind the readings; nothing where they say no window."""
        seconds = round(self.window_seconds)
        return f", averages over {duration(seconds)}" if seconds else ""


class LinkCourse:
    """Without `keeps_course` it takes the same memory however long it lasts."""

    def __init__(self, *, keeps_course: bool = True) -> None:
        self.course: list[tuple[float, float]] = []  # (time, share of the busiest link)
        self._keeps_course = keeps_course
        self._readings = 0
        self._window_seconds = 0.0
        self._counts = np.zeros(_STEPS_PER_SHARE * _HIGHEST_SHARE + 1, np.int64)
        self._peak, self._peak_node = 0.0, ""
        self._busiest = -1.0
        self._fairness = 1.0
        self._cpu_imbalance: float | None = None

    def look(self, reading: Reading, state: ClusterState, now: float) -> None:
        shares = reading.columns.get(SHARE)
        if shares is None or not len(shares) or not np.isfinite(shares).any():
            return
        known = shares[np.isfinite(shares)]
        worst = int(np.nanargmax(shares))
        self._readings += 1
        self._window_seconds = max(self._window_seconds, reading.window_seconds)
        if self._keeps_course:
            self.course.append((now, float(shares[worst])))
        if shares[worst] > self._peak:
            self._peak, self._peak_node = float(shares[worst]), reading.names[worst]
        steps = np.clip(known * _STEPS_PER_SHARE, 0, len(self._counts) - 1).astype(np.intp)
        np.add.at(self._counts, steps, 1)
        if known.sum() > self._busiest:
            self._busiest = float(known.sum())
            self._fairness = fairness_of(known)
            requested = _requested_cpu(state)
            self._cpu_imbalance = highest_over_mean(requested) if requested.any() else None

    def figures(self) -> LinkFigures | None:
        """None where nothing was measured."""
        if not self._readings:
            return None
        passed = np.cumsum(self._counts)
        step = int(np.searchsorted(passed, 0.95 * passed[-1]))
        return LinkFigures(
            readings=self._readings,
            window_seconds=self._window_seconds,
            peak=self._peak,
            peak_node=self._peak_node,
            p95=step / _STEPS_PER_SHARE,
            fairness=self._fairness,
            cpu_imbalance=self._cpu_imbalance,
        )


def _requested_cpu(state: ClusterState) -> FloatArray:
    allocatable = np.maximum(state.allocatable(CPU)[: state.count], 1)
    shares: FloatArray = state.requested(CPU)[: state.count] / allocatable
    return shares if len(shares) else np.zeros(1)
