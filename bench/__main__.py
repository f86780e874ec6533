"""`make bench`: Lowtide and kube-scheduler side by side, on one API server in one run.

Prints a table and writes bench/results.json. Machines are noisy: read the ratios."""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from drain import SCHEDULERS, Drain, DrainResult, Workload  # noqa: E402

RESULTS = HERE / "results.json"
WORKLOADS = (Workload("basic", nodes=100, pods=3000),)


def main() -> None:
    options = _options()
    chosen = [work for work in WORKLOADS if f"drain/{work}".startswith(options.only)]
    if not chosen:
        names = ", ".join(f"drain/{work}" for work in WORKLOADS)
        sys.exit(f"bench: --only {options.only} names nothing; there are {names}")
    console = Console(width=None if sys.stdout.isatty() else 120)
    started = time.monotonic()
    results: list[DrainResult] = []
    for workload in chosen:
        results += _run(workload, options.rounds, console)
    _write(results)
    console.print(_table(results))
    for line in _ratios(results):
        console.print(line)
    console.print(f"took {time.monotonic() - started:.0f} s; rows in {RESULTS.name}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", default="", help="such as drain/basic/100")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def _run(workload: Workload, rounds: int, console: Console) -> Iterator[DrainResult]:
    with Drain(workload) as drain:
        for number in range(1, rounds + 1):
            for scheduler in SCHEDULERS:
                console.print(
                    f"drain/{workload}: round {number} of {rounds}, {scheduler} ...",
                    highlight=False,
                )
                yield drain.run(scheduler, number)


def _write(results: list[DrainResult]) -> None:
    """A partial run replaces only its own rows."""
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    ours = {(result.workload, result.nodes) for result in results}
    rows = [row for row in rows if (row["workload"], row["nodes"]) not in ours]
    RESULTS.write_text(json.dumps([*rows, *map(asdict, results)], indent=1) + "\n")


def _table(results: list[DrainResult]) -> Table:
    table = Table()
    for heading in ("workload", "nodes", "pods", "round", "scheduler"):
        table.add_column(heading)
    for heading in ("pods/s", "CPU ms/pod", "memory MB", "nodes used"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(
            result.workload,
            str(result.nodes),
            str(result.pods),
            str(result.round),
            result.scheduler,
            f"{result.pods_per_second:.0f}",
            f"{result.scheduler_cpu_ms_per_pod:.2f}",
            f"{result.rss_mb:.0f}",
            str(result.nodes_used),
        )
    return table


def _ratios(results: list[DrainResult]) -> Iterator[str]:
    """Lowtide against kube-scheduler, round by round, and the median of it."""
    for workload, nodes in dict.fromkeys((result.workload, result.nodes) for result in results):
        by_scheduler = {
            scheduler: [
                result
                for result in results
                if (result.workload, result.nodes, result.scheduler) == (workload, nodes, scheduler)
            ]
            for scheduler in SCHEDULERS
        }
        pairs = list(zip(by_scheduler["lowtide"], by_scheduler["kube-scheduler"], strict=True))
        speed = [ours.pods_per_second / theirs.pods_per_second for ours, theirs in pairs]
        cpu = [
            ours.scheduler_cpu_ms_per_pod / theirs.scheduler_cpu_ms_per_pod
            for ours, theirs in pairs
        ]
        yield (
            f"{workload}, {nodes} nodes: pods/s {statistics.median(speed):.2f} times "
            f"kube-scheduler's ({min(speed):.2f} to {max(speed):.2f}), "
            f"CPU per pod {statistics.median(cpu):.2f} times ({min(cpu):.2f} to {max(cpu):.2f})"
        )


main()
