"""Tables of what drains found, and lines that compare it with what is aimed at.

Called by `make bench` after the last run. Ratios are taken round by round: both sides of one were
measured within a minute or two on the same API server."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from drain import KUBE_SCHEDULER, KUBE_SCHEDULER_ALL_NODES, LOWTIDE, NONE, DrainResult
from drain_steady import SteadyResult
from report_lines import Compared, Report, spread
from seeds_queries import SeedsResult

Figure = Callable[[DrainResult], float | None]

GOAL_NODES = 5000
# What kube-scheduler took on the machine of 2 cores that the first figures are from.
FIRST_CPU_MS = 2.9
LEAST_OF_LIMIT = 0.65
MOST_CPU = 1 / 3
MOST_STEADY_P99 = 1.1
# On a machine that does nothing else it is 0 to 1 %, of the kernel's own.
MOST_FOR_OTHERS = 0.05
# The NetworkTraffic of the seeds asks one query for each node and pod.
LEAST_TIMES_THE_SEEDS = 300


@dataclass(frozen=True, slots=True)
class Pace:
    """How many times kube-scheduler's pods/s, at least."""

    to_last_binding: float | None
    to_last_event: float | None


SIMPLE = Pace(3.0, 1.8)
HARD = Pace(3.5, 2.0)
PACES: Mapping[str, Pace] = {
    "basic": SIMPLE,
    "mixed-sizes": SIMPLE,
    "node-affinity": HARD,
    "spread-preferred": HARD,
    "spread-required": HARD,
    "anti-affinity": HARD,
    "affinity": HARD,
}


@dataclass(frozen=True, slots=True)
class Goal:
    """What one figure is to be, as a ratio to that of `other`; what is left undone meets none."""

    what: str
    figure: Figure
    other: str
    least: float | None = None
    most: float | None = None

    def __str__(self) -> str:
        if self.least is not None:
            return f"at least {self.least:.2f} in the median"
        return f"at most {self.most:.2f} in the median"

    @property
    def is_any(self) -> bool:
        """Else the figure is told alone."""
        return self.least is not None or self.most is not None

    def is_met(self, median: float, results: Sequence[DrainResult]) -> bool:
        if _has_left_pods(results):
            return False
        if self.figure is with_events and any(
            _unwritten(each) for each in results if each.scheduler == LOWTIDE
        ):
            return False
        is_enough = self.least is None or median >= self.least
        return is_enough and (self.most is None or median <= self.most)


def pods_per_second(result: DrainResult) -> float | None:
    return result.pods_per_second


def with_events(result: DrainResult) -> float | None:
    return result.pods_per_second_with_events


def cpu(result: DrainResult) -> float:
    return result.scheduler_cpu_ms_per_pod


def drain_report(results: Sequence[DrainResult]) -> Report:
    yield _table(results)
    for workload, nodes in dict.fromkeys((each.workload, each.nodes) for each in results):
        found = [each for each in results if (each.workload, each.nodes) == (workload, nodes)]
        for goal in _goals(workload, nodes):
            yield from _compared(found, goal)
        if (workload, nodes) == ("basic", GOAL_NODES):
            yield from _pace_of_the_machine(found)
        yield from _warnings(found)


def steady_report(results: Sequence[SteadyResult]) -> Report:
    table = Table(title="steady load: from creation to binding, in ms")
    for heading in ("nodes", "pods", "pods/s", "scheduler", "round"):
        table.add_column(heading)
    for heading in ("p50", "p99", "highest", "CPU ms/pod", "memory MB"):
        table.add_column(heading, justify="right")
    for each in results:
        seconds = (each.p50_seconds, each.p99_seconds, each.max_seconds)
        table.add_row(
            *(str(each.nodes), str(each.pods), f"{each.pods_per_second:.0f}", each.scheduler),
            str(each.round),
            *(f"{1000 * one:.1f}" for one in seconds),
            *(f"{each.scheduler_cpu_ms_per_pod:.2f}", f"{each.rss_mb:.0f}"),
        )
    yield table
    p99 = {(each.scheduler, each.round): each.p99_seconds for each in results}
    ratios = [
        seconds / p99[KUBE_SCHEDULER, number]
        for (scheduler, number), seconds in p99.items()
        if scheduler == LOWTIDE and (KUBE_SCHEDULER, number) in p99
    ]
    if ratios:
        yield Compared(
            f"steady, {results[0].nodes} nodes: p99 {spread(ratios)} times kube-scheduler's",
            f"at most {MOST_STEADY_P99:.1f} in the median, with every pod bound",
            is_met=statistics.median(ratios) <= MOST_STEADY_P99 and not _has_left_pods(results),
        )
    for each in results:
        if each.unbound:
            name = f"steady, round {each.round}, {each.scheduler}"
            yield f"{name}: {each.unbound} of {each.pods} pods were not bound in time"


def traffic_report(results: Sequence[DrainResult | SeedsResult]) -> Report:
    drains = [each for each in results if isinstance(each, DrainResult)]
    asked = {each.round: each for each in results if isinstance(each, SeedsResult)}
    yield _table(drains)
    found = _by_round(drains, LOWTIDE, pods_per_second)
    where = f"traffic, {drains[0].nodes} nodes:"
    yield f"{where} {spread(list(found.values()), digits=0)} pods/s with NetworkTraffic on"
    ratios = [found[number] / asked[number].pods_per_second for number in found.keys() & asked]
    if ratios:
        queries = statistics.median(each.queries_per_second for each in asked.values())
        yield Compared(
            f"{where} {spread(ratios)} times the pods/s for which Prometheus answers the seeds' "
            f"plugin here, {queries:.0f} queries a second",
            f"at least {LEAST_TIMES_THE_SEEDS} in the median",
            is_met=statistics.median(ratios) >= LEAST_TIMES_THE_SEEDS
            and not _has_left_pods(drains),
        )
    yield from _compared(drains, Goal("pods/s to the last binding", pods_per_second, NONE))
    yield from _warnings(drains)


