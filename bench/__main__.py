"""`make bench`: Lowtide and kube-scheduler side by side on real parts, and what traffic costs.

Prints tables and writes bench/results.json. Machines are noisy: read the ratios."""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))

from rich.console import Console  # noqa: E402

from burst import Burst, BurstResult  # noqa: E402
from cycle import Cycle, CycleResult, CycleWorkload  # noqa: E402
from drain import SCHEDULERS, Drain, DrainResult, Workload  # noqa: E402
from extender import (  # noqa: E402
    EVEN,
    RANDOM,
    ExtenderBench,
    NamesResult,
    WholeNodesResult,
)
from poll import Poll, PollResult  # noqa: E402
from recorded import RecordedResult, decide_recorded  # noqa: E402
from reports import (  # noqa: E402
    Report,
    burst_report,
    cycle_report,
    drain_report,
    names_report,
    poll_report,
    recorded_report,
    whole_nodes_report,
)

RESULTS = HERE / "results.json"
NAMES_SECONDS = 60.0

Say = Callable[[str], None]
Result = (
    DrainResult
    | BurstResult
    | CycleResult
    | PollResult
    | RecordedResult
    | NamesResult
    | WholeNodesResult
)


@dataclass(frozen=True, slots=True)
class Bench:
    """`run` takes the number of rounds and tells each that begins; `report` is its kind's."""

    name: str
    rounds: int
    run: Callable[[int, Say], Iterator[Any]]
    report: Callable[[list[Any]], Report]


def main() -> None:
    options = _options()
    chosen = [bench for bench in BENCHES if bench.name.startswith(options.only)]
    if not chosen:
        names = ", ".join(bench.name for bench in BENCHES)
        sys.exit(f"bench: --only {options.only} names nothing; there are {names}")
    console = Console(width=None if sys.stdout.isatty() else 120)

    def say(line: str) -> None:
        console.print(line, highlight=False)

    started = time.monotonic()
    found: dict[Callable[[list[Any]], Report], list[Result]] = {}
    for bench in chosen:
        results = list(bench.run(options.rounds or bench.rounds, say))
        _write(bench.name, results)
        found.setdefault(bench.report, []).extend(results)
    for report, results in found.items():
        for part in report(results):
            console.print(part)
    say(f"took {time.monotonic() - started:.0f} s; rows in {RESULTS.name}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    names = ", ".join(bench.name for bench in BENCHES)
    parser.add_argument("--only", default="", metavar="NAME", help=f"the beginning of: {names}")
    parser.add_argument("--rounds", type=int, help="else each has its own number")
    return parser.parse_args()


def _write(name: str, results: list[Result]) -> None:
    """Replaces the rows of this benchmark only."""
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    others = [row for row in rows if row.get("bench") != name]
    ours = [{"bench": name, **asdict(result)} for result in results]
    RESULTS.write_text(json.dumps([*others, *ours], indent=1) + "\n")


def _drain(workload: Workload) -> Bench:
    def run(rounds: int, say: Say) -> Iterator[DrainResult]:
        with Drain(workload) as drain:
            for number in range(1, rounds + 1):
                for scheduler in SCHEDULERS:
                    say(f"drain/{workload}: round {number} of {rounds}, {scheduler} ...")
                    yield drain.run(scheduler, number)

    return Bench(f"drain/{workload}", rounds=3, run=run, report=drain_report)


def _burst(links: str) -> Bench:
    def run(rounds: int, say: Say) -> Iterator[BurstResult]:
        with Burst(links) as burst:
            for seed in range(1, rounds + 1):
                say(f"burst/{links}: draw {seed} of {rounds}, {' and '.join(SCHEDULERS)} ...")
                yield from burst.run(seed)

    return Bench(f"burst/{links}", rounds=5, run=run, report=burst_report)


def _cycle(workload: CycleWorkload) -> Bench:
    def run(rounds: int, say: Say) -> Iterator[CycleResult]:
        say(f"cycle/{workload.name}: {rounds} rounds, with NetworkTraffic and without ...")
        cycle = Cycle(workload)
        yield from map(cycle.run, range(1, rounds + 1))

    return Bench(f"cycle/{workload.name}", rounds=8, run=run, report=cycle_report)


def _poll() -> Bench:
    def run(rounds: int, say: Say) -> Iterator[PollResult]:
        say("cycle/poll: the polls of five minutes ...")
        yield from Poll().run()

    return Bench("cycle/poll", rounds=1, run=run, report=poll_report)


def _decide() -> Bench:
    def run(rounds: int, say: Say) -> Iterator[RecordedResult]:
        for number in range(1, rounds + 1):
            say(f"decide/recorded: round {number} of {rounds} ...")
            yield decide_recorded(number)

    return Bench("decide/recorded", rounds=1, run=run, report=recorded_report)


def _extender_names() -> Bench:
    def run(rounds: int, say: Say) -> Iterator[NamesResult]:
        with ExtenderBench(NAMES_SECONDS, rounds) as bench:
            for number, arrivals in itertools.product(range(1, rounds + 1), (EVEN, RANDOM)):
                say(f"extender/names: round {number} of {rounds}, requests {arrivals} ...")
                yield from bench.names(arrivals, number)

    return Bench("extender/names", rounds=3, run=run, report=names_report)


def _extender_nodes() -> Bench:
    def run(rounds: int, say: Say) -> Iterator[WholeNodesResult]:
        with ExtenderBench(0.0, rounds) as bench:
            for number, nodes in itertools.product(range(1, rounds + 1), (1000, 5000)):
                say(f"extender/nodes: round {number} of {rounds}, {nodes} whole nodes ...")
                yield from bench.whole_nodes(nodes, number)

    return Bench("extender/nodes", rounds=3, run=run, report=whole_nodes_report)


BENCHES = (
    _drain(Workload("basic", nodes=100, pods=3000)),
    _burst("equal"),
    _burst("mixed"),
    _cycle(CycleWorkload("one-shape", shapes=1)),
    _cycle(CycleWorkload("twenty-shapes", shapes=20)),
    _cycle(CycleWorkload("twenty-owners", shapes=20, has_owners=True)),
    _poll(),
    _decide(),
    _extender_names(),
    _extender_nodes(),
)

main()
