"""The short form of the soak: nodes and pods come and go for most of a minute."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 45
LONGEST_SECONDS = 240
# Of so short a time. What is allocated once, at the first of everything, is not over by then.
MOST_GROWTH_PERCENT = 25


@pytest.mark.long
@pytest.mark.timeout(LONGEST_SECONDS + 30)
@pytest.mark.real("control_plane")
def test_a_short_soak_leaks_nothing(tmp_path: Path) -> None:
    size = ["--nodes=50", "--pods=400", "--sample-seconds=2", "--rest-seconds=5"]
    done = subprocess.run(
        [sys.executable, "-m", "soak", f"--for={SECONDS}", *size, f"--out={tmp_path}"],
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    assert [each for each in figures["faults"] if "memory" not in each] == [], done.stdout
    assert figures["memory"]["growth_percent"] < MOST_GROWTH_PERCENT
    assert figures["seconds"] >= SECONDS
    assert figures["changes_per_second"] > 30
    assert figures["nodes_came"] > 10
    assert figures["pods_came"] > 300
    assert figures["samples"] >= SECONDS / 4
    assert figures["comparisons"] == 7
    assert "resident memory in MiB" in (tmp_path / "memory.svg").read_text()
    assert len((tmp_path / "samples.csv").read_text().splitlines()) == figures["samples"] + 1
