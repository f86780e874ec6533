"""`lowtide replay`: the forms of output, the exit status, and bad input."""

import gzip
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.records.recorded_run import CONFIG, RecordedRun

from lowtide.testing import make_node, make_pod


@pytest.fixture
def recording(run: Run) -> str:
    """In the folder that the command runs in: of two pods, of which one fits nowhere."""
    with RecordedRun(Path("run.lowtide")) as recorded:
        recorded.add(make_node("one", cpu="1"))
        recorded.listed()
        recorded.add(make_pod("web", cpu="500m"), make_pod("large", cpu="64"))
        recorded.place_all()
    return "run.lowtide"


def write_config(name: str, scheduler_name: str = "lowtide") -> str:
    weighted = {"score": {"enabled": [{"name": "ImageLocality", "weight": 7}]}}
    profile = {"schedulerName": scheduler_name, "plugins": weighted}
    Path(name).write_text(json.dumps({**CONFIG, "profiles": [profile]}))
    return name


def test_same_decisions_are_counted(run: Run, recording: str) -> None:
    result = run("replay", recording)
    assert (result.stdout, result.stderr, result.exit_code) == (
        "2 decisions, all the same\n",
        "",
        0,
    )


def test_json(run: Run, recording: str) -> None:
    result = run("replay", recording, "--output", "json")
    assert json.loads(result.stdout) == {
        "events": 26,
        "decisions": 2,
        "different": 0,
        "differences": [],
        "warnings": [],
    }
    assert result.exit_code == 0


def test_every_difference_is_named(run: Run, recording: str) -> None:
    lines = gzip.decompress(Path(recording).read_bytes()).decode().splitlines()
    changed = [line.replace('"node":"one"', '"node":"two"') for line in lines]
    Path(recording).write_bytes(gzip.compress("\n".join([*changed, ""]).encode()))
    result = run("replay", recording)
    number = next(at for at, line in enumerate(lines) if '"event":"Decided"' in line)
    assert (result.stdout.splitlines(), result.exit_code) == (
        [
            f"line {number}: default/web (attempt 1): two -> one: "
            "the nodes that were equally good were taken in another order",
            "2 decisions; 1 came out differently",
        ],
        1,
    )


def test_other_configuration_is_used(run: Run, recording: str) -> None:
    result = run("replay", recording, "--config", write_config("same.yaml"))
    assert result.exit_code == 0
    rows = [line for line in result.stdout.splitlines() if line.startswith("│")]
    assert [row.split("│")[1:6] for row in rows] == [
        [" as recorded   ", "      1 ", "       1 ", "       0 ", "           "],
        [" same.yaml     ", "      1 ", "       1 ", "       0 ", "         0 "],
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(
            b"nodes: []", "bad: is no recording: it is not compressed by gzip", id="no recording"
        ),
        pytest.param(
            gzip.compress(b'{"format":"lowtide recording","version":9,"lowtide":"7.0"}\n'),
            "bad: is a recording of version 9, written by Lowtide 7.0; this one reads versions up "
            "to 2",
            id="a newer recording",
        ),
        pytest.param(
            gzip.compress(b'{"format":"lowtide recording","version":1,"config":{"kind":"Pod"}}\n'),
            'bad: its configuration:1: kind: is the string "Pod"; expected a KubeScheduler',
            id="a recording with another configuration",
        ),
    ],
)
def test_bad_input_is_told_in_one_sentence(run: Run, content: bytes, told: str) -> None:
    Path("bad").write_bytes(content)
    result = run("replay", "bad")
    assert (result.stdout, result.exit_code) == ("", 1)
    assert result.stderr.startswith(f"lowtide: {told}")
    assert result.stderr.count("\n") == 1


def test_configuration_without_the_recorded_scheduler_is_rejected(run: Run, recording: str) -> None:
    result = run("replay", recording, "--config", write_config("other.yaml", "theirs"))
    assert (result.stdout, result.stderr, result.exit_code) == (
        "",
        "lowtide: run.lowtide: was recorded for the schedulerName lowtide, and other.yaml has a "
        "profile for theirs only\n",
        1,
    )


def test_torn_recording_is_replayed_as_far_as_it_goes(run: Run, recording: str) -> None:
    Path(recording).write_bytes(Path(recording).read_bytes()[:-20])
    result = run("replay", recording)
    assert result.stderr.startswith("warning: run.lowtide: has no end: ")
    assert result.exit_code == 0


def test_options_of_recording_need_a_file(run: Run) -> None:
    result = run("scheduler", "--record-hash-names")
    assert result.exit_code == 2
    assert "--record-hash-names and --record-annotation need --record FILE" in result.stderr


def test_a_report_and_no_plot_where_nothing_was_measured(run: Run, recording: str) -> None:
    config = ("--config", write_config("same.yaml"))
    result = run("replay", recording, *config, "--plot", "p.svg", "--report", "r.html")
    assert result.exit_code == 0
    assert result.stderr == "warning: nothing was measured that could be drawn\n"
    assert Path("r.html").read_text().startswith("<!doctype html>")
    assert not Path("p.svg").exists()
    assert run("replay", recording, "--plot", "p.svg").exit_code == 2
