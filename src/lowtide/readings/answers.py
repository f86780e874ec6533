"""Prometheus's answers as arrays, kept between polls. They take a tenth of the memory of the
series themselves. Filled and read by LinkFinder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np

from lowtide.cluster.columns import FloatArray, IntArray
from lowtide.readings.matching import Target, targets_of
from lowtide.readings.series import Series

Answers = Mapping[str, Sequence[Series]]
Labels = dict[str, str]
Key = TypeVar("Key")

# Tidying starts when there are more than twice the targets and devices in use, plus this many.
_FEW: Final = 64


@dataclass(slots=True, eq=False)
class Shape:
    """The labels of an answer, one element per series. Answers with equal labels share one Shape;
    most answers list the same devices in the same order at each poll."""

    labels: Sequence[Labels]
    target: IntArray  # the number of its target in KeptAnswers.targets
    device: IntArray  # the number of its device in KeptAnswers.devices


@dataclass(frozen=True, slots=True, eq=False)
class KeptAnswer:
    """One answer: each array has one element per series, in the order of the answer."""

    shape: Shape
    value: FloatArray
    at: FloatArray


@dataclass(slots=True, eq=False)
class KeptAnswers:
    """The newest answer to each query. Targets and devices are numbered as they are first seen."""

    targets: dict[Target, int] = field(default_factory=dict)
    devices: dict[str, int] = field(default_factory=dict)
    _by_name: dict[str, KeptAnswer] = field(default_factory=dict)
    _tidy_beyond: int = _FEW

    def take(self, name: str, series: Sequence[Series]) -> None:
        self._by_name[name] = KeptAnswer(
            shape=self._shape([one.labels for one in series]),
            value=np.array([one.value for one in series], np.float64),
            at=np.array([one.at for one in series], np.float64),
        )

    def answer_named(self, name: str) -> KeptAnswer:
        if name not in self._by_name:
            self.take(name, ())
        return self._by_name[name]

    def shapes(self) -> list[Shape]:
        """The distinct shapes of all answers."""
        return list({id(one.shape): one.shape for one in self._by_name.values()}.values())

    @property
    def is_untidy(self) -> bool:
        """True if so many targets and devices were seen that most may be in no answer any more."""
        return len(self.targets) + len(self.devices) > self._tidy_beyond

    def tidy(self) -> None:
        """Forget the targets and devices that no answer has any more, and renumber the others."""
        shapes = self.shapes()
        self.targets, targets = _renumbered(self.targets, [shape.target for shape in shapes])
        self.devices, devices = _renumbered(self.devices, [shape.device for shape in shapes])
        for shape, target, device in zip(shapes, targets, devices, strict=True):
            shape.target, shape.device = target, device
        self._tidy_beyond = _FEW + 2 * (len(self.targets) + len(self.devices))

    def _shape(self, labels: Sequence[Labels]) -> Shape:
        for known in self.shapes():
            if known.labels == labels:
                return known
        targets, devices = self.targets, self.devices
        of_series = [targets.setdefault(each, len(targets)) for each in targets_of(labels)]
        names = [each.get("device", "") for each in labels]
        return Shape(
            labels=labels,
            target=np.array(of_series, np.int64),
            device=np.array([devices.setdefault(name, len(devices)) for name in names], np.int64),
        )


def _renumbered(
    numbers: dict[Key, int], uses: Sequence[IntArray]
) -> tuple[dict[Key, int], list[IntArray]]:
    if not uses:
        return {}, []
    used = np.unique(np.concatenate(uses))
    keys = list(numbers)
    renumbered = {keys[old]: new for new, old in enumerate(used.tolist())}
    return renumbered, [np.searchsorted(used, each) for each in uses]
