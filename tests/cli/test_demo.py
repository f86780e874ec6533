"""`lowtide demo`, run as a user would, for a few seconds."""

import re
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """What a run of five seconds prints; nothing may go to stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "lowtide", "demo", "--for", "5"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_every_pod_is_placed_and_none_on_the_busiest_node(lines: list[str]) -> None:
    assert re.fullmatch(r"  test-scheduler, deployed at \d\.\d s: 5 of 5 placed", lines[-3])
    assert re.search(r"the busiest node then was rack-[abc]-\d at \d+%: 0 pods;", lines[-1])


def test_each_placement_says_why(lines: list[str]) -> None:
    placements = [line for line in lines if " -> " in line]
    assert len(placements) == 5
    for line in placements:
        assert re.fullmatch(
            r" +\d\.\d s  default/test-scheduler-\S+ -> (rack-[abc]-\d): traffic \d+% of "
            r"(1|10|25) Gb/s, score \d+, next rack-[abc]-\d \d+, last rack-[abc]-\d \d+ "
            r"\(busiest: rack-[abc]-\d \d+%\)",
            line,
        )
