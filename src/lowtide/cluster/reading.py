"""A Reading: what is measured on the nodes at one moment, in the form that ClusterState keeps.

Each source of readings publishes its own; plugins read it as columns of Nodes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from lowtide.cluster.columns import FloatArray
from lowtide.objects.pod import Pod

_PODS_AT_ONCE = 250
_MOST_EXPECTED = 2.0**50  # limit for one pod's amount, so that sums stay exact as floats

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
    """`columns` hold one value per name. Nodes not in `names` get `of_others`; missing fields are
    NaN.

    A pod that started at `sampled_at - window_seconds` or earlier is fully measured. One that
    started later is measured in part; `expects` gives the rest. If `sampled_at` is infinity, every
    placed pod is measured. If it is NaN, nothing is measured, and pods add nothing.

    `precomputed` holds unmeasured amounts that were computed ahead: for thousands of young pods,
    that takes long."""

    names: Sequence[str] = ()
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    of_others: Mapping[str, float] = field(default_factory=dict)
    expects: Expectation | None = None
    sampled_at: float = math.nan
    window_seconds: float = 0.0
    precomputed: Mapping[str, tuple[Pod, Amounts | None]] = field(default_factory=dict)  # by uid

    @property
    def is_sampled(self) -> bool:
        return not math.isnan(self.sampled_at)

    @property
    def can_miss_pods(self) -> bool:
        """Whether pods can have traffic that this reading has not measured."""
        return self.sampled_at < math.inf  # False for NaN

    def unmeasured_share(self, pod: Pod) -> float:
        """The share of the pod's traffic that this reading has not measured, 0 to 1."""
        if not self.can_miss_pods:
            return 0.0
        started_at = pod.started_at
        if started_at is None:
            return 1.0
        if self.window_seconds <= 0:
            return float(started_at > self.sampled_at)
        measured = (self.sampled_at - started_at) / self.window_seconds
        return 1.0 - min(max(measured, 0.0), 1.0)

    def unmeasured(self, pod: Pod) -> Amounts | None:
        """What this reading has not measured of the pod; None if that is nothing."""
        known = self.precomputed.get(pod.uid)
        if known is not None and known[0] is pod:
            return known[1]
        return self._expected(pod, self.unmeasured_share(pod))

    def unmeasured_if_new(self, pod: Pod) -> Amounts | None:
        """`unmeasured` as if the pod had not started."""
        return self._expected(pod, float(self.can_miss_pods))

    def _expected(self, pod: Pod, share: float) -> Amounts | None:
        if self.expects is None or share <= 0:
            return None
        # Whole numbers: after adding and subtracting, the value is exactly as before.
        return tuple(
            [
                float(round(min(share * one, _MOST_EXPECTED)))
                for one in self.expects.expected_for(pod)
            ]
        )


def with_precomputed_pods(
    reading: Reading, pods: Sequence[Pod], rest: Callable[[], None]
) -> Reading:
    """The same reading, with the unmeasured amounts of these pods computed ahead. `rest` is called
    after each batch, so that other threads can go on."""
    precomputed: dict[str, tuple[Pod, Amounts | None]] = {}
    for start in range(0, len(pods), _PODS_AT_ONCE):
        for pod in pods[start : start + _PODS_AT_ONCE]:
            precomputed[pod.uid] = pod, reading.unmeasured(pod)
        rest()
    return replace(reading, precomputed=precomputed)
