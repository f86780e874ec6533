"""`lowtide simulate`: the forms of output, the same bytes each time, and bad input."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from tests.cli.conftest import Run

SMALL = """
nodes:
- {count: 4, links: [10G], background: {share: [0.05, 0.6]}}
owners:
- {count: 2, pods: 8, traffic: {median: 240M}}
arrivals: {over: 10s}
settle: 1s
"""
FIGURES = [
    "seed",
    "peak",
    "peak_over_reference",
    "p95",
    "fairness",
    "cpu_imbalance",
    "nodes_used",
    "pending",
]


@pytest.fixture
def small(run: Run) -> str:
    """In the folder that the command runs in."""
    Path("small.yaml").write_text(SMALL)
    return "small.yaml"


def write_config(name: str, *, weight: int) -> str:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "mine",
                "plugins": {"score": {"enabled": [{"name": "NetworkTraffic", "weight": weight}]}},
            }
        ],
    }
    Path(name).write_text(yaml.safe_dump(config))
    return name


def test_json_has_every_figure_of_every_run(run: Run, small: str) -> None:
    result = run("simulate", small, "--seeds", "1,4", "--output", "json")
    found = json.loads(result.stdout)
    assert (list(found), result.stderr, result.exit_code) == (["configs"], "", 0)
    assert [each["name"] for each in found["configs"]] == ["recommended", "seeds", "default"]
    for each in found["configs"]:
        assert list(each) == ["name", "runs"]
        assert [list(one) for one in each["runs"]] == [FIGURES, FIGURES]
        assert [one["seed"] for one in each["runs"]] == [1, 4]
        assert [one["pending"] for one in each["runs"]] == [0, 0]


def test_the_same_seed_gives_the_same_bytes(run: Run, small: str) -> None:
    once, again = (
        run("simulate", small, "--output", "json", "--plot", f"{number}.svg").stdout_bytes
        for number in (1, 2)
    )
    assert once == again
    assert Path("1.svg").read_bytes() == Path("2.svg").read_bytes()


def test_configurations_are_called_after_their_files(run: Run, small: str) -> None:
    Path("other").mkdir()
    files = [
        write_config(name, weight=weight)
        for name, weight in (("a.yaml", 1), ("b.yaml", 5), ("other/b.yaml", 9))
    ]
    options = [word for name in files for word in ("--config", name)]
    result = run("simulate", small, "--output", "json", *options)
    names = [each["name"] for each in json.loads(result.stdout)["configs"]]
    assert names == ["a", "b.yaml", "other/b.yaml"]


def test_the_table_of_one_draw(run: Run, small: str) -> None:
    lines = run("simulate", small).stdout.splitlines()
    assert lines[0].strip() == "one draw"
    assert [cell.strip() for cell in lines[2].split("┃")[1:-1]] == [
        "configuration",
        "peak / reference",
        "link peak",
        "link p95",
        "fairness",
        "CPU imbalance",
        "nodes used",
        "pending",
    ]
    assert [line.split("│")[1].strip() for line in lines[4:7]] == [
        "recommended",
        "seeds",
        "default",
    ]


def test_the_table_of_several_draws(run: Run, small: str) -> None:
    config = write_config("a.yaml", weight=3)
    arguments = ("simulate", small, "--seeds", "1-3", "--config", config)
    ratios = [
        one["peak_over_reference"]
        for one in json.loads(run(*arguments, "--output", "json").stdout)["configs"][0]["runs"]
    ]
    _, middle, high = sorted(ratios)
    lines = run(*arguments).stdout.splitlines()
    assert lines[0].strip() == "median and 90th percentile of 3 draws"
    # Of three, the 90th percentile lies four fifths of the way from the middle to the highest.
    cell = f"{middle:.2f}, {middle + 0.8 * (high - middle):.2f}"
    assert lines[4].split("│")[2].strip() == cell


def rows_of(table: str) -> list[list[str]]:
    cells = [line.split("│") for line in table.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in row[1:-1]] for row in cells]


def test_a_run_that_placed_nothing_has_no_figures(run: Run) -> None:
    Path("tight.yaml").write_text(SMALL.replace("count: 4,", "count: 4, cpu: 100m,"))
    config = write_config("a.yaml", weight=3)
    for seeds, pending in (("1", "8"), ("1-2", "8, 8")):
        told = run("simulate", "tight.yaml", "--config", config, "--seeds", seeds).stdout
        assert rows_of(told) == [["a", *"–––––", "0" if seeds == "1" else "0, 0", pending]]
        assert told.splitlines()[-1] == (
            "a: 8 of 8 pods found no node in the worst draw; figures without them do not compare"
        )
    as_json = run("simulate", "tight.yaml", "--config", config, "--output", "json").stdout
    (one,) = json.loads(as_json)["configs"][0]["runs"]
    assert (list(one), one["pending"]) == (FIGURES, 8)


def test_pods_left_over_are_told_below_the_table(run: Run) -> None:
    Path("tight.yaml").write_text(SMALL.replace("count: 4,", "count: 4, cpu: 600m,"))
    told = run("simulate", "tight.yaml", "--config", write_config("a.yaml", weight=3)).stdout
    (row,) = rows_of(told)
    assert ("–" in row, row[-2:]) == (False, ["4", "4"])
    assert told.splitlines()[-1] == (
        "a: 4 of 8 pods found no node in the worst draw; figures without them do not compare"
    )


def test_what_is_no_simulation_leaves_no_plot(run: Run) -> None:
    Path("bad.yaml").write_text("nodes: []")
    assert run("simulate", "bad.yaml", "--plot", "plot.svg").exit_code == 1
    assert not Path("plot.svg").exists()


def test_an_interrupt_ends_all_processes_quietly() -> None:
    """As Ctrl-C does it: every process of the group is told, in the middle of the runs."""
    text = f"""
