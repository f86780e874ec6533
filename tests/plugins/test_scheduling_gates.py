"""SchedulingGates: a pod with gates stays out of the queue until all of them are gone."""

import pytest

from lowtide.framework.plugin import PodRejection
from lowtide.plugins.scheduling_gates import SchedulingGates
from lowtide.testing import make_pod


@pytest.mark.parametrize(
    ("gates", "rejection"),
    [
        pytest.param([], None, id="lets a pod without gates into the queue"),
        pytest.param(["a"], PodRejection("waiting for scheduling gates: [a]"), id="names the gate"),
        pytest.param(
            ["b", "a"],
            PodRejection("waiting for scheduling gates: [b a]"),
            id="names all gates in order",
        ),
    ],
)
def test_may_enqueue(gates: list[str], rejection: PodRejection | None) -> None:
    assert SchedulingGates().may_enqueue(make_pod(gates=gates)) == rejection
