"""The same workload given to kube-scheduler and to Lowtide, each on a fresh cluster: the same pods
are placed and rejected, with the same words, and every constraint holds."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.real.side_by_side import FORCED, SideBySide

from realparts.control_plane import ControlPlane
from realparts.process import Process

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [{"schedulerName": "default-scheduler"}],
}


@pytest.mark.long
@pytest.mark.real("kube_scheduler")
def test_the_same_workload_ends_the_same(
    new_control_plane: Callable[..., ControlPlane], lowtide_scheduler: Callable[..., Process]
) -> None:
    plane = new_control_plane()
    of_kube_scheduler = SideBySide(plane, lambda: plane.kube_scheduler(str(CONFIG))).run()
    plane.stop()
    other_plane = new_control_plane()
    user = other_plane.kubeconfig("system:kube-scheduler")
    of_lowtide = SideBySide(other_plane, lambda: lowtide_scheduler(CONFIG, user)).run()
    assert of_lowtide == of_kube_scheduler
    assert holds(of_lowtide)


def holds(outcome: dict[str, Any]) -> bool:
    """Every constraint, whoever decided."""
    return (
        outcome["forced"] == FORCED
        and outcome["zones"] == [2, 2, 2]
        and outcome["apart"] == 5
        and outcome["gone"] == ["filler-a1", "filler-b2"]
        and outcome["static"] == ("Bound", "static-volume")
        and outcome["dynamic"] == ("Bound", "dynamic-volume")
    )
