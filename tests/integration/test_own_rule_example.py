"""The example of a rule of one's own, and what docs/plugins.md says of such rules, are true."""

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from realparts.process import Process, free_port

# So that no byte code is left in the example's folder.
PYTHON = [sys.executable, "-B"]


@pytest.fixture
def folder(examples: Path) -> Path:
    return examples / "07-own-rule"


def run(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [*PYTHON, *words], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_decide_prints_the_tables_of_its_readme(folder: Path) -> None:
    readme = (folder / "README.md").read_text()
    command = readme.partition("```\npython ")[2].partition("\n```")[0]
    printed = readme.partition("```text\n")[2].partition("```")[0]
    assert run(*command.split(), folder=folder) == printed


def test_its_configuration_is_valid(folder: Path) -> None:
    said = run("main.py", "config", "validate", "config.yaml", folder=folder)
    assert said == "config.yaml: valid; schedules for with-spot-nodes\n"


def test_its_own_tests_pass(folder: Path) -> None:
    said = run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder=folder)
    assert "2 passed" in said


def test_its_readme_names_its_files(folder: Path) -> None:
    readme = (folder / "README.md").read_text()
    files = {file.name for file in folder.iterdir()} - {"README.md", "__pycache__"}
    assert {file for file in files if f"`{file}`" not in readme} == set()


@pytest.fixture
def extender(folder: Path, embedded_cluster: Any, tmp_path: Path) -> Iterator[Process]:
    """It knows two nodes."""
    embedded_cluster.create_node("cheap", labels={"example.com/spot": "true"})
    embedded_cluster.create_node("solid")
    port = free_port()
    config, kubeconfig = folder / "config.yaml", embedded_cluster.kubeconfig
    words = ["extender", f"--config={config}", f"--kubeconfig={kubeconfig}", f"--port={port}"]
    process = Process(
        "own-rule",
        [*PYTHON, str(folder / "main.py"), *words],
        folder=tmp_path,
        url=f"http://127.0.0.1:{port}",
    )
    try:
        process.start()
        process.wait_until_ready(lambda: get(f"{process.url}/readyz") == "ok")
        yield process
        assert process.stop() == 0
    finally:
        process.kill()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as response:
        return str(response.read().decode())


def ask(extender: Process, verb: str, labels: dict[str, str]) -> Any:
    metadata = {"name": "web", "namespace": "default", "uid": "u-1", "labels": labels}
    spec = {"containers": [{"name": "main"}]}
    args = {"Pod": {"metadata": metadata, "spec": spec}, "NodeNames": ["cheap", "solid"]}
    request = urllib.request.Request(
        f"{extender.url}/scheduler/{verb}",
        json.dumps(args).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=5) as response:
        return json.loads(response.read())


def test_as_an_extender_it_answers_by_the_rule(extender: Process) -> None:
    answer = ask(extender, "filter", {"example.com/steady": "true"})
    assert (answer["NodeNames"], answer["FailedAndUnresolvableNodes"]) == (
        ["solid"],
        {"cheap": "node(s) may be taken away"},
    )
    assert ask(extender, "filter", {})["NodeNames"] == ["cheap", "solid"]
    assert ask(extender, "prioritize", {}) == [
        {"Host": "cheap", "Score": 10},
        {"Host": "solid", "Score": 0},
    ]


def test_the_code_of_the_documentation_runs(examples: Path) -> None:
    text = (examples.parent / "docs" / "plugins.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 2
    exec("\n".join(blocks), {"__name__": "documented"})
