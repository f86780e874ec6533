"""What deploy/ holds, on the real API server: it takes every manifest, and with the processes of
the manifests' containers started as these say, the Deployments of examples/11-deployments are
placed."""

import datetime
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml
from tests.real.chart import MONITORING, ROOT, templated
from tests.real.conftest import PATIENCE_SECONDS, SYSTEM, Placed, Run
from tests.real.deployed import Json, forbidden_in, template_of

from realparts.certificates import Authority
from realparts.control_plane import ControlPlane
from realparts.process import wait_until

DEPLOY = ROOT / "deploy"
MODES = ("scheduler", "extender", "extender-standalone")
THINGS_TO_PLACE = ROOT / "examples" / "11-deployments"
SECRET = "lowtide-extender-tls"
SERVICE_HOST = "lowtide-extender.kube-system.svc"
pytestmark = pytest.mark.real("control_plane", "kube_scheduler")


# That the API server takes it.


@pytest.mark.parametrize(
    "file",
    [
        *(f"deploy/rendered/{mode}.yaml" for mode in MODES),
        "deploy/static-pod/kube-scheduler.yaml",
        "deploy/static-pod/monitoring/service.yaml",
        "examples/11-deployments/second-scheduler.yaml",
        "examples/11-deployments/extender.yaml",
        "examples/11-deployments/default-scheduler.yaml",
        "examples/12-opt-in-by-namespace/policy.yaml",
    ],
)
def test_the_api_server_would_create_all_of(empty_plane: ControlPlane, file: str) -> None:
    assert_would_be_created(empty_plane, (ROOT / file).read_text())


@pytest.mark.real("prometheus-operator-crds", "helm")
def test_the_operator_would_take_what_is_for_it(
    empty_plane: ControlPlane, parts: Callable[..., dict[str, Path]]
) -> None:
    crds, helm = parts("prometheus-operator-crds", "helm").values()
    files = [
        f"--filename={crds / f'monitoring.coreos.com_{plural}.yaml'}"
        for plural in ("servicemonitors", "prometheusrules")
    ]
    empty_plane.kubectl("create", *files)
    empty_plane.kubectl("wait", "--for=condition=Established", *files)
    try:
        for file in ("monitoring.yaml", "static-pod-monitoring.yaml"):
            assert_would_be_created(empty_plane, (DEPLOY / "rendered" / file).read_text())
        labelled = "monitoring.labels.release=kube-prometheus-stack"
        assert_would_be_created(empty_plane, templated(helm, "lowtide", *MONITORING, labelled))
    finally:
        empty_plane.kubectl("delete", *files)


@pytest.mark.real("helm")
@pytest.mark.parametrize("mode", MODES)
def test_the_chart_has_the_content_of_the_rendered_file(
    empty_plane: ControlPlane, parts: Callable[..., dict[str, Path]], mode: str
) -> None:
    text = templated(parts("helm")["helm"], "lowtide", f"mode={mode}")
    assert_would_be_created(empty_plane, text)
    rendered = (DEPLOY / "rendered" / f"{mode}.yaml").read_text()
    assert comparable(text) == comparable(rendered)


def assert_would_be_created(empty_plane: ControlPlane, text: str) -> None:
    flags = ["--dry-run=server", "--validate=strict", "--output=name", "--filename=-"]
    created = empty_plane.kubectl("create", *flags, input=text).split()
    documents = [each for each in yaml.safe_load_all(text) if each]
    assert [name.rpartition("/")[2] for name in created] == [
        each["metadata"]["name"] for each in documents
    ]


def comparable(manifest: str) -> dict[tuple[str, str], Json]:
    """By kind and name; without what kustomize or Helm does to replace pods of an old ConfigMap."""
    text = re.sub(r"\b(name: lowtide-[a-z]+-config)-[a-z0-9]{10}\b", r"\1", manifest)
    found = {}
    for each in filter(None, yaml.safe_load_all(text)):
        if each["kind"] == "ConfigMap":
            each["data"] = {key: yaml.safe_load(data) for key, data in each["data"].items()}
        if each["kind"] == "Deployment":
            pod = each["spec"]["template"]
            pod["metadata"].pop("annotations", None)
            for container in pod["spec"]["containers"]:
                container.pop("imagePullPolicy", None)
        found[each["kind"], each["metadata"]["name"]] = each
    return found


# That it works.


@pytest.mark.versions
def test_a_second_scheduler_places_pods(
    empty_plane: ControlPlane,
    apply: Callable[[Path], None],
    run_pod: Run,
    placed: Placed,
) -> None:
    apply(DEPLOY / "rendered" / "scheduler.yaml")
    scheduler = run_pod(template_of(empty_plane, SYSTEM, "lowtide-scheduler"))
    wait_until(scheduler.is_ready, timeout_seconds=PATIENCE_SECONDS, what="it is ready")
    assert scheduler.passes("livenessProbe")
    assert placed(THINGS_TO_PLACE / "second-scheduler.yaml", 5) == {"lowtide"}
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/lowtide"
    assert empty_plane.request("GET", lease)["spec"]["holderIdentity"]
    assert forbidden_in(scheduler.logs()) == []


