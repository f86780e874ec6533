"""`make bench`, run as the command that it is."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from realparts.process import wait_until

BENCH = Path(__file__).resolve().parents[2] / "bench"


def test_a_partial_run_replaces_its_own_rows_and_says_how_long_is_left(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    before = {"bench": "decide/one-shape/100", "scheduler": "lowtide", "us_per_pod": -1.0}
    others = [
        {"bench": "decide/one-shape/1000", "scheduler": "lowtide", "us_per_pod": -1.0},
        {"bench": "drain/basic/5000", "scheduler": "none", "pods_per_second": -1.0},
    ]
    results.write_text(json.dumps([before, *others]))

    ended = _run("--only", "decide/one-shape/100", "--rounds", "2", "--results", str(results))

    assert ended.returncode == 0, ended.stderr
    assert "decide/one-shape/100: 2 rounds ... about " in ended.stdout
    assert " left" in ended.stdout
    tables, _, end = ended.stdout.partition("\ngoals: ")
    assert "keeping a decision, 100 nodes: " in tables
    assert "\ntook " in end
    rows = json.loads(results.read_text())
    assert rows[:2] == others
    told = [(row["workload"], row["nodes"], row["scheduler"], row["round"]) for row in rows[2:]]
    assert told == [("decide/one-shape", 100, "lowtide", number) for number in (1, 2)]
    assert all(row["us_per_pod"] > 0 and row["pods"] > 0 for row in rows[2:])


def test_what_there_is_not_is_told_beside_what_there_is() -> None:
    ended = _run("--only", "drain/basic/50")
    assert ended.returncode == 1
    first, *names = ended.stderr.splitlines()
    assert first == (
        "bench: --only drain/basic/50 names nothing; expected one of these, or its beginning:"
    )
    assert "  steady, traffic, ready, page, replay, recorded" in names
    assert "  preempt/5000" in names
    assert len(names) < 25
    assert all(len(line) <= 80 for line in names)


def test_help_tells_the_names_and_what_an_exit_status_means() -> None:
    ended = _run("--help")
    assert ended.returncode == 0
    assert "\n  steady, traffic, ready, page, replay, recorded\n" in ended.stdout
    assert "exit status is 0 where all was measured" in ended.stdout
    assert all(len(line) <= 80 for line in ended.stdout.splitlines())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            ["--flame", "there/is/none/decide.svg"],
            "argument --flame: there is no folder there/is/none; expected a file in one that "
            "exists",
            id="a picture in no folder",
        ),
        pytest.param(
            ["--flame", "decide.png"],
            "argument --flame: decide.png does not end in .svg; expected decide.svg",
            id="a picture of another kind",
        ),
        pytest.param(
            ["--results", "there/is/none/rows.json"],
            "argument --results: there is no folder there/is/none; expected a file in one "
            "that exists",
            id="rows in no folder",
        ),
        pytest.param(
            ["--results", "."],
            "argument --results: . is a folder; expected a file",
            id="rows in place of a folder",
        ),
        pytest.param(
            ["--results", str(BENCH / "workloads.py")],
            f"argument --results: {BENCH / 'workloads.py'} holds no rows (Extra data: line 1 "
            "column 3 (char 2)); expected the file of another run, or a new one",
            id="rows in a file that holds something else",
        ),
        pytest.param(
            ["--rounds", "-3"],
            "argument --rounds: -3 is no number of rounds; expected 1 or more",
            id="fewer rounds than none",
        ),
        pytest.param(
            ["--rounds", "0"],
            "argument --rounds: 0 is no number of rounds; expected 1 or more",
            id="no rounds",
        ),
        pytest.param(
            ["--rounds", "two"],
            "argument --rounds: two is no number of rounds; expected 1 or more",
            id="rounds in words",
        ),
        pytest.param(
            ["--all"],
            "argument --all: not allowed with argument --only",
            id="all and one of them",
        ),
    ],
)
def test_is_rejected_before_anything_is_measured(arguments: list[str], said: str) -> None:
    ended = _run("--only", "decide/one-shape/100", *arguments)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == f"make bench: error: {said}"
    assert ended.stdout == ""


@pytest.mark.parametrize(
    "rows", [pytest.param("", id="empty"), pytest.param('[{"bench": "pa', id="torn")]
)
def test_damaged_rows_in_the_usual_file_are_told_before_anything_is_measured(
    rows: str, tmp_path: Path
) -> None:
    bench = tmp_path / "bench"
    shutil.copytree(BENCH, bench, ignore=shutil.ignore_patterns("results.json", "__pycache__"))
    for beside in ("tools", "tests"):
        (tmp_path / beside).symlink_to(BENCH.parent / beside)
    results = bench / "results.json"
    results.write_text(rows)
    ended = _run("--only", "decide/one-shape/100", "--rounds", "1", bench=bench)
    assert ended.returncode == 2
    assert f"argument --results: {results} holds no rows (" in ended.stderr.splitlines()[-1]
    assert ended.stdout == ""
    assert results.read_text() == rows


def test_what_is_looked_at_is_drawn_and_not_kept(tmp_path: Path) -> None:
    picture, results = tmp_path / "decide.svg", tmp_path / "results.json"
    options = ["--rounds", "1", "--flame", str(picture), "--results", str(results)]
    ended = _run("--only", "decide/one-shape/100", *options)
    assert ended.returncode == 0, ended.stderr
    stacks = picture.with_suffix(".txt")
    assert ended.stdout.endswith(f"flame graph in {picture} and {stacks}, no rows kept\n")
    assert sorted(tmp_path.iterdir()) == [picture, stacks]


def test_an_interruption_is_told_in_one_line(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    options = ["--only", "decide/one-shape/100", "--rounds", "100000", "--results", str(results)]
    with _started(*options) as bench:
        assert bench.stdout is not None
        assert "the cluster is made" in bench.stdout.readline()
        bench.send_signal(signal.SIGINT)
        _, said = bench.communicate(timeout=60)
    assert (bench.returncode, said) == (130, "bench: interrupted\n")
    assert not results.exists()


def test_an_interruption_stops_what_was_started(tmp_path: Path) -> None:
    options = ["--only", "cycle/poll", "--results", str(tmp_path / "results.json")]
    with _started(*options, folder=tmp_path) as bench:
        children = Path(f"/proc/{bench.pid}/task/{bench.pid}/children")
        wait_until(
            lambda: children.read_text() != "", timeout_seconds=60, what="a server was started"
        )
        (server,) = children.read_text().split()
        bench.send_signal(signal.SIGINT)
        bench.communicate(timeout=60)
    assert bench.returncode == 130
    # Where the signal falls into its very start it is the kernel that ends it, a moment later.
    wait_until(
        lambda: not Path(f"/proc/{server}").exists(), timeout_seconds=10, what="the server is gone"
    )
    assert list(tmp_path.iterdir()) == []  # also what it lived in


@contextmanager
def _started(*arguments: str, folder: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """What it leaves lying about for a while, it leaves in the folder."""
    with subprocess.Popen(
        [sys.executable, str(BENCH), *arguments],
        env=os.environ if folder is None else {**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as bench:
        try:
            yield bench
        finally:
            bench.kill()


def _run(*arguments: str, bench: Path = BENCH) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(bench), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
