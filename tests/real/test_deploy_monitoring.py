"""What deploy/monitoring holds for Prometheus and Grafana, asked of promtool: alerts fire when they
should and at no other time."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.real.chart import ROOT
from tests.real.deployed import Json

DEPLOY = ROOT / "deploy"


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
