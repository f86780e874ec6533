"""`lowtide doctor`: its options, its two outputs, and its exit status, without any server."""

import json
from pathlib import Path

import pytest
import yaml
from aiohttp.test_utils import unused_port
from tests.cli.conftest import Run

from lowtide.app.doctor import Report
from lowtide.cli.doctor import verdict_of
from lowtide.doctor.findings import Code, Finding, Severity


def kubeconfig_of(server: str) -> str:
    document = {
        "clusters": [{"name": "a", "cluster": {"server": server}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    Path("kubeconfig").write_text(yaml.safe_dump(document))
    return "--kubeconfig=kubeconfig"


def test_json_tells_what_the_table_tells(run: Run) -> None:
    server = f"http://127.0.0.1:{unused_port()}"
    asked = f"http://127.0.0.1:{unused_port()}"
    options = [kubeconfig_of(server), f"--prometheus={asked}"]
    told = run("doctor", *options, "--output=json")
    document = json.loads(told.stdout)
    assert told.exit_code == 1
    assert (document["ok"], document["server"]) == (False, server)
    assert document["requests"] == [
        {
            "schedulerNames": ["lowtide"],
            "prometheus": asked,
            "windowSeconds": None,
            "scrapeIntervalSeconds": None,
            "nodes": [],
        }
    ]
    assert document["findings"] == [
        {
            "severity": "fault",
            "code": "nodes-not-listed",
            "text": f"the nodes cannot be listed: No answer from {server} to GET /api/v1/nodes: "
            "Connection refused",
            "nodes": [],
            "fix": "kubectl config view --minify && kubectl get nodes",
            "unchecked": [],
        },
        {
            "severity": "fault",
            "code": "unreachable",
            "text": f"Prometheus at {asked} is unreachable: Connection refused",
            "nodes": [],
            "fix": "kubectl get services --all-namespaces | grep -i -E 'NAME|prometheus|9090'",
            "unchecked": [],
        },
    ]
    table = run("doctor", *options)
    assert table.exit_code == 1
    for finding in document["findings"]:
        assert f"FAULT {finding['code']}: {finding['text']}\n    {finding['fix']}\n" in table.stdout
    lines = table.stdout.splitlines()
    assert (lines[0], lines[-1]) == (
        f"Cluster {server}: not reached",
        "2 faults to fix",
    )


def test_master_overrides_the_address_of_the_kubeconfig(run: Run) -> None:
    server = f"http://127.0.0.1:{unused_port()}"
    options = (kubeconfig_of("http://127.0.0.1:1"), f"--master={server}", "--output=json")
    assert json.loads(run("doctor", *options).stdout)["server"] == server


REJECTED = Finding(
    code=Code.QUERY_REJECTED,
    text="it is rejected",
    fix="",
    severity=Severity.NOTE,
    unchecked=("jobs", "link speeds"),
)
NOTE = Finding(code=Code.NO_POD_TRAFFIC, text="", fix="", severity=Severity.NOTE)


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ((), "All is well"),
        ((NOTE,), "All is well; 1 note"),
        ((REJECTED,), "No fault found; 2 checks could not be made: jobs, link speeds"),
        (
            (Finding(code=Code.NO_NODES, text="", fix=""), NOTE, REJECTED),
            "1 fault to fix; 1 note; 2 checks could not be made: jobs, link speeds",
        ),
    ],
    ids=["nothing found", "a note", "checks that could not be made", "all of these"],
)
def test_what_could_not_be_checked_is_not_called_well(
    findings: tuple[Finding, ...], verdict: str
) -> None:
    report = Report(server="", node_count=1, requests=(), findings=findings)
    assert verdict_of(report) == verdict


def test_without_prometheus_a_profile_to_paste_is_printed(run: Run) -> None:
    told = run("doctor", kubeconfig_of("http://127.0.0.1:1"), "--output=json")
    (finding,) = [
        each for each in json.loads(told.stdout)["findings"] if each["code"] == "no-traffic-plugin"
    ]
    assert yaml.safe_load(finding["fix"])["profiles"][0]["schedulerName"] == "lowtide"


def test_a_configuration_that_is_wrong_is_told_in_one_sentence(run: Run) -> None:
    told = run("doctor", "--config=missing.yaml")
    assert (told.exit_code, told.stdout, told.stderr) == (
        1,
        "",
        "lowtide: missing.yaml: cannot be read: No such file or directory\n",
    )


def test_without_a_kubeconfig_prometheus_is_asked_all_the_same(run: Run) -> None:
    asked = f"http://127.0.0.1:{unused_port()}"
    options = ["--kubeconfig=missing", f"--prometheus={asked}"]
    told = run("doctor", *options, "--output=json")
    document = json.loads(told.stdout)
    assert (told.exit_code, document["ok"], document["server"]) == (1, False, "")
    assert [each["prometheus"] for each in document["requests"]] == [asked]
    assert [(each["code"], each["text"]) for each in document["findings"]] == [
        (
            "nodes-not-listed",
            "the nodes cannot be listed: missing cannot be read: No such file or directory",
        ),
        ("unreachable", f"Prometheus at {asked} is unreachable: Connection refused"),
    ]
    lines = run("doctor", *options).stdout.splitlines()
    assert (lines[0], lines[-1]) == ("No cluster", "2 faults to fix")


def test_without_a_kubeconfig_its_service_proxy_cannot_be_asked(run: Run) -> None:
    service = "kube-service://monitoring/prometheus:9090"
    told = run("doctor", "--kubeconfig=missing", f"--prometheus={service}", "--output=json")
    assert [each["text"] for each in json.loads(told.stdout)["findings"]] == [
        "the nodes cannot be listed: missing cannot be read: No such file or directory",
        f"Prometheus at {service} cannot be asked without the API server; here it should be an "
        "http:// address",
    ]
