"""What deploy/ holds, on the real API server: it takes every manifest, and with the processes of
the manifests' containers started as these say, the Deployments of examples/11-deployments are
placed."""

import datetime
import json
import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml
from tests.real.conftest import PATIENCE_SECONDS, SYSTEM, Placed, Run
from tests.real.deployed import Json, forbidden_in, template_of

from realparts.certificates import Authority
from realparts.control_plane import ControlPlane
from realparts.process import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "lowtide"
MODES = ("scheduler", "extender", "extender-standalone")
THINGS_TO_PLACE = ROOT / "examples" / "11-deployments"
IN_THE_CHART = ("serviceMonitor", "prometheusRule", "dashboard")
SECRET = "lowtide-extender-tls"
SERVICE_HOST = "lowtide-extender.kube-system.svc"
pytestmark = pytest.mark.real("control_plane", "kube_scheduler")


# That the API server takes it.


@pytest.mark.parametrize(
    "file",
    [
        *(f"deploy/rendered/{mode}.yaml" for mode in MODES),
        "deploy/static-pod/kube-scheduler.yaml",
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
        assert_would_be_created(empty_plane, (DEPLOY / "rendered" / "monitoring.yaml").read_text())
        wanted = [f"monitoring.{each}=true" for each in IN_THE_CHART]
        labelled = "monitoring.labels.release=kube-prometheus-stack"
        assert_would_be_created(empty_plane, templated(helm, "lowtide", *wanted, labelled))
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


@pytest.mark.real("helm")
@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        pytest.param("mode=shadow", "/mode", id="an unknown mode"),
        pytest.param("replica=1", "replica", id="an unknown value"),
        pytest.param("prometheusAddress=prometheus", "/prometheusAddress", id="an address of none"),
    ],
)
def test_the_chart_refuses(
    parts: Callable[..., dict[str, Path]], setting: str, sentence: str
) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        templated(parts("helm")["helm"], "lowtide", setting)
    assert sentence in refused.value.stderr


@pytest.mark.real("helm")
def test_a_release_of_another_name_takes_nothing_from_the_first(
    parts: Callable[..., dict[str, Path]],
) -> None:
    settings = [f"monitoring.{each}=true" for each in IN_THE_CHART]
    first, second = (
        set(comparable(templated(parts("helm")["helm"], name, *settings)))
        for name in ("lowtide", "other")
    )
    assert first & second == set()


def assert_would_be_created(empty_plane: ControlPlane, text: str) -> None:
    flags = ["--dry-run=server", "--validate=strict", "--output=name", "--filename=-"]
    created = empty_plane.kubectl("create", *flags, input=text).split()
    documents = [each for each in yaml.safe_load_all(text) if each]
    assert [name.rpartition("/")[2] for name in created] == [
        each["metadata"]["name"] for each in documents
    ]


