"""The short form of the fault suite: parts of a real cluster break while the scheduler works, and
nothing is lost, bound twice or put where it must not be."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LONGEST_SECONDS = 600


@pytest.mark.long
@pytest.mark.timeout(LONGEST_SECONDS + 30)
@pytest.mark.real("control_plane", "faketime")
def test_nothing_is_lost_whatever_breaks(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "faults", "--short", f"--logs={tmp_path}"],
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout
    assert figures["faults"] >= 20
    assert figures["pods"] > 1500
    assert figures["leader_killed_to_next_binding_seconds"] > 0
    assert figures["leader_terminated_to_next_binding_seconds"] > 0
    assert figures["bindings_of_former_leaders"] == 0
