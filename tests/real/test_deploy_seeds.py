"""The manifests of the articles that the project started from, with nothing but image and command
changed: the processes run as they say, and the articles' Deployments are placed."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.real.conftest import PATIENCE_SECONDS, SYSTEM, Placed, Run
from tests.real.deployed import Deployed, forbidden_in, template_of
from tests.seed_configurations import V1BETA1_BY_KUBERNETES_NODE

from realparts.control_plane import ControlPlane
from realparts.process import wait_until

MANIFESTS = Path(__file__).resolve().parent / "seed_manifests"
EXAMPLES = MANIFESTS.parent.parent.parent / "examples"
# They are watched for what few pods need; who lacks them is told so once, and places all others.
SELDOM_NEEDED = {"deviceclasses", "storageclasses", "volumeattachments"}
NOT_IN_THE_ARTICLES_ROLE = {"list deviceclasses", "list volumeattachments"}

pytestmark = [pytest.mark.real("control_plane"), pytest.mark.versions]


def warned(deployed: Deployed) -> Counter[str]:
    """How often each missing right was told."""
    warnings = [line for line in deployed.logs().splitlines() if line.startswith("W")]
    return Counter(forbidden_in("\n".join(warnings)))


def not_granted(plane: ControlPlane, *roles: str) -> Counter[str]:
    """By the API server's own roles, which differ from version to version."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    granted = {
        resource
        for role in roles
        for rule in plane.request("GET", f"{path}/{role}")["rules"]
        if "list" in rule["verbs"]
        for resource in rule["resources"]
    }
    return Counter(f"list {resource}" for resource in SELDOM_NEEDED - granted)


def example_for(scheduler_name: str, tmp_path: Path) -> Path:
    """The Deployment of five pods, for that scheduler."""
    text = (EXAMPLES / "11-deployments" / "second-scheduler.yaml").read_text()
    file = tmp_path / "deployment.yaml"
    file.write_text(text.replace("schedulerName: lowtide", f"schedulerName: {scheduler_name}"))
    return file


def test_a_scheduler_with_kube_schedulers_role(
    empty_plane: ControlPlane,
    apply: Callable[[Path], None],
    run_pod: Run,
    placed: Placed,
    tmp_path: Path,
) -> None:
    apply(MANIFESTS / "second-scheduler.yaml")
    template = template_of(empty_plane, SYSTEM, "networktraffic-scheduler")
    scheduler = run_pod(template, hosts=["prometheus.kube-system"])
    deployment = example_for("networktraffic-scheduler", tmp_path)
    assert placed(deployment, 5) == {"networktraffic-scheduler"}
    assert warned(scheduler) == not_granted(empty_plane, "system:kube-scheduler")


def test_a_scheduler_with_a_role_of_its_own(
    empty_plane: ControlPlane,
    apply: Callable[[Path], None],
    run_pod: Run,
    placed: Placed,
    tmp_path: Path,
) -> None:
    apply(MANIFESTS / "own-role.yaml")
    scheduler = run_pod(template_of(empty_plane, SYSTEM, "sample-scheduler"))
    assert placed(example_for("sample-scheduler", tmp_path), 5) == {"sample-scheduler"}
    assert warned(scheduler) == Counter(NOT_IN_THE_ARTICLES_ROLE)


def test_a_static_pod_in_place_of_kube_scheduler(
    empty_plane: ControlPlane, run_pod: Run, placed: Placed
) -> None:
    pod = yaml.safe_load((MANIFESTS / "static-pod.yaml").read_text())
    kubeconfig = empty_plane.kubeconfig("system:kube-scheduler").read_text()
    scheduler = run_pod(
        pod["spec"],
        host_files={
            "/etc/kubernetes/scheduler.conf": kubeconfig,
            "/etc/kubernetes/networktraffic-config.yaml": V1BETA1_BY_KUBERNETES_NODE,
        },
        hosts=["prometheus-1616380099-server.monitor"],
    )
    for probe in ("startupProbe", "livenessProbe"):
        wait_until(
            lambda probe=probe: scheduler.passes(probe),  # type: ignore[misc]
            timeout_seconds=PATIENCE_SECONDS,
            what=f"{probe} passes",
        )
    assert placed(EXAMPLES / "11-deployments" / "default-scheduler.yaml", 1) == {
        "default-scheduler"
    }
    roles = ("system:kube-scheduler", "system:volume-scheduler")
    assert Counter(forbidden_in(scheduler.logs())) == not_granted(empty_plane, *roles)
    assert len(re.findall('flag="--port"', scheduler.logs())) == 1
