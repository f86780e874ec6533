"""`make bench`, run as the command that it is."""

import json
import subprocess
import sys
from pathlib import Path

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
        "bench: --only drain/basic/50 names nothing; right would be one of these, or its beginning:"
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


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
