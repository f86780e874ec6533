"""`lowtide scheduler`: options into the parts of a running scheduler."""

import time
from typing import Any

import click
from msgspec.structs import replace

from lowtide.app.clocks import Clock, steady_clock
from lowtide.app.registry import build_for_cluster, make_registry
from lowtide.app.scheduler import MakeRecorder, SchedulerApp, SchedulerParts
from lowtide.cli.cluster_options import access_for, cluster_options
from lowtide.cli.config_options import ConfigOptions, config_options
from lowtide.cli.decisions_options import decisions_options
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.cli.kube_scheduler_flags import kube_scheduler_flags, log_ignored
from lowtide.cli.logging_options import logging_options, start_logging
from lowtide.cli.recording_options import recording_options
from lowtide.cli.running import compare_on_signal, run, stop_on_signals
from lowtide.cli.seconds import Seconds
from lowtide.cli.serving_options import serving_options
from lowtide.cli.true_or_false import TrueOrFalse
from lowtide.config.errors import ConfigError, path_text
from lowtide.config.load import LoadedConfig
from lowtide.config.types import KubeSchedulerConfiguration, LeaderElection
from lowtide.config.validation import validate
from lowtide.logs import Log
from lowtide.records.journal import Journal
from lowtide.records.recording_options import RecordingOptions
from lowtide.server.serving import NOT_SERVING, Serving

log = Log("scheduler")


@click.command()
@config_options("A KubeSchedulerConfiguration.")
@cluster_options
@serving_options(
    "--secure-port",
    default_port=10259,
    port_help="Port of health and metrics; 0 serves nothing.",
)
@click.option(
    "--leader-elect",
    type=TrueOrFalse(),
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
@decisions_options
@click.option(
    "--explain-events",
    is_flag=True,
    help="Say in the Scheduled Events how busy the node is, its score, and the next best node.",
)
@recording_options
@kube_scheduler_flags
@logging_options
@click.pass_obj
def scheduler(
    plugins: dict[str, type[Any]],
    /,
    config: ConfigOptions,
    kubeconfig: str | None,
    master: str | None,
    serving: Serving,
    journal: Journal | None,
    explain_events: bool,
    recording: RecordingOptions | None,
    verbosity: int,
    logging_format: str,
    ignored_flags: list[str],
    **election: Any,
) -> None:
    """Runs a scheduler, which binds the pending pods of its profiles.

    Those are the pods whose schedulerName is a profile's. Without --config it serves the
    schedulerName `lowtide` with kube-scheduler's default plugins.
    """
    start_logging(verbosity, logging_format)
    log_ignored(ignored_flags)
    with reported_in_one_sentence():
        loaded = config.read()
        settings = _with_election(loaded.config, election)
        problems = [f"{path_text(each.path)}: {each.text}" for each in validate(settings)]
        if problems:
            raise ConfigError(problems)
        registry = make_registry(plugins)
        clock = steady_clock()
        parts = SchedulerParts(
            access=access_for(settings, kubeconfig=kubeconfig, master=master),
            config=settings,
            make_profiles=lambda binder: build_for_cluster(registry, loaded, binder, log).profiles,
            clock=clock,
            wall_clock=time.time,
            serving=serving if serving.port else NOT_SERVING,
            keeps_every_score=log.enabled(2),
            journal=journal,
            explains_events=explain_events,
            make_recorder=None
            if recording is None
            else _recorder_maker(recording, loaded, clock=clock, keeps_every_score=log.enabled(2)),
        )
        run(_run(parts))


async def _run(parts: SchedulerParts) -> None:
    app = SchedulerApp(parts)
    stop_on_signals(app.stop)
    compare_on_signal(app.compare)
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
    changed = {fields[name]: value for name, value in given.items() if value not in (None, "")}
    leader_election: LeaderElection = replace(config.leader_election, **changed)
    return replace(config, leader_election=leader_election)
