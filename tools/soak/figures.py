"""What a soak found, of its samples: the last line that it prints, and whether that is good."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from soak.sampling import Sample

WARM_UP_SECONDS = 600.0
MOST_GROWTH_PERCENT = 5.0
# Connections are kept for a while and made when they are needed, and so are the threads that work
# is given to: a few more are no leak. One in a thousand changes would be.
SLACK = {"descriptors": 8, "tasks": 4, "threads": 2}
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Counts:
    """While nothing comes or goes, or in the middle of it."""

    descriptors: int
    tasks: int
    threads: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Medians over the first and the last tenth of the samples after the warm-up; by the straight
    line through all of these, what an hour adds."""

    after_warm_up_mib: float
    at_end_mib: float
    most_mib: float
    growth_percent: float
    mib_per_hour: float


@dataclass(frozen=True, slots=True)
class Figures:
    seconds: float
    changes_per_second: float
    nodes_came: int
    pods_came: int
    samples: int
    memory: Memory
    at_rest_before: Counts
    after_warm_up: Counts
    at_end: Counts
    at_rest_after: Counts
    comparisons: int
    differences: int
    unbound_pods: int
    cpu_percent: float

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "faults": self.faults}

    @property
    def faults(self) -> list[str]:
        """A sentence for each thing that is not as it has to be."""
        found = []
        if self.memory.growth_percent >= MOST_GROWTH_PERCENT:
            found.append(
                f"memory grew by {self.memory.growth_percent:.1f} % after the warm-up; "
                f"expected less than {MOST_GROWTH_PERCENT:g} %"
            )
        found += _leaks("at rest", self.at_rest_before, self.at_rest_after)
        found += _leaks("amid the churn", self.after_warm_up, self.at_end)
        if not self.comparisons:
            found.append("what is believed was never compared with the API server")
        if self.differences:
            found.append(f"{self.differences} times what was believed was not so; see the log")
        if self.unbound_pods:
            found.append(f"{self.unbound_pods} pods that fit were not bound in the end")
        return found


def warm_up_of(seconds: float) -> float:
    """Ten minutes of an hour; of what is shorter a sixth."""
    return min(WARM_UP_SECONDS, seconds / 6)


def memory_of(samples: Sequence[Sample], seconds: float) -> Memory:
    """Of those that were taken during the churn, which lasted so long."""
    warm = _warm(samples, seconds)
    first, last = (median(each.memory_bytes for each in part) for part in _tenths(warm))
    return Memory(
        after_warm_up_mib=round(first / MIB, 1),
        at_end_mib=round(last / MIB, 1),
        most_mib=round(max(each.memory_bytes for each in samples) / MIB, 1),
        growth_percent=round(100 * (last - first) / first, 2),
        mib_per_hour=round(_slope(warm) * 3600 / MIB, 2),
    )


def counts_of(samples: Sequence[Sample], seconds: float) -> tuple[Counts, Counts]:
    """Medians after the warm-up, and in the end."""
    first, last = (
        Counts(
            descriptors=round(median(each.descriptors for each in part)),
            tasks=round(median(each.tasks for each in part)),
            threads=round(median(each.threads for each in part)),
        )
        for part in _tenths(_warm(samples, seconds))
    )
    return first, last


def _leaks(when: str, then: Counts, now: Counts) -> list[str]:
    counted, counted_now = asdict(then), asdict(now)
    return [
        f"{when} there were {counted[name]} {name} before, and {counted_now[name]} after"
        for name, slack in SLACK.items()
        if counted_now[name] > counted[name] + slack
    ]


def _warm(samples: Sequence[Sample], seconds: float) -> list[Sample]:
    return [each for each in samples if each.seconds >= warm_up_of(seconds)]


def _tenths(samples: Sequence[Sample]) -> tuple[Sequence[Sample], Sequence[Sample]]:
    """The first and the last."""
    count = math.ceil(len(samples) / 10)
    return samples[:count], samples[-count:]


def _slope(samples: Sequence[Sample]) -> float:
    """Bytes a second, by least squares."""
    mean_at = sum(each.seconds for each in samples) / len(samples)
    mean_bytes = sum(each.memory_bytes for each in samples) / len(samples)
    spread = sum((each.seconds - mean_at) ** 2 for each in samples)
    common = sum((each.seconds - mean_at) * (each.memory_bytes - mean_bytes) for each in samples)
    return common / spread if spread else 0.0
