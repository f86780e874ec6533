"""`make bench`: Lowtide and kube-scheduler side by side on real parts, and what traffic costs.

Prints tables and writes bench/results.json. Machines are noisy: read the ratios."""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))

from rich.console import Console  # noqa: E402

from burst import Burst, BurstResult  # noqa: E402
from cycle import Cycle, CycleResult, CycleWorkload  # noqa: E402
from decide import Decide, DecideResult, DecideWorkload  # noqa: E402
from decide_report import decide_report, decide_workloads  # noqa: E402
from drain import LOWTIDE, NONE, SCHEDULERS, TURNS, Drain, DrainResult  # noqa: E402
from drain_steady import Steady, SteadyResult  # noqa: E402
from drain_traffic import Traffic  # noqa: E402
from extender import (  # noqa: E402
    EVEN,
    RANDOM,
    ExtenderBench,
    NamesResult,
    WholeNodesResult,
)
from flame import Flame  # noqa: E402
from flame_scheduler import LookedAtDrain  # noqa: E402
from growth import growth_report, growth_workloads  # noqa: E402
from page import PageResult, measure_page, page_report  # noqa: E402
from poll import Poll, PollResult  # noqa: E402
from preempt import PreemptResult, preempt, preempt_report  # noqa: E402
from progress import Progress, took_seconds  # noqa: E402
from ready import Ready, ReadyResult  # noqa: E402
from ready_report import ready_report  # noqa: E402
from recorded import RecordedResult, decide_recorded  # noqa: E402
from replay import ReplayResult, replay_report, replays  # noqa: E402
from report_lines import Compared, Report, closing  # noqa: E402
from reports import (  # noqa: E402
    burst_report,
    cycle_report,
    names_report,
    poll_report,
    recorded_report,
    whole_nodes_report,
)
from reports_drain import (  # noqa: E402
    PACES,
    SIMPLE,
    drain_report,
    steady_report,
    traffic_report,
)
from seeds_queries import SEEDS_PLUGIN, SeedsResult  # noqa: E402
from workloads import DRAINED, Workload  # noqa: E402

RESULTS = HERE / "results.json"
NAMES_SECONDS = 60.0
# What runs unless told otherwise: together under an hour.
WITH_A_GOAL = (
    *(f"drain/{name}/5000" for name in PACES),
    *(f"decide/{name}/5000" for name in ("one-shape", "replicaset", "all-different", "affinity")),
    "preempt/5000",
    "steady",
    "traffic",
    "ready",
    "page",
)

