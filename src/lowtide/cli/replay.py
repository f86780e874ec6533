"""`lowtide replay`: a recording decided again, and what came out differently."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import Progress as Bar
from rich.table import Table

from lowtide.app.garbage import look_seldom_for_garbage
from lowtide.app.registry import make_registry
from lowtide.app.replay import (
    Comparison,
    Progress,
    Replayed,
    compare,
    is_from_outside,
    shadowed,
)
from lowtide.app.replay import replay as replayed
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.cli.output_files import OutputFile, write_text
from lowtide.cli.shadow import print_summary
from lowtide.records.replaying import Difference
from lowtide.simulator.html_report import comparison_page
from lowtide.simulator.plot import chart_of_courses

ELSEWHERE_SHOWN = 20
_WIDTH_WITHOUT_TERMINAL = 140


@click.command()
@click.argument("recording", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--config",
    "config_files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A KubeSchedulerConfiguration to compare with what was recorded; may be repeated.",
)
@click.option(
    "--plot",
    type=OutputFile(),
    metavar="FILE.svg",
    help="With --config: draw the busiest link over time.",
)
@click.option(
    "--report",
    type=OutputFile(),
    metavar="FILE.html",
    help="With --config: write all of it as one page.",
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_obj
def replay(
    plugins: dict[str, type[Any]],
    recording: Path,
    config_files: tuple[Path, ...],
    plot: Path | None,
    report: Path | None,
    output: str,
) -> None:
    """Decides again what RECORDING holds.

    RECORDING is a file that `lowtide scheduler --record` wrote, or `lowtide record`.

    Without --config: event by event under the recorded configuration, as a check. Every decision
    has to come out the same; each that does not is named, and the exit status is then 1. A file of
    `lowtide record` holds no decisions: told is what the plugins would have decided for each pod.

    With --config: the same arrivals under each configuration, on virtual time, side by side with
    what was recorded: how busy links would have been, which pods wait, which go elsewhere and why.
    """
    if (plot or report) and not config_files:
        raise click.UsageError("--plot and --report compare configurations: give --config too")
    look_seldom_for_garbage()
    with reported_in_one_sentence():
        if config_files:
            with _bar() as progress:
                comparison = compare(recording, make_registry(plugins), config_files, progress)
            _print_comparison(comparison, output)
            courses = {row.name: row.course for row in comparison.rows}
            drawn = ""
            if any(courses.values()):
                drawn = chart_of_courses(courses, recording.name)
            elif plot is not None:
                print("warning: nothing was measured that could be drawn", file=sys.stderr)
            if plot is not None and drawn:
                write_text(plot, drawn)
            if report is not None:
                write_text(report, comparison_page(recording.name, comparison.rows, drawn))
            return
        if is_from_outside(recording):
            with _bar() as progress:
                summary, warnings = shadowed(recording, make_registry(plugins), progress)
            for warning in warnings:
                print(f"warning: {warning}", file=sys.stderr)
            print_summary(summary, output)
            return
        with _bar() as progress:
            made = replayed(recording, make_registry(plugins), None, progress)
        for warning in made.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        if output == "json":
            print(_json(made))
        else:
            for difference in made.differences:
                print(_in_words(difference))
            if made.different_count > len(made.differences):
                print(f"and {made.different_count - len(made.differences)} more")
            print(_summary(made))
        sys.exit(1 if made.different_count else 0)


@contextmanager
def _bar() -> Iterator[Progress]:
    """On a terminal alone, and not in the way of what is printed."""
    console = Console(stderr=True)
    with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("replaying", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print_comparison(comparison: Comparison, output: str) -> None:
    for warning in comparison.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if output == "json":
        told = {"rows": comparison.rows, "warnings": comparison.warnings}
        print(msgspec.json.encode(told).decode())
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH_WITHOUT_TERMINAL)
    console.print(_figures(comparison))
    for row in comparison.rows[1:]:
        for each in row.moved_pods[:ELSEWHERE_SHOWN]:
            because = f": {each.reason}" if each.reason else ""
            nodes = f"{each.recorded_node or 'no node'} -> {each.node or 'no node'}"
            print(f"{row.name}: {each.pod}: {nodes}{because}")
        if len(row.moved_pods) > ELSEWHERE_SHOWN:
            more = len(row.moved_pods) - ELSEWHERE_SHOWN
            print(f"{row.name}: and {more} more pods; --output json has all of them")


def _figures(comparison: Comparison) -> Table:
    table = Table(caption=_readings(comparison), caption_justify="left")
    table.add_column("configuration")
    for heading in (
        *("placed", "pending", "evicted", "elsewhere", "hottest link", "95th percentile"),
        *("fairness", "CPU imbalance"),
    ):
        table.add_column(heading, justify="right")
    for number, row in enumerate(comparison.rows):
        elsewhere = "" if number == 0 else str(len(row.moved_pods))
        links = row.links
        shares = ("", "", "", "")
        if links is not None:
            shares = (
                f"{links.peak:.0%} ({links.peak_node})",
                f"{links.p95:.0%}",
                f"{links.fairness:.2f}",
                links.cpu_imbalance_in_words,
            )
        counts = map(str, (row.placed, row.pending, row.evicted))
        table.add_row(row.name, *counts, elsewhere, *shares)
    return table


def _readings(comparison: Comparison) -> str | None:
    """The line about links; None if none were recorded."""
    links = comparison.rows[0].links
    return None if links is None else f"Links: {links.counted}{links.averaging}."


def _summary(made: Replayed) -> str:
    count, different = made.decision_count, made.different_count
    if not count and not different:
        return "no decision is in it"
    decisions = "1 decision" if count == 1 else f"{count} decisions"
    if not different:
        return f"{decisions}, all the same"
    return f"{decisions}; {different} came out differently"


def _in_words(difference: Difference) -> str:
    nodes = f"{difference.recorded_node or 'no node'} -> {difference.replayed_node or 'no node'}"
    return (
        f"line {difference.line}: {difference.pod} (attempt {difference.attempt}): {nodes}: "
        f"{difference.what}"
    )


def _json(made: Replayed) -> str:
    told = {
        "events": made.event_count,
        "decisions": made.decision_count,
        "different": made.different_count,
        "differences": made.differences,
        "warnings": made.warnings,
    }
    return msgspec.json.encode(told).decode()