import os, signal
from lowtide.app.simulate import run_all, usual_configs
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.scenario.simulation import simulation_from

simulation = simulation_from({SMALL!r}, file="small.yaml")
interrupt = lambda: os.killpg(0, signal.SIGINT)
with reported_in_one_sentence():
    run_all(simulation, usual_configs(), range(1, 9), plugins={{}}, on_run=interrupt)
"""
    ended = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_plot_can_be_read(run: Run, small: str) -> None:
    assert run("simulate", small, "--plot", "plot.svg").exit_code == 0
    texts = [each.text for each in ET.parse("plot.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "small"
    assert texts[-4:] == ["reference", "recommended", "seeds", "default"]


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        pytest.param(
            ["--seeds", "1-x"],
            2,
            "Error: Invalid value for '--seeds': '1-x' is not a list of seeds such as 1-20 or "
            "1,5,7\n",
            id="seeds that are none",
        ),
        pytest.param(
            ["--seeds", "9-3"],
            2,
            "Error: Invalid value for '--seeds': '9-3' must go upwards, and at most 10000 seeds "
            "are run\n",
            id="seeds that go down",
        ),
        pytest.param(
            ["--seeds", "1-5,3"],
            2,
            "Error: Invalid value for '--seeds': '1-5,3' has the seed 3 twice\n",
            id="the same seed twice",
        ),
        pytest.param(
            ["--config", "small.yaml", "--config", "./small.yaml"],
            2,
            "Error: --config small.yaml is given twice\n",
            id="the same configuration twice",
        ),
        pytest.param(
            ["--config", "gone.yaml"],
            1,
            "lowtide: gone.yaml: cannot be read: No such file or directory\n",
            id="a configuration that is not there",
        ),
    ],
)
def test_it_rejects(run: Run, small: str, arguments: list[str], status: int, problem: str) -> None:
    result = run("simulate", small, *arguments)
    assert (result.exit_code, result.stderr.endswith(problem)) == (status, True)


def test_a_bad_file_is_told_line_by_line(run: Run) -> None:
    Path("bad.yaml").write_text(
        SMALL.replace("10G", "10X").replace("count: 2", "count: 2, size: 1")
    )
    result = run("simulate", "bad.yaml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "lowtide: bad.yaml:5: owners[0].size: is not a known field; valid here are count, pods, "
        "traffic, kind, requests, lifetime\n"
    )
