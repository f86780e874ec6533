"""Every benchmark of `make bench` by its name: how it is run, and what reports on it."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from burst import Burst, BurstResult
from cycle import Cycle, CycleResult, CycleWorkload
from decide import Decide, DecideResult, DecideWorkload
from decide_report import decide_report, decide_workloads
from drain import LOWTIDE, NONE, SCHEDULERS, Drain, DrainResult
from drain_steady import Steady, SteadyResult
from drain_traffic import Traffic
from extender import (
    EVEN,
    RANDOM,
    ExtenderBench,
    NamesResult,
    WholeNodesResult,
)
from flame import Flame
from flame_scheduler import LookedAtDrain
from growth import growth_report, growth_workloads
from page import PageResult, measure_page, page_report
from poll import Poll, PollResult
from preempt import PreemptResult, preempt, preempt_report
from ready import Ready, ReadyResult
from ready_report import ready_report
from recorded import RecordedResult, decide_recorded
from replay import ReplayResult, replay_report, replays
from report_lines import Report
from reports import (
    burst_report,
    cycle_report,
    names_report,
    poll_report,
    recorded_report,
    whole_nodes_report,
)
from reports_drain import (
    PACES,
    SIMPLE,
    drain_report,
    steady_report,
    traffic_report,
)
from seeds_queries import SeedsResult
from workloads import DRAINED, Workload

NAMES_SECONDS = 60.0
# Drains, decisions, traffic and start, in under an hour on a slow machine too. Others that have a
# goal run where they are named, or all.
BY_DEFAULT = (
    *(f"drain/{name}/5000" for name in PACES),
    *(f"decide/{name}/5000" for name in ("one-shape", "replicaset", "all-different", "affinity")),
    "steady",
    "traffic",
    "ready",
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


def all_benches(turns: Sequence[str]) -> tuple[Bench, ...]:
    return (
        *(
            _drain(Workload.named(name, nodes), turns)
            for nodes in (5000, 1000, 100)
            for name in DRAINED
        ),
        _drain(Workload.named("fair", 5000), turns),
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
        with Traffic(Workload.named("traffic", 5000)) as drain:
            for number in range(1, rounds + 1):
                for turn in (NONE, LOWTIDE):
                    say(f"traffic: round {number} of {rounds}, {turn} ...")
                    yield drain.run(turn, number)
                say(f"traffic: round {number} of {rounds}, the queries of the seeds' plugin ...")
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
