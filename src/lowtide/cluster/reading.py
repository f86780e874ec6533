"""A Reading: what is measured on the nodes at one moment, in the form that ClusterState keeps.

Whoever measures publishes one per source; plugins read it as columns of the table of nodes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from lowtide.cluster.columns import FloatArray
from lowtide.objects.pod import Pod

_PODS_AT_ONCE = 250
_MOST_EXPECTED = 2.0**50  # of one pod, whatever it says: sums of these stay exact

Amounts = tuple[float, ...]  # one per field


class Expectation(Protocol):
    """What a pod adds to its node, by field, before that can be measured."""

    @property
    def fields(self) -> tuple[str, ...]: ...

    def expected_for(self, pod: Pod) -> tuple[float, ...]:
        """One amount per field."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """`columns` hold one value per name; any other node has the values `of_others`, else NaN.

    A pod that started at `sampled_at - window_seconds` or earlier is measured whole; one that
    started later, in part; what is missing of it is what `expects` says. A reading sampled at
    infinity has measured whatever is placed; one sampled at NaN has measured nothing, so that
    nothing can be added to it.

    Of thousands of young pods, what is missing takes long to work out: it may be known already."""

    names: Sequence[str] = ()
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    of_others: Mapping[str, float] = field(default_factory=dict)
    expects: Expectation | None = None
    sampled_at: float = math.nan
    window_seconds: float = 0.0
    worked_out: Mapping[str, tuple[Pod, Amounts | None]] = field(default_factory=dict)  # by uid

    @property
    def is_sampled(self) -> bool:
        return not math.isnan(self.sampled_at)

    @property
    def has_more_to_come(self) -> bool:
        """Whether there can be traffic of pods that this reading has not measured."""
        return self.sampled_at < math.inf  # which NaN is not

    def still_to_come(self, pod: Pod) -> float:
        """The share of the pod's traffic that this reading has not measured, 0 to 1."""
        if not self.has_more_to_come:
            return 0.0
        started_at = pod.started_at
        if started_at is None:
            return 1.0
        if self.window_seconds <= 0:
            return float(started_at > self.sampled_at)
        measured = (self.sampled_at - started_at) / self.window_seconds
        return 1.0 - min(max(measured, 0.0), 1.0)

    def missing_of(self, pod: Pod) -> Amounts | None:
        """What this reading has not measured of the pod; None where that is nothing."""
        known = self.worked_out.get(pod.uid)
        if known is not None and known[0] is pod:
            return known[1]
        return self._expected(pod, self.still_to_come(pod))

    def whole_of(self, pod: Pod) -> Amounts | None:
        """The same, had it not started."""
        return self._expected(pod, float(self.has_more_to_come))

    def _expected(self, pod: Pod, share: float) -> Amounts | None:
        if self.expects is None or share <= 0:
            return None
        # Whole numbers: adding and taking away leaves exactly what was there.
        return tuple(
            [
                float(round(min(share * one, _MOST_EXPECTED)))
                for one in self.expects.expected_for(pod)
            ]
        )


def with_pods_worked_out(
    reading: Reading, pods: Sequence[Pod], rest: Callable[[], None]
) -> Reading:
    """The same reading, which knows already what is missing of these pods; it rests between some
    of them and the next, for others to go on."""
    worked_out: dict[str, tuple[Pod, Amounts | None]] = {}
    for start in range(0, len(pods), _PODS_AT_ONCE):
        for pod in pods[start : start + _PODS_AT_ONCE]:
            worked_out[pod.uid] = pod, reading.missing_of(pod)
        rest()
    return replace(reading, worked_out=worked_out)
