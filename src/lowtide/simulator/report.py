"""What a run comes to: the record of link utilisation over time, and the figures made from it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from lowtide.cluster.columns import FloatArray, IntArray

DECIMALS: Final = 6
PERCENTILE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run, as `--output json` prints them."""

    seed: int
    peak: float  # the highest utilisation of any link at any time
    peak_over_reference: float
    p95: float  # what links stay below for 95 % of their time
    fairness: float  # Jain's, of the links' utilisation, when all together carry most
    cpu_imbalance: float  # highest over mean requested share of CPU, at that time
    nodes_used: int  # that have a pod at that time
    pending: int  # pods without a node in the end

    def as_json(self) -> dict[str, Any]:
        return {
            name: round(value, DECIMALS) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True, slots=True)
class RunResult:
    figures: Figures
    course: tuple[tuple[float, float], ...]  # (seconds, utilisation of the busiest link)
    reference: float


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """The cluster when its links together carried most."""

    bytes_per_second: float
    utilization: FloatArray
    requested_cpu_share: FloatArray
    pod_count: IntArray


class LoadRecord:
    """Utilisation of every link from `began_at` on; told of each change as it happens."""

    def __init__(self, utilization: FloatArray, began_at: float) -> None:
        self.peak = 0.0
        self.busiest: Moment | None = None
        self.course: list[tuple[float, float]] = []
        self._began_at = began_at
        self._utilization = utilization
        self._since = np.full(len(utilization), began_at)
        self._shares: list[FloatArray] = []
        self._seconds: list[FloatArray] = []
        self._note_peak(began_at)

    def change(self, utilization: FloatArray, now: float) -> None:
        changed = np.flatnonzero(utilization != self._utilization)
        self._keep(changed, now)
        self._utilization = utilization
        self._note_peak(now)

    def end(self, now: float) -> None:
        self._keep(np.arange(len(self._utilization)), now)
        self._note_peak(now)

    def percentile(self, share_of_time: float) -> float:
        """What links stay at or below for that share of the time of all of them."""
        shares, seconds = np.concatenate(self._shares), np.concatenate(self._seconds)
        if seconds.sum() <= 0:
            return float(np.percentile(self._utilization, 100 * share_of_time))
        order = np.argsort(shares, kind="stable")
        passed = np.cumsum(seconds[order])
        position = int(np.searchsorted(passed, share_of_time * passed[-1]))
        return float(shares[order][min(position, len(order) - 1)])

    def _keep(self, rows: IntArray, now: float) -> None:
        self._shares.append(self._utilization[rows])
        self._seconds.append(now - self._since[rows])
        self._since[rows] = now

    def _note_peak(self, now: float) -> None:
        highest = float(self._utilization.max())
        self.peak = max(self.peak, highest)
        self.course.append((now - self._began_at, highest))


def figures(record: LoadRecord, *, seed: int, reference: float, pending: int) -> Figures:
    moment = record.busiest
    assert moment is not None
    return Figures(
        seed=seed,
        peak=record.peak,
        peak_over_reference=record.peak / reference if reference > 0 else 1.0,
        p95=record.percentile(PERCENTILE),
        fairness=fairness_of(moment.utilization),
        cpu_imbalance=highest_over_mean(moment.requested_cpu_share),
        nodes_used=int(np.count_nonzero(moment.pod_count)),
        pending=pending,
    )


def median_and_90th(values: Sequence[float]) -> tuple[float, float]:
    return float(np.median(values)), float(np.percentile(values, 90))


def fairness_of(utilization: FloatArray) -> float:
    """1 where all are equal, down to 1/n where one carries all."""
    squares = float((utilization**2).sum())
    return float(utilization.sum()) ** 2 / (len(utilization) * squares) if squares > 0 else 1.0


def highest_over_mean(shares: FloatArray) -> float:
    mean = float(shares.mean())
    return float(shares.max()) / mean if mean > 0 else 1.0
