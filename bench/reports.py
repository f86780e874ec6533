"""Tables of what the benchmarks found, and lines that compare it with what was aimed at.

Called by `make bench` after the last run."""

import statistics
from collections.abc import Iterable, Sequence

from rich.table import Table

from burst import BurstResult
from cycle import CycleResult
from drain import LOWTIDE, SCHEDULERS
from extender import NamesResult, WholeNodesResult
from poll import TRAFFIC, PollResult
from recorded import RecordedResult
from report_lines import Compared, Report, spread

MEDIAN_PEAK_OVER_OPTIMUM = 1.5
WORST_PEAK_OVER_OPTIMUM = 4.0
FEWEST_NODES_USED = 20
CYCLE_RATIO = 1.20
POLL_MS = 100.0
RECORDED_SECONDS = 90.0
NAMES_P99_MS = 10.0
WHOLE_NODES_P99_MS = {1000: 150.0, 5000: 1000.0}
EXTENDER_MEMORY_MB = 500.0


def burst_report(results: Sequence[BurstResult]) -> Report:
    yield _table(
        ("links", "nodes", "pods", "draw", "scheduler"),
        ("peak", "optimum", "peak/optimum", "nodes used"),
        (
            (
                *(each.links, each.nodes, each.pods, each.seed, each.scheduler),
                f"{each.peak:.2f}",
                f"{each.optimum:.2f}",
                f"{each.peak_over_optimum:.2f}",
                each.nodes_used,
            )
            for each in results
        ),
    )
    for links in dict.fromkeys(each.links for each in results):
        for scheduler in SCHEDULERS:
            found = [each for each in results if (each.links, each.scheduler) == (links, scheduler)]
            ratios = [each.peak_over_optimum for each in found]
            fewest = min(each.nodes_used for each in found)
            line = (
                f"burst, {links} links, {scheduler}: peak {spread(ratios)} times the optimum, "
                f"at least {fewest} nodes used"
            )
            is_met = (
                statistics.median(ratios) <= MEDIAN_PEAK_OVER_OPTIMUM
                and max(ratios) <= WORST_PEAK_OVER_OPTIMUM
                and fewest >= FEWEST_NODES_USED
            )
            goal = (
                f"at most {MEDIAN_PEAK_OVER_OPTIMUM:g} in the median, never above "
                f"{WORST_PEAK_OVER_OPTIMUM:g}, {FEWEST_NODES_USED} nodes"
            )
            yield Compared(line, goal, is_met) if scheduler == LOWTIDE else line


def cycle_report(results: Sequence[CycleResult]) -> Report:
    yield _table(
        ("pods", "nodes", "shapes", "round"),
        ("µs/pod without NetworkTraffic", "µs/pod with", "with/without", "of it publishing"),
        (
            (
                *(each.workload, each.nodes, each.shapes, each.round),
                f"{each.without_us_per_pod:.0f}",
                f"{each.with_us_per_pod:.0f}",
                f"{each.ratio:.2f}",
                f"{each.publish_ms:.0f} ms in {each.pods} pods",
            )
            for each in results
        ),
    )
    for workload in dict.fromkeys(each.workload for each in results):
        ratios = [each.ratio for each in results if each.workload == workload]
        yield Compared(
            f"cycle, {workload}: with NetworkTraffic {spread(ratios)} times the CPU",
            f"at most {CYCLE_RATIO:.2f} in the median",
            is_met=statistics.median(ratios) <= CYCLE_RATIO,
        )


def poll_report(results: Sequence[PollResult]) -> Report:
    kinds = dict.fromkeys(each.asked for each in results)
    by_kind = {kind: [each.cpu_ms for each in results if each.asked == kind] for kind in kinds}
    yield _table(
        ("a poll that asks for", "nodes"),
        ("polls", "CPU ms, median", "lowest", "highest"),
        (
            (
                *(kind, results[0].nodes, len(found)),
                f"{statistics.median(found):.0f}",
                f"{min(found):.0f}",
                f"{max(found):.0f}",
            )
            for kind, found in by_kind.items()
        ),
    )
    median_ms = statistics.median(by_kind[TRAFFIC])
    yield Compared(
        f"poll, {results[0].nodes} nodes: {median_ms:.0f} ms of CPU in the median",
        f"under {POLL_MS:.0f} ms",
        is_met=median_ms < POLL_MS,
    )


