"""`lowtide demo`: all of it on one machine."""

import sys
import time

import click
from rich.console import Console

from lowtide.app.clocks import steady_clock
from lowtide.app.demo import Demo
from lowtide.app.demo_view import LiveView, PlainView
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.cli.logging_options import start_logging
from lowtide.cli.running import run, stop_on_signals


@click.command()
@click.option(
    "--for",
    "for_seconds",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="End after this many seconds. [default: at Ctrl-C]",
)
@click.option("--plain", is_flag=True, help="Lines instead of a moving table.")
@click.option(
    "--page-port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the page, on this machine only. [default: any that is free]",
)
def demo(for_seconds: float | None, plain: bool, page_port: int) -> None:
    """Shows what Lowtide does on one machine, with nothing to install.

    No cluster and no Prometheus are needed: there is an embedded cluster of 12 nodes with links of
    1, 10 and 25 Gb/s, traffic that shifts from node to node, and the same scheduler as in
    production: five pods are deployed every ten seconds, and the oldest ones go. It goes on until
    Ctrl-C, or for --for SECONDS.
    """
    # Lines would tear the table apart, and what they tell is in it.
    start_logging(-1, "text")
    console = Console(width=None if sys.stdout.isatty() else 160)
    view = LiveView(console) if console.is_terminal and not plain else PlainView(console)
    with reported_in_one_sentence():
        demo = Demo(
            view,
            clock=steady_clock(),
            wall_clock=time.time,
            for_seconds=for_seconds,
            page_port=page_port,
        )
        run(_run(demo))


async def _run(demo: Demo) -> None:
    stop_on_signals(demo.stop)
    await demo.run()
