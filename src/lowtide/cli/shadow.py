"""`lowtide shadow`: what these plugins would have done with the pods that others place."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.control import strip_control_codes
from rich.table import Table
from rich.text import Text

from lowtide.app.clocks import steady_clock
from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import build_for_cluster, make_registry
from lowtide.app.shadow import ShadowApp
from lowtide.cli.beside_options import BesideOptions, beside_options
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.cli.logging_options import logging_options, start_logging
from lowtide.cli.output_files import OutputFile, write_text
from lowtide.cli.running import run, stop_on_signals
from lowtide.cli.serving_options import serving_options
from lowtide.logs import Log
from lowtide.server.serving import NOT_SERVING, Serving
from lowtide.simulator.html_report import shadow_page
from lowtide.simulator.shadow_report import Difference, ShadowSummary

log = Log("shadow")

DEFAULT_PORT = 10261
DIFFERENCES_SHOWN = 20
_WIDTH_WITHOUT_TERMINAL = 140


@click.command()
@beside_options("The KubeSchedulerConfiguration to try.")
@click.option(
    "--report",
    type=OutputFile(),
    metavar="FILE.html",
    help="Write all of it as one page in the end.",
)
@serving_options(
    "--port",
    default_port=DEFAULT_PORT,
    port_help="Port of the page, health and metrics; 0 serves nothing.",
)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@logging_options
@click.pass_obj
def shadow(
    plugins: dict[str, type[Any]],
    /,
    beside: BesideOptions,
    report: Path | None,
    serving: Serving,
    output: str,
    verbosity: int,
    logging_format: str,
) -> None:
    """Compares what others decide with its own, and writes nothing.

    It decides for every pod that other schedulers place. Permissions to list and watch are enough.
    At the end (--for, or Ctrl-C) it prints how often it agrees, which pods would be elsewhere and
    why, and how busy the hottest link would have been. Meanwhile the page shows it.
    """
    start_logging(verbosity, logging_format)
    with reported_in_one_sentence():
        loaded = beside.config.read()
        profiles = build_for_cluster(make_registry(plugins), loaded, NoBinder(), log).profiles
        served = serving if serving.port else NOT_SERVING
        parts = beside.parts(loaded, steady_clock())
        summary = run(_run(ShadowApp(parts, profiles, _tell, served)))
        print_summary(summary, output)
        if report is not None:
            write_text(report, shadow_page(summary))


async def _run(app: ShadowApp) -> ShadowSummary:
    stop_on_signals(app.stop)
    return await app.run()


def _tell(difference: Difference) -> None:
    if log.enabled(2):
        log.v(
            2,
            "A pod would be elsewhere",
            pod=difference.pod,
            node=difference.node,
            predictedNode=difference.predicted_node or "nowhere",
            reason=difference.reason,
        )


def print_summary(summary: ShadowSummary, output: str) -> None:
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(summary), indent=2))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH_WITHOUT_TERMINAL)

    def say(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    pods = "1 pod was" if summary.pods == 1 else f"{summary.pods} pods were"
    nodes = "1 node" if summary.nodes == 1 else f"{summary.nodes} nodes"
    minutes = (summary.until - summary.since) / 60
    say(f"{pods} placed on {nodes} in {minutes:.1f} minutes.")
    if summary.agreed_share is None:
        say("Nothing to compare: no pod was placed meanwhile.")
    else:
        counted = ", ".join(f"{count} {name}" for name, count in summary.agreement.items() if count)
        say(f"Agreement: {summary.agreed_share:.1%} ({counted}).")
    for line in _links(summary):
        say(line)
    if summary.differences:
        console.print(_differences(summary))


def _links(summary: ShadowSummary) -> Iterator[str]:
    measured, links = summary.measured, summary.links
    if measured is None:
        yield "Links: nothing was measured; NetworkTraffic and its Prometheus are needed for that."
        return
    yield (
        f"Hottest link: {measured.peak:.0%} ({measured.peak_node}); 95th percentile "
        f"{measured.p95:.0%}; {measured.counted}{measured.averaging}."
    )
    if links is not None:
        yield (
            f"With what was just placed: {links.hottest:.0%} ({links.hottest_node}) -> "
            f"{links.predicted_hottest:.0%} ({links.predicted_hottest_node}) predicted; "
            f"highest 95th percentile {links.highest_p95:.0%} -> {links.predicted_highest_p95:.0%}."
        )


def _differences(summary: ShadowSummary) -> Table:
    shown = summary.differences[-DIFFERENCES_SHOWN:]
    title = f"the last {len(shown)} of {summary.elsewhere} pods that would be elsewhere"
    table = Table(title=title)
    for heading in ("pod", "is on", "would be on", "points", "because"):
        table.add_column(heading, no_wrap=heading != "because")
    for each in shown:
        points = "" if each.points is None else f"+{each.points}"
        cells = (each.pod, each.node, each.predicted_node or "nowhere", points, each.reason)
        table.add_row(*(Text(strip_control_codes(cell)) for cell in cells))
    return table
