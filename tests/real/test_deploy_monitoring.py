"""What deploy/ holds for Prometheus and Grafana, asked of promtool: alerts fire when they should
and at no other time."""

import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import yaml
from tests.real.chart import MONITORING, ROOT, templated
from tests.real.deployed import Json

DEPLOY = ROOT / "deploy"
RENDERED = DEPLOY / "rendered"
ALERTS = (
    "LowtideDown",
    "LowtideNoLeader",
    "LowtidePodsPending",
    "LowtideReadingsNotFresh",
    "LowtideBrakeOn",
)


@pytest.fixture
def promtool(parts: Callable[..., dict[str, Path]]) -> Path:
    return parts("promtool")["promtool"]


@pytest.mark.real("promtool")
def test_the_alerts_of_every_installation_fire_when_they_should(
    promtool: Path, tmp_path: Path
) -> None:
    groups = alert_groups((RENDERED / "monitoring.yaml").read_text())
    assert_alerts(promtool, tmp_path, groups, ALERT_TESTS)


@pytest.mark.real("promtool")
def test_in_place_of_kube_scheduler_its_pods_are_looked_after(
    promtool: Path, tmp_path: Path
) -> None:
    groups = alert_groups((RENDERED / "static-pod-monitoring.yaml").read_text())
    pending = case(
        "pods wait that name no scheduler, ours, or somebody else's",
        [
            *waiting("a", "default-scheduler"),
            *waiting("b", "lowtide"),
            *waiting("c", "volcano"),
        ],
        fires("LowtidePodsPending", "6m", of("default-scheduler"), of("lowtide")),
    )
    assert_alerts(promtool, tmp_path, groups, [*ALERT_TESTS, pending])


@pytest.mark.real("promtool", "helm")
def test_the_alerts_of_a_release_are_about_that_release(
    promtool: Path, tmp_path: Path, parts: Callable[..., dict[str, Path]]
) -> None:
    helm = parts("helm")["helm"]
    named = "schedulerName=team.a"
    groups = alert_groups(templated(helm, "other", *MONITORING, named))
    own = installation("other-scheduler")
    tests = [
        case(
            "another installation is well, and this one is not there",
            [series("up", SCHEDULER, "1x100"), series("lowtide_leader", SCHEDULER, "1x100")],
            fires("LowtideDown", "3m", own | {"job": "lowtide", "severity": "critical"}),
        ),
        case(
            "another installation has stopped, and this one is well",
            [
                series("up", SCHEDULER, "0x100"),
                series("lowtide_leader", SCHEDULER, "0x100"),
                series("lowtide_readings_ignored", SCHEDULER, "1x100"),
                series("up", labels_of("other-scheduler"), "1x100"),
                series("lowtide_leader", labels_of("other-scheduler"), "1x100"),
                *waiting("a", "lowtide"),
                *waiting("b", "team-a"),
            ],
            *(fires(alert, "30m") for alert in ALERTS),
        ),
        case(
            "a pod of its own waits",
            waiting("a", "team.a"),
            fires("LowtidePodsPending", "6m", of("team.a")),
        ),
    ]
    assert_alerts(promtool, tmp_path, groups, tests)


@pytest.mark.real("helm")
@pytest.mark.parametrize(
    ("settings", "names"),
    [
        pytest.param([], "lowtide", id="by default"),
        pytest.param(["mode=extender"], "lowtide-extender", id="of the kube-scheduler beside it"),
        pytest.param(
            ["config.profiles[0].schedulerName=one", "config.profiles[1].schedulerName=two"],
            "one|two",
            id="of a whole configuration",
        ),
        pytest.param(
            ["config.profiles[0].percentageOfNodesToScore=5"],
            "default-scheduler",
            id="of a profile without a name",
        ),
        pytest.param(
            ["mode=extender", "kubeScheduler.config.profiles[0].schedulerName=mine"],
            "mine",
            id="of kube-scheduler's whole configuration",
        ),
    ],
)
def test_pods_are_looked_after_by_the_names_of_profiles(
    parts: Callable[..., dict[str, Path]], settings: list[str], names: str
) -> None:
    groups = alert_groups(templated(parts("helm")["helm"], "lowtide", *MONITORING, *settings))
    pending = next(rule for rule in groups[0]["rules"] if rule["alert"] == "LowtidePodsPending")
    assert f'kube_pod_scheduler{{name=~"{names}"}}' in pending["expr"]