@pytest.mark.versions
def test_an_extender_beside_a_kube_scheduler_is_asked(
    empty_plane: ControlPlane,
    apply: Callable[[Path], None],
    run_pod: Run,
    placed: Placed,
) -> None:
    apply(DEPLOY / "rendered" / "extender.yaml")
    both = run_pod(template_of(empty_plane, SYSTEM, "lowtide-extender"))
    wait_until(both.is_ready, timeout_seconds=PATIENCE_SECONDS, what="both are ready")
    assert placed(THINGS_TO_PLACE / "extender.yaml", 1) == {"lowtide-extender"}
    assert answers(both.metrics(8001)) == 1
    assert forbidden_in(both.logs()) == []


@pytest.mark.versions
def test_a_kube_scheduler_asks_the_extender_behind_a_service(
    empty_plane: ControlPlane,
    apply: Callable[[Path], None],
    run_pod: Run,
    placed: Placed,
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path, now=datetime.datetime.now(datetime.UTC))
    authority.write_own_certificate()
    pair = authority.sign_server("extender", [SERVICE_HOST], ["127.0.0.1"])
    files = [f"--cert={pair.certificate_file}", f"--key={pair.key_file}"]
    empty_plane.kubectl("create", "secret", "tls", f"--namespace={SYSTEM}", SECRET, *files)
    apply(DEPLOY / "rendered" / "extender-standalone.yaml")
    # A kube-scheduler of the user's, with the account of the one in deploy/extender.
    apply(DEPLOY / "extender" / "kube-scheduler-rbac.yaml")
    extender = run_pod(template_of(empty_plane, SYSTEM, "lowtide-extender"))
    wait_until(extender.is_ready, timeout_seconds=PATIENCE_SECONDS, what="the extender is ready")
    config = (DEPLOY / "extender-standalone" / "kube-scheduler-config.yaml").read_text()
    run_pod(
        {
            "serviceAccountName": "lowtide-extender",
            "containers": [
                {
                    "interval": "30s",
                    "name": "kube-scheduler",
                    "command": ["kube-scheduler", "--config=/etc/kubernetes/config.yaml"],
                    "volumeMounts": [{"name": "host", "mountPath": "/etc/kubernetes"}],
                }
            ],
            "volumes": [{"name": "host", "hostPath": {"path": "/etc/kubernetes"}}],
        },
        host_files={
            "/etc/kubernetes/config.yaml": config,
            "/etc/kubernetes/lowtide/ca.crt": authority.ca_file.read_text(),
        },
        hosts=[SERVICE_HOST],
    )
    try:
        assert placed(THINGS_TO_PLACE / "extender.yaml", 1) == {"lowtide-extender"}
        assert answers(extender.metrics(8001)) == 1
        assert forbidden_in(extender.logs()) == []
    finally:
        empty_plane.kubectl("delete", "secret", f"--namespace={SYSTEM}", SECRET)


@pytest.mark.versions
def test_it_places_pods_in_place_of_kube_scheduler(
    empty_plane: ControlPlane, run_pod: Run, placed: Placed
) -> None:
    folder = DEPLOY / "static-pod"
    pod = yaml.safe_load((folder / "kube-scheduler.yaml").read_text())
    kubeconfig = empty_plane.kubeconfig("system:kube-scheduler").read_text()
    config = (folder / "scheduler-config.yaml").read_text()
    scheduler = run_pod(
        pod["spec"],
        host_files={
            "/etc/kubernetes/scheduler.conf": kubeconfig,
            "/etc/kubernetes/lowtide/scheduler-config.yaml": config,
        },
    )
    wait_until(scheduler.is_ready, timeout_seconds=PATIENCE_SECONDS, what="it is ready")
    assert scheduler.passes("startupProbe")
    assert placed(THINGS_TO_PLACE / "default-scheduler.yaml", 1) == {"default-scheduler"}


def answers(metrics: str) -> float:
    found = re.findall(
        r'^lowtide_extender_requests_total\{.*code="200".*verb="filter".*\} (\S+)$',
        metrics,
        re.MULTILINE,
    )
    return sum(map(float, found))


# What a namespace opts in by.


def has_account(plane: ControlPlane, namespace: str) -> bool:
    return bool(plane.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts")["items"])


def test_pods_of_a_namespace_that_opts_in_are_given_to_lowtide(
    empty_plane: ControlPlane, apply: Callable[[Path], None]
) -> None:
    apply(ROOT / "examples" / "12-opt-in-by-namespace" / "policy.yaml")
    for name, labels in (("shop", {"lowtide.dev/scheduler": "enabled"}), ("other", {})):
        namespace = {"metadata": {"name": name, "labels": labels}}
        empty_plane.request("POST", "/api/v1/namespaces", namespace)
        wait_until(
            partial(has_account, empty_plane, name), timeout_seconds=20, what=f"{name} has one"
        )

    def scheduler_of_new_pod(namespace: str, **spec: str) -> str:
        body = {
            "metadata": {"generateName": "test-"},
            "spec": {"containers": [{"name": "main", "image": "example/none"}], **spec},
        }
        created = empty_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)
        return str(created["spec"]["schedulerName"])

    wait_until(
        lambda: scheduler_of_new_pod("shop") == "lowtide",
        timeout_seconds=20,
        what="the policy is in force",
        every_seconds=0.5,
    )
    assert scheduler_of_new_pod("shop", schedulerName="mine") == "mine"
    assert scheduler_of_new_pod("other") == "default-scheduler"
    for name in ("shop", "other"):
        empty_plane.empty_namespace(name)
        empty_plane.request("DELETE", f"/api/v1/namespaces/{name}")