def _goals(workload: str, nodes: int) -> Iterator[Goal]:
    """Those of the workload; where nothing is aimed at, figures alone."""
    has_goal = nodes == GOAL_NODES and workload in PACES
    pace = PACES[workload] if has_goal else Pace(None, None)
    to_last_binding, to_last_event = "pods/s to the last binding", "pods/s to the last Event"
    yield Goal(to_last_binding, pods_per_second, KUBE_SCHEDULER, pace.to_last_binding)
    yield Goal(to_last_event, with_events, KUBE_SCHEDULER, pace.to_last_event)
    yield Goal("CPU per pod", cpu, KUBE_SCHEDULER, most=MOST_CPU if has_goal else None)
    yield Goal(to_last_binding, pods_per_second, KUBE_SCHEDULER_ALL_NODES)
    of_limit = LEAST_OF_LIMIT if has_goal and workload == "basic" else None
    yield Goal(to_last_binding, pods_per_second, NONE, of_limit)


def _compared(results: Sequence[DrainResult], goal: Goal) -> Iterator[str | Compared]:
    ours, theirs = (_by_round(results, name, goal.figure) for name in (LOWTIDE, goal.other))
    ratios = [ours[number] / theirs[number] for number in ours.keys() & theirs.keys()]
    first = results[0]
    other = "the raw binding limit" if goal.other == NONE else f"{goal.other}'s"
    about = f"drain, {first.workload}, {first.nodes} nodes: {goal.what}"
    if not ratios:
        if goal.is_any:
            yield Compared(f"{about} beside {other}", str(goal), is_met=None)
        return
    line = f"{about} {spread(ratios)} times {other}"
    ours_pods, their_pods = (_pods(results, name) for name in (LOWTIDE, goal.other))
    if ours_pods != their_pods:
        line += f", with {ours_pods} pods against {their_pods}"
    if goal.is_any:
        yield Compared(line, str(goal), goal.is_met(statistics.median(ratios), results))
    else:
        yield line


def _warnings(results: Sequence[DrainResult]) -> Iterator[str]:
    for each in results:
        name = f"drain, {each.workload}, {each.nodes} nodes, round {each.round}, {each.scheduler}"
        if each.unbound:
            yield f"{name}: {each.unbound} of {each.pods} pods were not bound in time"
        elif _unwritten(each) and each.scheduler != NONE:
            yield f"{name}: {_unwritten(each)} of {each.pods} Events were never written"
        if each.others_cpu_share > MOST_FOR_OTHERS:
            yield (
                f"{name}: {each.others_cpu_share:.0%} of the CPU went to other programs; measure "
                "again without them"
            )


def _has_left_pods(results: Sequence[DrainResult] | Sequence[SteadyResult]) -> bool:
    """Whether Lowtide left any pod unbound: then its figures are of less than was asked."""
    return any(each.unbound for each in results if each.scheduler == LOWTIDE)


def _unwritten(result: DrainResult) -> int:
    """Events of pods; who writes several for one pod leaves none out."""
    return max(result.pods - result.events, 0)


def _pace_of_the_machine(results: Sequence[DrainResult]) -> Iterator[str]:
    """By a program that does not change: what is measured in µs goes with it."""
    took_ms = list(_by_round(results, KUBE_SCHEDULER, cpu).values())
    if took_ms:
        times = statistics.median(took_ms) / FIRST_CPU_MS
        yield (
            f"pace of this machine now: kube-scheduler takes {spread(took_ms)} ms of CPU per basic "
            f"pod, {times:.1f} times the {FIRST_CPU_MS} where it was measured first; see with that "
            "what is told in µs"
        )


def _pods(results: Sequence[DrainResult], scheduler: str) -> int:
    return next(each.pods for each in results if each.scheduler == scheduler)


def _by_round(results: Sequence[DrainResult], scheduler: str, figure: Figure) -> dict[int, float]:
    figures = {each.round: figure(each) for each in results if each.scheduler == scheduler}
    return {number: value for number, value in figures.items() if value is not None}


def _table(results: Sequence[DrainResult]) -> Table:
    table = Table(title="drains: median of the rounds (lowest to highest)")
    for heading in ("workload", "nodes", "pods", "scheduler"):
        table.add_column(heading, no_wrap=True)
    columns: dict[str, tuple[Figure, int]] = {
        "pods/s": (pods_per_second, 0),
        "with Events": (with_events, 0),
        "CPU ms/pod": (cpu, 2),
        "API server": (lambda each: each.api_server_cpu_ms_per_pod, 2),
        "etcd": (lambda each: each.etcd_cpu_ms_per_pod, 2),
        "p50 s": (lambda each: each.p50_seconds, 1),
        "p99 s": (lambda each: each.p99_seconds, 1),
        "memory MB": (lambda each: each.rss_mb, 0),
        "nodes used": (lambda each: each.nodes_used, 0),
    }
    for heading in columns:
        table.add_column(heading, justify="right")
    keys = dict.fromkeys((each.workload, each.nodes, each.pods, each.scheduler) for each in results)
    for key in keys:
        found = [
            each
            for each in results
            if (each.workload, each.nodes, each.pods, each.scheduler) == key
        ]
        cells = (_cell(map(figure, found), digits) for figure, digits in columns.values())
        table.add_row(*map(str, key), *cells)
    return table


def _cell(figures: Iterator[float | None], digits: int) -> str:
    known = [each for each in figures if each is not None]
    if not known:
        return ""
    return spread(known, digits).replace(" (", "\n(")
