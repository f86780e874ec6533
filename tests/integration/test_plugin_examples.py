"""The examples of plugins of one's own do what their READMEs say, in each of the three ways in
which such a plugin is registered; and all that docs/writing-a-plugin.md shows is true."""

import json
import os
import re
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from realparts.process import Process, free_port

# So that no byte code is left in the example's folder.
PYTHON = [sys.executable, "-B"]
LOWTIDE = [*PYTHON, "-m", "lowtide"]
FOLDERS = ("07-own-plugin", "08-vectorised-filter", "09-own-readings", "10-wait-for-a-group")
OWN_PLUGIN, SPARE_MEMORY, OWN_READINGS, GROUP = FOLDERS


def run(*words: str, folder: Path, path: str = "", status: int = 0) -> str:
    """What it prints on both streams; `path` is where Python looks for modules besides."""
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def install(project: Path, site: Path) -> None:
    """What an installer leaves of a pyproject.toml's entry points."""
    about = tomllib.loads(project.read_text())["project"]
    folder = site / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    folder.mkdir()
    head = f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    (folder / "METADATA").write_text(head)
    groups = about["entry-points"]
    lines = [
        line
        for group, offers in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in offers.items()))
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")


def printed_by_readme(folder: Path) -> str:
    return (folder / "README.md").read_text().partition("```text\n")[2].partition("```")[0]


DECIDE = ("decide", "--config", "config.yaml", "cluster.yaml")


def test_with_a_main_of_its_own_decide_prints_the_tables_of_the_readme(examples: Path) -> None:
    folder = examples / OWN_PLUGIN
    assert f"python main.py {' '.join(DECIDE)}" in (folder / "README.md").read_text()
    assert run(*PYTHON, "main.py", *DECIDE, folder=folder) == printed_by_readme(folder)


def test_with_an_entry_point_decide_prints_the_tables_of_the_readme(
    examples: Path, tmp_path: Path
) -> None:
    folder = examples / SPARE_MEMORY
    assert f"lowtide {' '.join(DECIDE)}" in (folder / "README.md").read_text()
    install(folder / "pyproject.toml", tmp_path)
    said = run(*LOWTIDE, *DECIDE, folder=folder, path=str(tmp_path))
    assert said == printed_by_readme(folder)


def test_with_its_module_named_decide_prints_the_tables_of_the_readme(examples: Path) -> None:
    folder = examples / OWN_READINGS
    assert f"PYTHONPATH=. lowtide {' '.join(DECIDE)}" in (folder / "README.md").read_text()
    assert run(*LOWTIDE, *DECIDE, folder=folder) == printed_by_readme(folder)


@pytest.mark.parametrize(
    ("name", "words", "scheduler_name"),
    [
        pytest.param(OWN_PLUGIN, [*PYTHON, "main.py"], "with-spot-nodes", id=OWN_PLUGIN),
        pytest.param(OWN_READINGS, LOWTIDE, "with-quiet-disks", id=OWN_READINGS),
        pytest.param(GROUP, LOWTIDE, "with-whole-groups", id=GROUP),
    ],
)
def test_the_configuration_is_valid(
    examples: Path, name: str, words: list[str], scheduler_name: str
) -> None:
    said = run(*words, "config", "validate", "config.yaml", folder=examples / name)
    assert said == f"config.yaml: valid; schedules for {scheduler_name}\n"


def test_a_permit_plugin_is_shown_where_it_runs(examples: Path) -> None:
    said = run(*LOWTIDE, "config", "show", "config.yaml", "--output=json", folder=examples / GROUP)
    points = json.loads(said)["profiles"][0]["plugins"]
    assert [point for point, names in points.items() if "WholeGroup" in names] == ["permit"]


@pytest.mark.parametrize(
    ("name", "count"), [(OWN_PLUGIN, 3), (SPARE_MEMORY, 5), (OWN_READINGS, 4), (GROUP, 6)]
)
def test_its_own_tests_pass(examples: Path, name: str, count: int) -> None:
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert f"{count} passed" in run(*PYTHON, *words, folder=examples / name)


@pytest.mark.parametrize("name", FOLDERS)
def test_its_readme_names_its_files(examples: Path, name: str) -> None:
    readme = (examples / name / "README.md").read_text()
    files = {file.name for file in (examples / name).iterdir()} - {"README.md", "__pycache__"}
    assert {file for file in files if f"`{file}`" not in readme} == set()


@pytest.fixture
def extender(examples: Path, embedded_cluster: Any, tmp_path: Path) -> Iterator[Process]:
    """It knows two nodes."""
    folder = examples / OWN_PLUGIN
    embedded_cluster.create_node("cheap", labels={"example.com/spot": "true"})
    embedded_cluster.create_node("solid")
    port = free_port()
    config, kubeconfig = folder / "config.yaml", embedded_cluster.kubeconfig
    words = ["extender", f"--config={config}", f"--kubeconfig={kubeconfig}", f"--port={port}"]
    process = Process(
        "own-plugin",
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


def test_as_an_extender_it_answers_by_the_plugin(extender: Process) -> None:
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


# The page.

BLOCK = re.compile(r"```(?P<kind>\w+)(?: title=(?P<file>\S+))?\n(?P<text>.*?)```", re.DOTALL)


SHELL = (
    "env",
    f"PATH={Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTEST_ADDOPTS=-p no:asyncio -p no:cacheprovider",
    "sh",
    "-c",
)


def without_times(printed: str) -> str:
    return re.sub(r" in [0-9.]+s$", "", printed, flags=re.MULTILINE)


def test_everything_that_the_page_shows_is_true(examples: Path, tmp_path: Path) -> None:
    """Files are written as it tells, commands print what it says, and its pieces of code run, in
    the order of the page."""
    page = (examples.parent / "docs" / "writing-a-plugin.md").read_text()
    site = tmp_path / "site"  # where packages are installed
    site.mkdir()
    done: list[str] = []
    for block in BLOCK.finditer(page):
        kind, text = block["kind"], block["text"]
        if block["file"] is not None:
            (tmp_path / block["file"]).write_text(text)
            if block["file"] == "pyproject.toml":
                install(tmp_path / "pyproject.toml", site)
                (site / "same_rack.py").write_text((tmp_path / "same_rack.py").read_text())
        elif kind == "console":
            for command, said in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                printed = run(*SHELL, command, folder=tmp_path, path=str(site))
                assert without_times(printed) == without_times(said), command
        elif kind == "python":
            (tmp_path / "piece.py").write_text(text)
            run(*PYTHON, "piece.py", folder=tmp_path)
        else:
            continue
        done.append(block["file"] or kind)
    assert done == [
        "same_rack.py",
        "cluster.yaml",
        "config.yaml",
        "console",
        "test_same_rack.py",
        "console",
        "python",
        "named.yaml",
        "main.py",
        "console",
        "pyproject.toml",
        "console",
        "python",
        "python",
        "python",
        "python",
    ]
