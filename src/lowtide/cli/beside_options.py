"""The options of the commands that run beside any scheduler and only read: what to watch and
measure, where, and for how long."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from lowtide.app.beside import BesideParts
from lowtide.app.clocks import Clock
from lowtide.cli.cluster_options import access_for, cluster_options
from lowtide.cli.config_options import ConfigOptions, config_options
from lowtide.cli.seconds import Seconds
from lowtide.config.load import LoadedConfig


@dataclass(frozen=True, slots=True)
class BesideOptions:
    config: ConfigOptions
    kubeconfig: str | None
    master: str | None
    for_seconds: float | None

    def parts(self, loaded: LoadedConfig, clock: Clock) -> BesideParts:
        return BesideParts(
            access=access_for(loaded.config, kubeconfig=self.kubeconfig, master=self.master),
            clock=clock,
            wall_clock=time.time,
            for_seconds=self.for_seconds,
        )


def beside_options(config_help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds them, and hands what they say to the command as its argument `beside`."""

    def add_to(command: Callable[..., Any]) -> Callable[..., Any]:
        @config_options(config_help)
        @cluster_options
        @click.option("--for", "for_seconds", type=Seconds(), help="[default: until Ctrl-C]")
        @wraps(command)
        def with_beside(
            *arguments: Any,
            config: ConfigOptions,
            kubeconfig: str | None,
            master: str | None,
            for_seconds: float | None,
            **given: Any,
        ) -> Any:
            beside = BesideOptions(config, kubeconfig, master, for_seconds)
            return command(*arguments, beside=beside, **given)

        return with_beside

    return add_to
