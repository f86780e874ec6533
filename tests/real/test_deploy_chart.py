"""What Helm makes of the chart in deploy/."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from tests.real.chart import MONITORING, ROOT, templated
from tests.real.deployed import Json

from lowtide.config.load import load_config

STATIC_POD = ROOT / "deploy" / "static-pod"
CONFIG = (
    "config.apiVersion=kubescheduler.config.k8s.io/v1",
    "config.kind=KubeSchedulerConfiguration",
)
pytestmark = pytest.mark.real("helm")


@pytest.fixture
def helm(parts: Callable[..., dict[str, Path]]) -> Path:
    return parts("helm")["helm"]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        pytest.param("mode=shadow", "/mode", id="an unknown mode"),
        pytest.param("replica=1", "replica", id="an unknown value"),
        pytest.param("prometheusAddress=prometheus", "/prometheusAddress", id="an address of none"),
        pytest.param(
            "networkPolicy.ipBlocks={10.0.0.7}", "/ipBlocks/0", id="an address, not a block"
        ),
    ],
)
def test_the_chart_rejects(helm: Path, setting: str, sentence: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as rejected:
        templated(helm, "lowtide", setting)
    assert sentence in rejected.value.stderr


def test_a_release_of_another_name_takes_nothing_from_the_first(helm: Path) -> None:
    first, second = (
        {
            (each["kind"], each["metadata"]["name"])
            for each in objects(templated(helm, name, *MONITORING))
        }
        for name in ("lowtide", "other")
    )
    assert first & second == set()


def test_what_one_release_selects_is_its_own(helm: Path) -> None:
    files = ("kube-scheduler.yaml", "monitoring/service.yaml")
    static_pod = "---\n".join((STATIC_POD / file).read_text() for file in files)
    releases = {
        "lowtide": templated(helm, "lowtide", *MONITORING),
        "other": templated(helm, "other", *MONITORING),
        "static pod": static_pod,
    }
    found = [
        (selecting, kind, name, selected)
        for selecting, manifest in releases.items()
        for kind, name, target, labels in selectors(manifest)
        for selected, others in releases.items()
        if any(labels.items() <= each.items() for each in labelled(others, target))
    ]
    kinds = ("Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceMonitor")
    assert sorted(found) == [
        *(("lowtide", kind, "lowtide-scheduler", "lowtide") for kind in kinds),
        *(("other", kind, "other-scheduler", "other") for kind in kinds),
        ("static pod", "Service", "lowtide-kube-scheduler", "static pod"),
    ]


def selectors(manifest: str) -> Iterator[tuple[str, str, str, Json]]:
    """Kind and name of who selects, which kind is selected, and by which labels."""
    for each in objects(manifest):
        match each:
            case {"kind": "Service", "spec": {"selector": labels}}:
                target = "Pod"
            case {"kind": "ServiceMonitor", "spec": {"selector": {"matchLabels": labels}}}:
                target = "Service"
            case {"spec": {"selector": {"matchLabels": labels}}}:
                target = "Pod"
            case {"spec": {"podSelector": {"matchLabels": labels}}}:
                target = "Pod"
            case _:
                continue
        yield each["kind"], each["metadata"]["name"], target, labels


def labelled(manifest: str, kind: str) -> Iterator[Json]:
    """The labels of all objects of that kind, also of the pods that Deployments make."""
    for each in objects(manifest):
        if each["kind"] == kind:
            yield each["metadata"]["labels"]
        elif each["kind"] == "Deployment" and kind == "Pod":
            yield each["spec"]["template"]["metadata"]["labels"]


def test_one_replica_can_be_drained(helm: Path) -> None:
    budget = found(templated(helm, "lowtide", "replicas=1"), "PodDisruptionBudget")
    assert (budget["spec"].get("minAvailable"), budget["spec"].get("maxUnavailable")) == (None, 1)


def test_the_addresses_of_nodes_are_let_in(helm: Path) -> None:
    settings = ["mode=extender-standalone", "networkPolicy.ipBlocks={10.0.0.0/28,fd00::/64}"]
    policy = found(templated(helm, "lowtide", *settings), "NetworkPolicy")
    assert [each["from"][1:] for each in policy["spec"]["ingress"]] == [
        [{"ipBlock": {"cidr": "10.0.0.0/28"}}, {"ipBlock": {"cidr": "fd00::/64"}}]
    ]


@pytest.mark.parametrize(
    ("settings", "lease"),
    [
        pytest.param([], "kube-system/lowtide", id="by default"),
        pytest.param(["schedulerName=mine"], "kube-system/mine", id="of another name"),
        pytest.param(
            [*CONFIG, "config.profiles[0].schedulerName=mine"],
            "kube-system/mine",
            id="of a configuration's first profile",
        ),
        pytest.param(
            CONFIG, "kube-system/kube-scheduler", id="of a configuration without profiles"
        ),
        pytest.param(
            [
                *CONFIG,
                "config.leaderElection.resourceName=one",
                "config.leaderElection.resourceNamespace=leases",
            ],
            "leases/one",
            id="of a configuration that names it",
        ),
        pytest.param(["mode=extender"], "kube-system/lowtide-extender", id="of kube-scheduler"),
        pytest.param(
            ["mode=extender", "kubeScheduler.config.profiles[0].schedulerName=mine"],
            "kube-system/kube-scheduler",
            id="of kube-scheduler's configuration, which has one for all names",
        ),
        pytest.param(
            ["mode=extender", "kubeScheduler.config.leaderElection.resourceNamespace=leases"],
            "leases/kube-scheduler",
            id="of kube-scheduler's configuration in another namespace",
        ),
    ],
)
def test_the_right_is_for_the_lease(helm: Path, settings: list[str], lease: str) -> None:
    manifest = templated(helm, "lowtide", *settings)
    role = found(manifest, "Role")
    place = role["metadata"]["namespace"]
    names = [name for rule in role["rules"] for name in rule.get("resourceNames", ())]
    assert [f"{place}/{name}" for name in names] == [lease]
    bindings = [each for each in objects(manifest) if each["kind"] == "RoleBinding"]
    of_lease = [each for each in bindings if each["roleRef"]["name"] == role["metadata"]["name"]]
    assert [each["metadata"]["namespace"] for each in of_lease] == [place]
    config = found(manifest, "ConfigMap")["data"].get("scheduler-config.yaml")
    if config:  # Lowtide takes the lease itself
        election = load_config(config, file="scheduler-config.yaml").config.leader_election
        assert f"{election.resource_namespace}/{election.resource_name}" == lease


def found(manifest: str, kind: str) -> Json:
    [one] = [each for each in objects(manifest) if each["kind"] == kind]
    return one


def objects(manifest: str) -> Iterator[Json]:
    return filter(None, yaml.safe_load_all(manifest))
