"""`lowtide extender`: options into the parts of a running extender."""

import re
import sys
import time
from pathlib import Path
from typing import Any, Final

import click

from lowtide.app.clocks import steady_clock
from lowtide.app.extender import ExtenderApp, ExtenderParts
from lowtide.app.extender_config import check_profiles, warnings_for_extender
from lowtide.app.kube_scheduler_config import kube_scheduler_config
from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import build_for_cluster, make_registry, read_config
from lowtide.cli.cluster_options import access_for, cluster_options
from lowtide.cli.decisions_options import MEBIBYTE, decisions_options
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.cli.logging_options import logging_options, start_logging
from lowtide.cli.running import run, stop_on_signals
from lowtide.cli.serving_options import serving_options
from lowtide.config.load import LoadedConfig
from lowtide.framework.plugin import Binder
from lowtide.framework.registry import Built, Registry
from lowtide.logs import Log
from lowtide.records.journal import Journal
from lowtide.server.serving import Serving

log = Log("extender")

FILE = click.Path(path_type=Path)
# The loop and the thread of the plugins take turns; Python's 5 ms are as long as a whole answer.
SWITCH_SECONDS: Final = 0.0005
EVERY_ADDRESS: Final = ("0.0.0.0", "::")


class UrlPrefix(click.ParamType[str]):
    """Where the verbs stand, such as /scheduler; empty: at the root."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value).strip("/")
        if not re.fullmatch(r"[A-Za-z0-9._~-]*(/[A-Za-z0-9._~-]+)*", text):
            self.fail(f"{value!r} is not a path; expected /scheduler", param, ctx)
        return f"/{text}" if text else ""


@click.command()
@click.option(
    "--config",
    "config_file",
    type=FILE,
    required=True,
    help="A KubeSchedulerConfiguration whose profiles name the plugins.",
)
@cluster_options
@click.option(
    "--url-prefix",
    type=UrlPrefix(),
    default="/scheduler",
    show_default=True,
    help="Where filter, prioritize, preempt and, with `bind: true`, bind are served.",
)
@click.option(
    "--max-body-mib",
    type=click.IntRange(1, 4096),
    default=128,
    show_default=True,
    help="A request with more is rejected; 5000 whole nodes are about 70.",
)
@click.option(
    "--print-kube-scheduler-config",
    "prints_config",
    is_flag=True,
    help="Print what kube-scheduler needs to ask this extender, and end.",
)
@click.option(
    "--url",
    metavar="URL",
    help="With it: how kube-scheduler reaches the extender, with the prefix, such as "
    "http://lowtide-extender.kube-system.svc:8001/scheduler.",
)
@serving_options("--port", default_port=8001, port_help="Port of everything; 0: any free one.")
@decisions_options
@logging_options
@click.pass_obj
def extender(
    plugins: dict[str, type[Any]],
    /,
    config_file: Path,
    kubeconfig: str | None,
    master: str | None,
    url_prefix: str,
    max_body_mib: int,
    prints_config: bool,
    url: str | None,
    verbosity: int,
    logging_format: str,
    serving: Serving,
    journal: Journal | None,
) -> None:
    """Answers a stock kube-scheduler that asks it as an extender.

    The plugins of the profiles filter nodes (filter, preempt) and give them 0 to 10 points
    (prioritize); bind binds a pod, where the configuration says `bind: true`. /healthz, /livez,
    /readyz, /metrics and the page are served too; `lowtide explain` tells why it advised what.
    """
    start_logging(verbosity, logging_format)
    if url is not None and not prints_config:
        raise click.UsageError("--url is for --print-kube-scheduler-config")
    with reported_in_one_sentence():
        loaded = read_config(config_file)
        registry = make_registry(plugins)
        if prints_config:
            click.echo(_printed(registry, loaded, serving, url_prefix, url), nl=False)
            return
        parts = ExtenderParts(
            access=access_for(loaded.config, kubeconfig=kubeconfig, master=master),
            build=lambda binder: _build(registry, loaded, binder),
            clock=steady_clock(),
            wall_clock=time.time,
            serving=serving,
            url_prefix=url_prefix,
            most_body_bytes=max_body_mib * MEBIBYTE,
            journal=journal,
        )
        run(_run(parts))


async def _run(parts: ExtenderParts) -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    app = ExtenderApp(parts)
    stop_on_signals(app.stop)
    log.info(
        "Starting the Lowtide extender",
        server=parts.access.cluster.server,
        profiles=list(app.profiles),
    )
    await app.run()
    log.info("Stopped")


def _build(registry: Registry, loaded: LoadedConfig, binder: Binder) -> Built:
    built = build_for_cluster(registry, loaded, binder, log)
    check_profiles(built.profiles)
    defaults = (plugin.name for plugin in registry.defaults)
    for warning in warnings_for_extender(loaded, built, defaults):
        log.warning(warning)
    return built


def _printed(
    registry: Registry, loaded: LoadedConfig, serving: Serving, url_prefix: str, url: str | None
) -> str:
    if url is None:
        _check_can_be_asked(serving)
    built = _build(registry, loaded, NoBinder())
    return kube_scheduler_config(
        url_prefix=url or f"{serving.url}{url_prefix}",
        profiles=built.profiles,
        settings=built.extender_settings,
        tls=serving.tls is not None,
        client_certificate=serving.client_ca is not None,
    )


def _check_can_be_asked(serving: Serving) -> None:
    """A usage error where what is to be served on says nothing about where to ask."""
    if serving.bind_address in EVERY_ADDRESS:
        vague = f"--bind-address {serving.bind_address}"
    elif serving.port == 0:
        vague = "--port 0"
    else:
        return
    raise click.UsageError(
        f"{vague} is nothing to ask at; say by --url how kube-scheduler reaches the extender"
    )
