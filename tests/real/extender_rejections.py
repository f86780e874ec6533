"""What Events say of a pod that an extender, or its absence, keeps from being placed.

Used by the tests of the extender; kube-scheduler tells it as often as it tries."""

from tests.integration.conftest import Cluster

from realparts.process import wait_until

PATIENCE_SECONDS = 30.0


def rejections_of(cluster: Cluster, pod_name: str) -> set[str]:
    """The messages of its FailedScheduling Events, once there is one."""
    wait_until(
        lambda: bool(cluster.events(pod_name, "FailedScheduling")),
        timeout_seconds=PATIENCE_SECONDS,
        what=f"pod {pod_name} is rejected",
    )
    return {event["note"] for event in cluster.events(pod_name, "FailedScheduling")}