Say = Callable[[str], None]
Result = (
    DrainResult
    | BurstResult
    | CycleResult
    | DecideResult
    | PageResult
    | PollResult
    | PreemptResult
    | ReadyResult
    | RecordedResult
    | ReplayResult
    | SeedsResult
    | SteadyResult
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
    # Where the scheduler is a process of its own.
    run_looked_at: Callable[[int, Say, Flame], Iterator[Any]] | None = None


def main() -> None:
    options = _options()
    benches = _benches(options.turns)
    chosen = [bench for bench in benches if _is_chosen(bench.name, options)]
    if not chosen:
        names = ", ".join(bench.name for bench in benches)
        sys.exit(f"bench: --only {options.only} names nothing; there are {names}")
    # Not on a terminal, wide enough for the widest table.
    console = Console(width=None if sys.stdout.isatty() else 160)
    flame = None if options.flame is None else Flame(options.flame)
    started = time.monotonic()
    found: dict[Callable[[list[Any]], Report], list[Result]] = {}
    failed: list[str] = []
    expected_seconds = {
        bench.name: took_seconds(bench.name) * (options.rounds or bench.rounds) / bench.rounds
        for bench in chosen
    }
    with Progress(console, expected_seconds) as progress:
        for bench in chosen:
            progress.begin(bench.name)
            rounds = options.rounds or bench.rounds
            results: list[Result] = []
            try:
                # Looking on takes time too: such figures are not kept.
                if flame is None:
                    results = list(bench.run(rounds, progress.say))
                    _write(options.results, bench.name, results)
                else:
                    results = list(_run_looked_at(bench, rounds, progress.say, flame))
            except Exception:  # the others are worth an hour
                console.print_exception()
                failed.append(bench.name)
            found.setdefault(bench.report, []).extend(results)
    compared: list[Compared] = []
    for report, results in found.items():
        for part in report(results) if results else ():
            console.print(part, highlight=False)
            if isinstance(part, Compared):
                compared.append(part)
    for line in closing(compared):
        console.print(line, highlight=False, soft_wrap=True)
    if flame is not None:
        print(f"flame graph: {', '.join(map(str, flame.write()))}")
    print(f"took {time.monotonic() - started:.0f} s; rows in {options.results}")
    if failed:
        sys.exit(f"bench: not measured, see above: {', '.join(failed)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    names = ", ".join(bench.name for bench in _benches(TURNS))
    parser.add_argument("--only", default="", metavar="NAME", help=f"the beginning of: {names}")
    parser.add_argument("--all", action="store_true", help="else what has a goal, at 5000 nodes")
    parser.add_argument("--rounds", type=int, help="else each has its own number")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where rows are kept")
    parser.add_argument(
        "--turns",
        type=_turns,
        default=TURNS,
        metavar="NAME,NAME",
        help=f"who takes turns at drains, of {', '.join(TURNS)}",
    )
    parser.add_argument(
        "--flame", type=Path, metavar="FILE.svg", help="write where the time goes, for a browser"
    )
    return parser.parse_args()


def _turns(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in TURNS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(TURNS)}")
    return names


def _is_chosen(name: str, options: argparse.Namespace) -> bool:
    """Whole words between slashes: 5000 is not the beginning of 50000."""
    if options.only:
        return f"{name}/".startswith(f"{options.only.rstrip('/')}/")
    return options.all or name in WITH_A_GOAL


def _run_looked_at(bench: Bench, rounds: int, say: Say, flame: Flame) -> Iterator[Any]:
    if bench.run_looked_at is not None:
        yield from bench.run_looked_at(rounds, say, flame)
        return
    with flame.of_this_process():
        yield from bench.run(rounds, say)


def _write(file: Path, name: str, results: list[Result]) -> None:
    """Replaces the rows of this benchmark, and of those schedulers that took their turns."""
    rows = json.loads(file.read_text()) if file.exists() else []
    ours = [{"bench": name, **asdict(result)} for result in results]
    replaced = {(name, row.get("scheduler")) for row in ours}
    others = [row for row in rows if (row.get("bench"), row.get("scheduler")) not in replaced]
    file.write_text(json.dumps([*others, *ours], indent=1) + "\n")


def _drain(workload: Workload, turns: Sequence[str]) -> Bench:
    def run(rounds: int, say: Say) -> Iterator[DrainResult]:
        with Drain(workload) as drain:
            for number in range(1, rounds + 1):
                for scheduler in turns:
                    say(f"drain/{workload}: round {number} of {rounds}, {scheduler} ...")
                    yield drain.run(scheduler, number)

    def run_looked_at(rounds: int, say: Say, flame: Flame) -> Iterator[DrainResult]:
        with LookedAtDrain(workload, flame) as drain:
            for number in range(1, rounds + 1):
                say(f"drain/{workload}: round {number} of {rounds}, looked at ...")
                yield drain.run(LOWTIDE, number)

    # The closer the goal, the less a change of the machine's pace between two turns may count.
    rounds = 5 if PACES.get(workload.name) is SIMPLE else 3
    return Bench(f"drain/{workload}", rounds, run, drain_report, run_looked_at)


def _traffic() -> Bench:
    def run(rounds: int, say: Say) -> Iterator[DrainResult | SeedsResult]:
        say("traffic: Prometheus scrapes 5000 nodes until there are rates ...")
        with Traffic(Workload.of("traffic", 5000)) as drain:
            for number in range(1, rounds + 1):
                for turn in (NONE, LOWTIDE):
                    say(f"traffic: round {number} of {rounds}, {turn} ...")
                    yield drain.run(turn, number)
                say(f"traffic: round {number} of {rounds}, the queries of {SEEDS_PLUGIN} ...")
                yield drain.ask_like_the_seeds(number)

    return Bench("traffic", rounds=3, run=run, report=traffic_report)


def _steady() -> Bench:
    def run(rounds: int, say: Say) -> Iterator[SteadyResult]:
        with Steady() as steady:
            for number, scheduler in itertools.product(range(1, rounds + 1), SCHEDULERS):
                say(f"steady: round {number} of {rounds}, {scheduler} ...")
                yield steady.measure(scheduler, number)

    return Bench("steady", rounds=5, run=run, report=steady_report)


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


def _decide(
    name: str,
    workloads: list[DecideWorkload],
    report: Callable[[list[DecideResult]], Report],
) -> Bench:
    def run(rounds: int, say: Say) -> Iterator[DecideResult]:
        say(f"{name}: the cluster is made ...")
        decide = Decide(workloads[0])
        for workload in workloads:
            say(f"{name}{workload.kind and ', '}{workload.kind}: {rounds} rounds ...")
            decide.change_to(workload)
            yield from map(decide.run, range(1, rounds + 1))

    # A round takes a second, and a machine's pace changes within a few of them.
    return Bench(name, rounds=5, run=run, report=report)


def _ready() -> Bench:
    def run(rounds: int, say: Say, flame: Flame | None = None) -> Iterator[ReadyResult]:
        say("ready: a full cluster is made, which takes minutes ...")
        with Ready(flame) as ready:
            for number in range(1, rounds + 1):
                say(f"ready: start {number} of {rounds} ...")
                yield ready.run(number)

    return Bench("ready", rounds=3, run=run, report=ready_report, run_looked_at=run)


def _recorded() -> Bench:
    def run(rounds: int, say: Say) -> Iterator[RecordedResult]:
        for number in range(1, rounds + 1):
            say(f"recorded: round {number} of {rounds} ...")
            yield decide_recorded(number)

    return Bench("recorded", rounds=1, run=run, report=recorded_report)


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


def _benches(turns: Sequence[str]) -> tuple[Bench, ...]:
    return (
        *(
            _drain(Workload.of(name, nodes), turns)
            for nodes in (5000, 1000, 100)
            for name in DRAINED
        ),
        _drain(Workload.of("fair", 5000), turns),
        _steady(),
        _traffic(),
        _burst("equal"),
        _burst("mixed"),
        _cycle(CycleWorkload("one-shape", shapes=1)),
        _cycle(CycleWorkload("twenty-shapes", shapes=20)),
        _cycle(CycleWorkload("twenty-owners", shapes=20, has_owners=True)),
        _poll(),
        *(_decide(name, workloads, decide_report) for name, workloads in decide_workloads()),
        *(_decide(name, workloads, growth_report) for name, workloads in growth_workloads()),
        Bench("preempt/5000", rounds=3, run=preempt, report=preempt_report),
        _ready(),
        Bench("page", rounds=3, run=measure_page, report=page_report),
        Bench("replay", rounds=3, run=replays, report=replay_report),
        _recorded(),
        _extender_names(),
        _extender_nodes(),
    )


if __name__ == "__main__":
    main()
