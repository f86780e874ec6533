"""The examples do what their READMEs say; 01 runs on real parts in tests/real."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

LOWTIDE = Path(sys.executable).parent / "lowtide"


def lowtide(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [LOWTIDE, *words], cwd=folder, capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout


def test_second_scheduler_configuration_is_valid(examples: Path) -> None:
    said = lowtide(
        "config", "validate", "scheduler-config.yaml", folder=examples / "01-second-scheduler"
    )
    assert said == "scheduler-config.yaml: valid; schedules for sample-scheduler\n"


def test_second_schedulers_deployment_is_for_it(examples: Path) -> None:
    folder = examples / "01-second-scheduler"
    config = yaml.safe_load((folder / "scheduler-config.yaml").read_text())
    deployment = yaml.safe_load((folder / "test-deployment.yaml").read_text())
    named = deployment["spec"]["template"]["spec"]["schedulerName"]
    assert [profile["schedulerName"] for profile in config["profiles"]] == [named]
    assert deployment["spec"]["replicas"] == 5


def test_decide_prints_the_table_of_its_readme(examples: Path) -> None:
    folder = examples / "02-decide"
    readme = (folder / "README.md").read_text()
    command = readme.partition("```\nlowtide ")[2].partition("\n```")[0]
    printed = readme.partition("```text\n")[2].partition("```")[0]
    assert lowtide(*command.split(), folder=folder) == printed


@pytest.mark.parametrize("name", ["01-second-scheduler", "02-decide"])
def test_each_example_has_a_readme(examples: Path, name: str) -> None:
    assert (examples / name / "README.md").read_text().startswith("# ")
