"""`lowtide sweep`: scenarios and recordings under many configurations."""

import json
from pathlib import Path

from tests.cli.conftest import Run
from tests.cli.test_simulate import SMALL
from tests.records.recorded_run import CONFIG, RecordedRun

from lowtide.testing import make_node, make_pod


def write(*names: str) -> list[str]:
    """Configurations that differ in the weight of a rule; the arguments that name them."""
    words = []
    for number, name in enumerate(names, start=1):
        score = {"score": {"enabled": [{"name": "ImageLocality", "weight": number}]}}
        profile = {"schedulerName": "lowtide", "plugins": score}
        Path(name).write_text(json.dumps({**CONFIG, "profiles": [profile]}))
        words += ["--config", name]
    return words


def record(name: str) -> None:
    with RecordedRun(Path(name)) as run:
        run.add(make_node("one"), make_node("two"))
        run.listed()
        run.add(make_pod("web"), make_pod("huge", cpu="99"))
        run.place_all()


def test_every_configuration_runs_on_every_source(run: Run) -> None:
    Path("small.yaml").write_text(SMALL)
    record("run.lowtide")
    words = ("small.yaml", "run.lowtide", *write("a.yaml", "b.yaml"), "--seeds", "1,4")
    result = run("sweep", *words, "--output", "json")
    assert (result.stderr, result.exit_code) == ("", 0)
    runs = json.loads(result.stdout)["runs"]
    assert [(each["source"], each["config"], each["seed"]) for each in runs] == [
        ("small.yaml", "a.yaml", 1),
        ("small.yaml", "a.yaml", 4),
        ("small.yaml", "b.yaml", 1),
        ("small.yaml", "b.yaml", 4),
        ("run.lowtide", "a.yaml", 0),
        ("run.lowtide", "b.yaml", 0),
    ]
    alone = run("simulate", "small.yaml", "--config", "a.yaml", "--seeds", "4", "--output", "json")
    (expected,) = json.loads(alone.stdout)["configs"][0]["runs"]
    assert round(runs[1]["figures"]["peak"], 6) == expected["peak"]
    assert runs[4]["figures"] == {"pending": 1, "elsewhere": 0}


def test_a_table_of_medians(run: Run) -> None:
    Path("small.yaml").write_text(SMALL)
    result = run("sweep", "small.yaml", *write("a.yaml"), "--seeds", "1-7")  # in processes
    rows = [line for line in result.stdout.splitlines() if "a.yaml" in line]
    assert [cell.strip() for cell in rows[0].split("│")[1:4]] == ["small.yaml", "a.yaml", "7"]


def test_bad_input_gets_one_sentence(run: Run) -> None:
    Path("small.yaml").write_text(SMALL)
    config = write("a.yaml")
    dask = run("sweep", "small.yaml", *config, "--dask", "tcp://127.0.0.1:1")
    assert dask.exit_code == 1
    assert dask.stderr.startswith("lowtide: no Dask scheduler answers at tcp://127.0.0.1:1: ")
    assert dask.stderr.count("\n") == 1
    assert run("sweep", "small.yaml").exit_code == 2
    Path("torn").write_bytes(b"\x1f\x8bnothing")
    torn = run("sweep", "torn", *config)
    assert (torn.exit_code, torn.stderr.startswith("lowtide: torn: ")) == (1, True)