def templated(helm: Path, release: str, *settings: str) -> str:
    flags = [word for setting in settings for word in ("--set", setting)]
    return subprocess.run(
        [helm, "template", release, CHART, "--namespace=kube-system", *flags],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


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
    apply(DEPLOY / "extender" / "kube-scheduler-rights.yaml")
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


# What is for Prometheus and Grafana.


@pytest.mark.real("promtool")
def test_promtool_takes_the_alerts_and_the_dashboards_queries(
    parts: Callable[..., dict[str, Path]], tmp_path: Path
) -> None:
    groups = alert_groups()
    for rule in groups[0]["rules"]:
        del rule["annotations"]  # they would have to be repeated in the tests
    dashboard = json.loads((DEPLOY / "monitoring" / "lowtide.json").read_text())
    queries = [each["expr"] for panel in dashboard["panels"] for each in panel["targets"]]
    asked = [
        {"record": f"panel:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries)
    ]
    whole = {"groups": [*groups, {"name": "dashboard", "rules": asked}]}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(whole))
    promtool = parts("promtool")["promtool"]
    subprocess.run([promtool, "check", "rules", tmp_path / "rules.yaml"], check=True)
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(ALERT_TESTS))
    told = subprocess.run(
        [promtool, "test", "rules", "tests.yaml"], cwd=tmp_path, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stdout + told.stderr


def test_every_alert_has_its_section_in_the_docs() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    headings = {line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")}
    alerts = {rule["alert"]: rule["annotations"]["runbook"] for rule in alert_groups()[0]["rules"]}
    assert alerts == {name: f"docs/troubleshooting.md#{name.lower()}" for name in alerts}
    assert alerts.keys() <= headings


def alert_groups() -> list[Json]:
    rule = yaml.safe_load((DEPLOY / "monitoring" / "prometheus-rule.yaml").read_text())
    groups: list[Json] = rule["spec"]["groups"]
    return groups


def series(name: str, values: str) -> Json:
    return {"series": name, "values": values}


def fires(alert: str, at: str, *labels: Json) -> Json:
    return {
        "alertname": alert,
        "eval_time": at,
        "exp_alerts": [{"exp_labels": each} for each in labels],
    }


POD = 'job="lowtide", namespace="kube-system", pod="lowtide-0"'
OF_POD = {"namespace": "kube-system", "pod": "lowtide-0", "severity": "warning"}
ALERT_TESTS: Json = {
    "rule_files": ["rules.yaml"],
    "evaluation_interval": "30s",
    "tests": [
        {
            "interval": "30s",
            "name": "all is well",
            "input_series": [
                series(f"up{{{POD}}}", "1x100"),
                series(f"lowtide_leader{{{POD}}}", "1x100"),
                series(f"lowtide_readings_braked{{{POD}}}", "0x100"),
                series(f'lowtide_reading_nodes{{{POD}, state="fresh"}}', "99x100"),
                series(f'lowtide_reading_nodes{{{POD}, state="stale"}}', "1x100"),
            ],
            "alert_rule_test": [
                fires(alert, "30m")
                for alert in (
                    "LowtideDown",
                    "LowtideNoLeader",
                    "LowtidePodsPending",
                    "LowtideReadingsNotFresh",
                    "LowtideBrakeOn",
                )
            ],
        },
        {
            "interval": "30s",
            "name": "nobody answers, nobody leads, nothing is measured",
            "input_series": [
                series(f"up{{{POD}}}", "0x100"),
                series(f"lowtide_leader{{{POD}}}", "0x100"),
                series(f"lowtide_readings_braked{{{POD}}}", "1x100"),
                series(f'lowtide_reading_nodes{{{POD}, state="fresh"}}', "80x100"),
                series(f'lowtide_reading_nodes{{{POD}, state="stale"}}', "20x100"),
            ],
            "alert_rule_test": [
                fires("LowtideDown", "3m", {"severity": "critical"}),
                fires("LowtideNoLeader", "3m", {"severity": "critical"}),
                fires("LowtideReadingsNotFresh", "11m", OF_POD),
                fires("LowtideBrakeOn", "6m", OF_POD),
            ],
        },
        {
            "interval": "30s",
            "name": "two pods wait, and one of another scheduler; one was placed",
            "input_series": [
                series(f'{metric}{{namespace="n", pod="{pod}"{more}}}', values)
                for pod, scheduler, is_placed in (
                    ("a", "lowtide", 0),
                    ("b", "lowtide", 0),
                    ("c", "default-scheduler", 0),
                    ("d", "lowtide", 1),
                )
                for metric, more, values in (
                    ("kube_pod_scheduler", f', name="{scheduler}"', "1x100"),
                    ("kube_pod_created", "", "0x100"),
                    ("kube_pod_status_phase", ', phase="Pending"', "1x100"),
                    ("kube_pod_status_scheduled", ', condition="true"', f"{is_placed}x100"),
                )
            ],
            "alert_rule_test": [
                fires("LowtidePodsPending", "5m"),
                fires("LowtidePodsPending", "7m", {"name": "lowtide", "severity": "warning"}),
            ],
        },
    ],
}