@pytest.mark.real("promtool")
def test_promtool_takes_the_dashboards_queries(promtool: Path, tmp_path: Path) -> None:
    dashboard = json.loads((DEPLOY / "monitoring" / "lowtide.json").read_text())
    queries = [each["expr"] for panel in dashboard["panels"] for each in panel["targets"]]
    asked = [
        {"record": f"panel:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries)
    ]
    check_rules(promtool, tmp_path, [{"name": "dashboard", "rules": asked}])


def test_every_alert_has_its_section_in_the_docs() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    headings = {line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")}
    groups = alert_groups((RENDERED / "monitoring.yaml").read_text())
    runbooks = {rule["alert"]: rule["annotations"]["runbook"] for rule in groups[0]["rules"]}
    assert runbooks == {name: f"docs/troubleshooting.md#{name.lower()}" for name in ALERTS}
    assert runbooks.keys() <= headings


def assert_alerts(promtool: Path, folder: Path, groups: list[Json], tests: Iterable[Json]) -> None:
    for rule in groups[0]["rules"]:
        del rule["annotations"]  # they would have to be repeated in the tests
    check_rules(promtool, folder, groups)
    whole = {"rule_files": ["rules.yaml"], "evaluation_interval": "30s", "tests": list(tests)}
    (folder / "tests.yaml").write_text(yaml.safe_dump(whole))
    told = subprocess.run(
        [promtool, "test", "rules", "tests.yaml"], cwd=folder, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stdout + told.stderr


def check_rules(promtool: Path, folder: Path, groups: list[Json]) -> None:
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": groups}))
    subprocess.run([promtool, "check", "rules", file], check=True)


def alert_groups(manifest: str) -> list[Json]:
    rules = [
        each for each in yaml.safe_load_all(manifest) if each and each["kind"] == "PrometheusRule"
    ]
    assert len(rules) == 1
    groups: list[Json] = rules[0]["spec"]["groups"]
    return groups


# What Prometheus has, and what is to fire.


def case(name: str, given: Iterable[Json], *expected: Json) -> Json:
    return {
        "interval": "30s",
        "name": name,
        "input_series": list(given),
        "alert_rule_test": list(expected),
    }


def series(name: str, labels: str, values: str) -> Json:
    return {"series": f"{name}{{{labels}}}", "values": values}


def fires(alert: str, at: str, *labels: Json) -> Json:
    return {
        "alertname": alert,
        "eval_time": at,
        "exp_alerts": [{"exp_labels": each} for each in labels],
    }


def labels_of(service: str) -> str:
    """Of what is scraped of a pod of that installation."""
    return f'job="lowtide", namespace="kube-system", service="{service}", pod="{service}-0"'


def installation(service: str) -> Json:
    return {"namespace": "kube-system", "service": service}


def waiting(pod: str, scheduler: str, *, gated: str = "0x100", is_placed: int = 0) -> list[Json]:
    """What kube-state-metrics tells of a pod that was created at the start."""
    labels = f'namespace="n", pod="{pod}"'
    return [
        series("kube_pod_scheduler", f'{labels}, name="{scheduler}"', "1x100"),
        series("kube_pod_created", labels, "0x100"),
        series("kube_pod_status_phase", f'{labels}, phase="Pending"', "1x100"),
        series("kube_pod_status_scheduled", f'{labels}, condition="true"', f"{is_placed}x100"),
        series("kube_pod_status_reason", f'{labels}, reason="SchedulingGated"', gated),
    ]


def of(scheduler: str) -> Json:
    return {"name": scheduler, "severity": "warning"}


SCHEDULER = labels_of("lowtide-scheduler")
EXTENDER = labels_of("lowtide-extender")
DEAD = installation("lowtide-scheduler") | {"severity": "critical"}
OF_POD = {"namespace": "kube-system", "pod": "lowtide-scheduler-0", "severity": "warning"}
ALERT_TESTS = [
    case(
        "all is well",
        [
            series("up", SCHEDULER, "1x100"),
            series("up", EXTENDER, "1x100"),
            series("lowtide_leader", SCHEDULER, "1x100"),
            series("lowtide_readings_ignored", SCHEDULER, "0x100"),
            series("lowtide_reading_nodes", f'{SCHEDULER}, state="fresh"', "99x100"),
            series("lowtide_reading_nodes", f'{SCHEDULER}, state="stale"', "1x100"),
        ],
        *(fires(alert, "30m") for alert in ALERTS),
    ),
    case(
        "one of two replicas answers, and leads",
        [
            series("up", SCHEDULER, "0x100"),
            series("up", SCHEDULER.replace("-0", "-1"), "1x100"),
            series("lowtide_leader", SCHEDULER, "0x100"),
            series("lowtide_leader", SCHEDULER.replace("-0", "-1"), "1x100"),
        ],
        *(fires(alert, "30m") for alert in ALERTS),
    ),
    case(
        "nobody answers, nobody leads, nothing is measured; another installation is well",
        [
            series("up", SCHEDULER, "0x100"),
            series("up", EXTENDER, "1x100"),
            series("lowtide_leader", SCHEDULER, "0x100"),
            series("lowtide_leader", labels_of("other-scheduler"), "1x100"),
            series("lowtide_readings_ignored", SCHEDULER, "1x100"),
            series("lowtide_reading_nodes", f'{SCHEDULER}, state="fresh"', "80x100"),
            series("lowtide_reading_nodes", f'{SCHEDULER}, state="stale"', "20x100"),
        ],
        fires("LowtideDown", "3m", DEAD),
        fires("LowtideNoLeader", "3m", DEAD),
        fires("LowtideReadingsNotFresh", "11m", OF_POD),
        fires("LowtideBrakeOn", "6m", OF_POD),
    ),
    case(
        "an installation has no pods any more; another is well",
        [series("up", SCHEDULER, "1x10 stale"), series("up", EXTENDER, "1x100")],
        fires("LowtideDown", "5m"),
        fires("LowtideDown", "10m", DEAD),
    ),
    case(
        "nothing is scraped at all",
        [],
        fires("LowtideDown", "1m"),
        fires("LowtideDown", "3m", {"job": "lowtide", "severity": "critical"}),
    ),
    case(
        "two pods wait, and one of another scheduler; one was placed",
        [
            *waiting("a", "lowtide"),
            *waiting("b", "lowtide"),
            *waiting("c", "volcano"),
            *waiting("d", "lowtide-2", is_placed=1),
        ],
        fires("LowtidePodsPending", "5m"),
        fires("LowtidePodsPending", "330s", of("lowtide")),
    ),
    case(
        "a pod waits at a gate, and one did for ten minutes",
        [*waiting("a", "lowtide", gated="1x100"), *waiting("b", "lowtide-2", gated="1x20 0x80")],
        fires("LowtidePodsPending", "14m"),
        fires("LowtidePodsPending", "16m", of("lowtide-2")),
    ),
]
