"""`lowtide record FILE`: a cluster and its Prometheus, written down from outside."""

import time
from pathlib import Path
from typing import Any

import click

from lowtide.app.clocks import steady_clock
from lowtide.app.no_binder import NoBinder
from lowtide.app.record import RecordApp
from lowtide.app.recording import recorder_maker
from lowtide.app.registry import build_for_cluster, make_registry
from lowtide.cli.beside_options import BesideOptions, beside_options
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.cli.logging_options import logging_options, start_logging
from lowtide.cli.running import run, stop_on_signals
from lowtide.logs import Log
from lowtide.records.recording_options import RecordingOptions

log = Log("record")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@beside_options("A KubeSchedulerConfiguration: its plugins say what is watched and measured.")
@click.option("--hash-names", is_flag=True, help="Record names that nobody can read.")
@click.option(
    "--annotation",
    "annotations",
    multiple=True,
    metavar="KEY",
    help="An annotation to record besides those that Lowtide's plugins read.",
)
@logging_options
@click.pass_obj
def record(
    plugins: dict[str, type[Any]],
    /,
    file: Path,
    beside: BesideOptions,
    hash_names: bool,
    annotations: tuple[str, ...],
    verbosity: int,
    logging_format: str,
) -> None:
    """Writes what happens on a cluster to FILE, for `lowtide replay`.

    Runs beside any scheduler. Permissions to list and watch are enough. Secrets and environment
    variables are never written.
    """
    start_logging(verbosity, logging_format)
    with reported_in_one_sentence():
        loaded = beside.config.read()
        profiles = build_for_cluster(make_registry(plugins), loaded, NoBinder(), log).profiles
        clock = steady_clock()
        make_recorder = recorder_maker(
            RecordingOptions(file, hash_names, annotations),
            loaded,
            clock=clock,
            wall_clock=time.time,
            is_from_outside=True,
        )
        app = RecordApp(beside.parts(loaded, clock), profiles, make_recorder)
        count = run(_run(app))
    click.echo(f"{count} events are in {file}; `lowtide replay {file}` compares")


async def _run(app: RecordApp) -> int:
    stop_on_signals(app.stop)
    await app.run()
    return app.event_count
