"""The manifests of the articles that the project started from, and kubeadm's, with nothing but
image, command and configuration changed: the processes run as they say, and Deployments are
placed."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.real.conftest import PATIENCE_SECONDS, SYSTEM, Placed, Run
from tests.real.deployed import Deployed, forbidden_in, template_of
from tests.seed_configurations import V1BETA1_BY_KUBERNETES_NODE

from realparts.control_plane import ControlPlane
from realparts.process import wait_until

MANIFESTS = Path(__file__).resolve().parent / "seed_manifests"
EXAMPLES = MANIFESTS.parent.parent.parent / "examples"
DEFAULT_DEPLOYMENT = EXAMPLES / "11-deployments" / "default-scheduler.yaml"
KUBE_SCHEDULER = "system:kube-scheduler"
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
DEFAULT_PROFILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
"""
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


def wait_for_probes(deployed: Deployed, *probes: str) -> None:
    for probe in probes:
        wait_until(
            lambda probe=probe: deployed.passes(probe),  # type: ignore[misc]
            timeout_seconds=PATIENCE_SECONDS,
            what=f"{probe} passes",
        )


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
    assert warned(scheduler) == not_granted(empty_plane, KUBE_SCHEDULER)


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
    kubeconfig = empty_plane.kubeconfig(KUBE_SCHEDULER).read_text()
    scheduler = run_pod(
        pod["spec"],
        host_files={
            "/etc/kubernetes/scheduler.conf": kubeconfig,
            "/etc/kubernetes/networktraffic-config.yaml": V1BETA1_BY_KUBERNETES_NODE,
        },
        hosts=["prometheus-1616380099-server.monitor"],
    )
    wait_for_probes(scheduler, "startupProbe", "livenessProbe")
    assert placed(DEFAULT_DEPLOYMENT, 1) == {"default-scheduler"}
    roles = (KUBE_SCHEDULER, "system:volume-scheduler")
    assert Counter(forbidden_in(scheduler.logs())) == not_granted(empty_plane, *roles)
    assert len(re.findall('flag="--port"', scheduler.logs())) == 1


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="of today"),
        pytest.param(
            {"/livez": "/healthz", "/readyz": "/healthz", "probe-port": 10259}, id="older"
        ),
    ],
)
def test_a_manifest_of_kubeadm(
    empty_plane: ControlPlane, run_pod: Run, placed: Placed, changes: dict[str, Any]
) -> None:
    """Its probes ask by HTTPS on loopback, which is all that it has the scheduler serve on, and
    its scheduler.conf has a client certificate, which is used though nothing can be written."""
    pod = yaml.safe_load((MANIFESTS / "kubeadm.yaml").read_text())
    (container,) = pod["spec"]["containers"]
    for probe in PROBES:
        asked = container[probe]["httpGet"]
        asked |= {name: changes.get(asked[name], asked[name]) for name in ("path", "port")}
    kubeconfig = empty_plane.certificate_kubeconfig(KUBE_SCHEDULER)
    scheduler = run_pod(
        pod["spec"],
        host_files={
            "/etc/kubernetes/scheduler.conf": kubeconfig.read_text(),
            "/etc/kubernetes/scheduler-config.yaml": DEFAULT_PROFILE,
        },
    )
    wait_for_probes(scheduler, *PROBES)
    assert placed(DEFAULT_DEPLOYMENT, 1) == {"default-scheduler"}
