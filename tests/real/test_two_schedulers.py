"""Lowtide beside the real kube-scheduler, both filling the same nodes to the last place."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PODS = 200
LONGEST_SECONDS = 180
# Neither can see what the other has decided and not bound yet: some get in each other's way.
MOST_EXCESS = PODS // 4


@pytest.mark.long
@pytest.mark.timeout(LONGEST_SECONDS + 30)
@pytest.mark.real("kube_scheduler")
def test_all_pods_are_bound_and_few_nodes_get_too_many() -> None:
    size = ["--nodes=50", "--room=4", f"--pods={PODS}", "--rounds=1"]
    done = subprocess.run(
        [sys.executable, "-m", "two_schedulers", *size, "--delays"],
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["bound"] == PODS
    assert figures["excess_by_lowtide"] + figures["excess_by_other"] <= MOST_EXCESS
    assert figures["lowtide_delay_ms"]["p50"] < 5000
