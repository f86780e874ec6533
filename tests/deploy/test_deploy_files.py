"""The files that are made of others are as they would be made now: `make deploy-files` does it."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from deploy_files import ROOT, generated, rendered

FILES = dict(generated(ROOT))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_is_up_to_date(file: Path) -> None:
    assert file.read_text() == FILES[file]


@pytest.mark.real("kubectl")
def test_what_is_rendered_is_up_to_date(parts: Callable[..., dict[str, Path]]) -> None:
    for file, text in rendered(ROOT, parts("kubectl")["kubectl"]):
        assert (file.name, file.read_text()) == (file.name, text)


def test_every_image_is_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((ROOT / "deploy" / "helm" / "lowtide" / "Chart.yaml").read_text())
    named = {
        image
        for file in (ROOT / "deploy").rglob("*.yaml")
        for image in re.findall(r"image: lowtide:(\S+)", file.read_text())
    }
    assert named == {version}
    assert (chart["version"], chart["appVersion"]) == (version, version)
