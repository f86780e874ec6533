"""How long a recording of a large cluster takes to be decided again, or under other settings.

The recording is made by a machine that this bench drives."""

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.records.test_replay_many import NODES, PODS, record_large
from tests.records.test_replaying import WITH_TRAFFIC

from lowtide.app.registry import make_registry
from lowtide.app.replay import compare, replay
from report_lines import Compared, Report

GOAL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ReplayResult:
    workload: str
    nodes: int
    pods: int
    scheduler: str
    round: int
    seconds: float
    different: int
    megabytes: float


def replays(rounds: int, say: object) -> Iterator[ReplayResult]:
    """Event by event, and the arrivals alone under the same configuration."""
    with tempfile.TemporaryDirectory(prefix="lowtide-bench-") as folder:
        file, config = Path(folder) / "run", Path(folder) / "config.yaml"
        record_large(file)
        config.write_text(json.dumps(WITH_TRAFFIC))
        megabytes = file.stat().st_size / 1e6
        for number in range(1, rounds + 1):
            began_at = time.monotonic()
            made = replay(file, make_registry({}), None, lambda done, total: None)
            seconds, different = time.monotonic() - began_at, len(made.differences)
            yield ReplayResult(
                "replay/check", NODES, PODS, "lowtide", number, seconds, different, megabytes
            )
            began_at = time.monotonic()
            rows = compare(file, make_registry({}), [config], lambda done, total: None).rows
            seconds, different = time.monotonic() - began_at, len(rows[1].moved_pods)
            yield ReplayResult(
                "replay/compare", NODES, PODS, "lowtide", number, seconds, different, megabytes
            )


def replay_report(results: Sequence[ReplayResult]) -> Report:
    table = Table(title=f"a recording of {NODES} nodes and {PODS} pods")
    for heading in ("", "round", "seconds", "different", "MB"):
        table.add_column(heading, justify="right")
    for each in results:
        figures = (f"{each.seconds:.1f}", str(each.different), f"{each.megabytes:.1f}")
        table.add_row(each.workload, str(each.round), *figures)
    yield table
    longest = max(each.seconds for each in results)
    yield Compared(
        f"replay: {longest:.1f} s at the longest",
        f"at most {GOAL_SECONDS:.0f} s",
        is_met=longest <= GOAL_SECONDS,
    )
