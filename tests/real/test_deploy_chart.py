"""What Helm makes of the chart in deploy/."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from tests.real.chart import MONITORING, templated
from tests.real.deployed import Json

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


def objects(manifest: str) -> Iterator[Json]:
    return filter(None, yaml.safe_load_all(manifest))
