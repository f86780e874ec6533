"""`lowtide record FILE`: a cluster and its Prometheus, written down from outside."""

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import click
import uvloop

from lowtide.app.beside import BesideParts
from lowtide.app.clocks import steady_clock
from lowtide.app.no_binder import NoBinder
from lowtide.app.record import RecordApp
from lowtide.app.recording import recorder_maker
from lowtide.app.registry import build_for_cluster, make_registry, read_config
from lowtide.cli.cluster_options import access_for, cluster_options
from lowtide.cli.errors import told_in_one_sentence
from lowtide.cli.logging_options import logging_options, start_logging
from lowtide.cli.scheduler import Seconds
from lowtide.logs import Log
from lowtide.records.recording_options import RecordingOptions

log = Log("record")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="A KubeSchedulerConfiguration: its rules say what is watched and measured.",
)
@cluster_options
@click.option(
    "--prometheus",
    "prometheus_address",
    metavar="URL",
    help="Without --config: kube-scheduler's default rules and NetworkTraffic, by this Prometheus.",
)
@click.option("--for", "for_seconds", type=Seconds(), help="[default: until Ctrl-C]")
@click.option("--hash-names", is_flag=True, help="Record names that nobody can read.")
@click.option(
    "--annotation",
    "annotations",
    multiple=True,
    metavar="KEY",
    help="An annotation to record besides those that Lowtide's rules read.",
)
@logging_options
@click.pass_obj
def record(
    plugins: dict[str, type[Any]],
    /,
    file: Path,
    config_file: Path | None,
    kubeconfig: str | None,
    master: str | None,
    prometheus_address: str | None,
    for_seconds: float | None,
    hash_names: bool,
    annotations: tuple[str, ...],
    verbosity: int,
    logging_format: str,
) -> None:
    """Writes what happens on a cluster to FILE, beside any scheduler, for `lowtide replay`.

    Rights to list and watch are enough. Secrets and environment variables are never written.
    """
    start_logging(verbosity, logging_format)
    if config_file is not None and prometheus_address is not None:
        raise click.UsageError("--prometheus is for runs without --config; name it in the file")
    with told_in_one_sentence():
        loaded = read_config(config_file, prometheus_address)
        profiles = build_for_cluster(make_registry(plugins), loaded, NoBinder(), log).profiles
        clock = steady_clock()
        make_recorder = recorder_maker(
            RecordingOptions(file, hash_names, annotations),
            loaded,
            clock=clock,
            wall_clock=time.time,
            is_from_outside=True,
        )
        parts = BesideParts(
            access=access_for(loaded.config, kubeconfig=kubeconfig, master=master),
            clock=clock,
            wall_clock=time.time,
            for_seconds=for_seconds,
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            count = runner.run(_run(RecordApp(parts, profiles, make_recorder)))
    click.echo(f"{count} events are in {file}; `lowtide replay {file}` compares")


async def _run(app: RecordApp) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, app.stop)
    await app.run()
    return app.event_count
