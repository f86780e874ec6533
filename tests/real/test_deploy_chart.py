"""What Helm makes of the chart in deploy/."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from tests.real.chart import MONITORING, ROOT, templated
from tests.real.deployed import Json

STATIC_POD = ROOT / "deploy" / "static-pod"
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
    ],
)
def test_the_chart_refuses(helm: Path, setting: str, sentence: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        templated(helm, "lowtide", setting)
    assert sentence in refused.value.stderr


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


def objects(manifest: str) -> Iterator[Json]:
    return filter(None, yaml.safe_load_all(manifest))