def recorded_report(results: Sequence[RecordedResult]) -> Report:
    slowest = max(results, key=lambda each: each.seconds)
    yield Compared(
        f"decide, {slowest.cases} recorded decisions: {slowest.seconds:.0f} s, "
        f"{slowest.ms_per_case:.1f} ms each",
        f"under {RECORDED_SECONDS:.0f} s",
        is_met=slowest.seconds < RECORDED_SECONDS,
    )


def names_report(results: Sequence[NamesResult]) -> Report:
    yield _table(
        ("requests come", "verb", "names", "round"),
        ("requests", "p50 ms", "p99 ms", "highest", "of p99 unsent", "neutral", "CPU", "others"),
        (
            (
                *(each.arrivals, each.verb, each.nodes, each.round, each.requests),
                f"{each.p50_ms:.1f}",
                f"{each.p99_ms:.1f}",
                f"{each.max_ms:.1f}",
                f"{each.sent_late_p99_ms:.1f}",
                each.neutral,
                f"{100 * each.cpu_share:.0f} %",
                f"{each.others_cores:.2f}",
            )
            for each in results
        ),
    )
    for arrivals, verb in dict.fromkeys((each.arrivals, each.verb) for each in results):
        found = [each for each in results if (each.arrivals, each.verb) == (arrivals, verb)]
        p99_ms = [each.p99_ms for each in found]
        neutral = sum(each.neutral for each in found)
        yield Compared(
            f"extender, {verb}, requests {arrivals}: p99 {spread(p99_ms)} ms, "
            f"{neutral} neutral answers",
            f"under {NAMES_P99_MS:.0f} ms in the median and no neutral answer",
            is_met=statistics.median(p99_ms) < NAMES_P99_MS and not neutral,
        )


def whole_nodes_report(results: Sequence[WholeNodesResult]) -> Report:
    yield _table(
        ("asked with whole nodes", "nodes", "round"),
        ("requests", "MB there", "and back", "p50 ms", "p99 ms", "neutral", "peak MB", "others"),
        (
            (
                *(each.asked, each.nodes, each.round, each.requests),
                f"{each.request_mb:.0f}",
                f"{each.answer_mb:.1f}",
                f"{each.p50_ms:.0f}",
                f"{each.p99_ms:.0f}",
                each.neutral,
                f"{each.peak_memory_mb:.0f}",
                f"{each.others_cores:.2f}",
            )
            for each in results
        ),
    )
    for asked, nodes in dict.fromkeys((each.asked, each.nodes) for each in results):
        found = [each for each in results if (each.asked, each.nodes) == (asked, nodes)]
        p99_ms, most_ms = [each.p99_ms for each in found], WHOLE_NODES_P99_MS[nodes]
        neutral = sum(each.neutral for each in found)
        yield Compared(
            f"extender, {nodes} whole nodes, {asked}: p99 {spread(p99_ms)} ms, "
            f"{neutral} neutral answers",
            f"under {most_ms:.0f} ms in the median and no neutral answer",
            is_met=statistics.median(p99_ms) < most_ms and not neutral,
        )
    peak_mb = max(each.peak_memory_mb for each in results)
    yield Compared(
        f"extender: {peak_mb:.0f} MB of memory at most",
        f"under {EXTENDER_MEMORY_MB:.0f} MB",
        is_met=peak_mb < EXTENDER_MEMORY_MB,
    )


def _table(names: Iterable[str], numbers: Iterable[str], rows: Iterable[Sequence[object]]) -> Table:
    table = Table()
    for heading in names:
        table.add_column(heading)
    for heading in numbers:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*map(str, row))
    return table
