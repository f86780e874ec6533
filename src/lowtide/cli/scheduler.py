"""`lowtide scheduler`: options into the parts of a running scheduler."""

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import click
import uvloop
from msgspec.structs import replace

from lowtide.app.clocks import Clock, steady_clock
from lowtide.app.registry import build_for_cluster, make_registry, read_config
from lowtide.app.scheduler import MakeRecorder, SchedulerApp, SchedulerParts
from lowtide.cli.cluster_options import access_for, cluster_options
from lowtide.cli.errors import told_in_one_sentence
from lowtide.cli.logging_options import logging_options, start_logging
from lowtide.cli.recording_options import recording_options
from lowtide.cli.serving_options import serving_options
from lowtide.config.durations import seconds_from_duration
from lowtide.config.errors import ConfigError, path_text
from lowtide.config.load import LoadedConfig
from lowtide.config.types import KubeSchedulerConfiguration, LeaderElection
from lowtide.config.validation import validate
from lowtide.logs import Log
from lowtide.records.journal import DEFAULT_MAX_BYTES, Journal
from lowtide.records.recording_options import RecordingOptions
from lowtide.server.serving import NOT_SERVING, Serving

log = Log("scheduler")


class Seconds(click.ParamType[float]):
    """A Go duration, as kube-scheduler's flags take."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return seconds_from_duration(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a duration; right would be 15s or 1m30s", param, ctx)


FILE = click.Path(path_type=Path)
MEBIBYTE = 1024 * 1024


@click.command()
@click.option("--config", "config_file", type=FILE, help="A KubeSchedulerConfiguration.")
@cluster_options
@click.option(
    "--prometheus",
    "prometheus_address",
    metavar="URL",
    help="Without --config: switches NetworkTraffic on, asking this Prometheus.",
)
@serving_options(
    "--secure-port",
    default_port=10259,
    port_help="Port of health and metrics; 0 serves nothing.",
)
@click.option(
    "--leader-elect",
    type=bool,
    is_flag=False,
    flag_value=True,
    help="Whether to lead by a lease. [default: true]",
)
@click.option("--leader-elect-lease-duration", type=Seconds(), help="[default: 15s]")
@click.option("--leader-elect-renew-deadline", type=Seconds(), help="[default: 10s]")
@click.option("--leader-elect-retry-period", type=Seconds(), help="[default: 2s]")
@click.option(
    "--leader-elect-resource-name",
    help="Name of the lease. [default: kube-scheduler, "
    "or the first scheduler's name where no profile is default-scheduler]",
)
@click.option("--leader-elect-resource-namespace", help="[default: kube-system]")
@click.option(
    "--decisions-file",
    type=FILE,
    help="Write every decision to this file, as JSON lines; `lowtide explain` reads it.",
)
@click.option(
    "--decisions-file-max-size",
    type=click.IntRange(1),
    default=DEFAULT_MAX_BYTES // MEBIBYTE,
    show_default=True,
    metavar="MIB",
    help="Then it becomes FILE.1, and so on; three are kept besides.",
)
@click.option(
    "--explain-events",
    is_flag=True,
    help="Say in the Scheduled Events how busy the node is, its score, and the next best node.",
)
@recording_options
@logging_options
@click.pass_obj
def scheduler(
    plugins: dict[str, type[Any]],
    /,
    config_file: Path | None,
    kubeconfig: str | None,
    master: str | None,
    prometheus_address: str | None,
    serving: Serving,
    decisions_file: Path | None,
    decisions_file_max_size: int,
    explain_events: bool,
    recording: RecordingOptions | None,
    verbosity: int,
    logging_format: str,
    **election: Any,
) -> None:
    """Runs a scheduler: binds pending pods whose schedulerName is one of its profiles'.

    Without --config it serves the schedulerName `lowtide` with kube-scheduler's default rules.
    """
    start_logging(verbosity, logging_format)
    if config_file is not None and prometheus_address is not None:
        raise click.UsageError("--prometheus is for runs without --config; name it in the file")
    with told_in_one_sentence():
        loaded = read_config(config_file, prometheus_address)
        config = _with_election(loaded.config, election)
        problems = [f"{path_text(each.path)}: {each.text}" for each in validate(config)]
        if problems:
            raise ConfigError(problems)
        registry = make_registry(plugins)
        clock = steady_clock()
        parts = SchedulerParts(
            access=access_for(config, kubeconfig=kubeconfig, master=master),
            config=config,
            make_profiles=lambda binder: build_for_cluster(registry, loaded, binder, log).profiles,
            clock=clock,
            wall_clock=time.time,
            serving=serving if serving.port else NOT_SERVING,
            keeps_every_score=log.enabled(2),
            journal=None
            if decisions_file is None
            else Journal(decisions_file, decisions_file_max_size * MEBIBYTE),
            explains_events=explain_events,
            make_recorder=None
            if recording is None
            else _recorder_maker(recording, loaded, clock=clock, keeps_every_score=log.enabled(2)),
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run(parts))


async def _run(parts: SchedulerParts) -> None:
    app = SchedulerApp(parts)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, app.stop)
    log.info(
        "Starting Lowtide",
        server=parts.access.cluster.server,
        schedulerNames=list(app.profiles),
        leaderElection=parts.config.leader_election.leader_elect,
    )
    await app.run()
    log.info("Stopped")


def _recorder_maker(
    recording: RecordingOptions, loaded: LoadedConfig, *, clock: Clock, keeps_every_score: bool
) -> MakeRecorder:
    # Here, as the scheduler starts sooner without what only a recording needs.
    from lowtide.app.recording import recorder_maker

    return recorder_maker(
        recording,
        loaded,
        clock=clock,
        wall_clock=time.time,
        keeps_every_score=keeps_every_score,
    )


def _with_election(
    config: KubeSchedulerConfiguration, given: dict[str, Any]
) -> KubeSchedulerConfiguration:
    """Flags about leader election that were set win over the file, as in kube-scheduler."""
    fields = {
        "leader_elect": "leader_elect",
        "leader_elect_lease_duration": "lease_duration_seconds",
        "leader_elect_renew_deadline": "renew_deadline_seconds",
        "leader_elect_retry_period": "retry_period_seconds",
        "leader_elect_resource_name": "resource_name",
        "leader_elect_resource_namespace": "resource_namespace",
    }
    changed = {fields[name]: value for name, value in given.items() if value is not None}
    leader_election: LeaderElection = replace(config.leader_election, **changed)
    return replace(config, leader_election=leader_election)
