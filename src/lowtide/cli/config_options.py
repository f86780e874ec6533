"""The options about which plugins there are: a file, or the default plugins and a Prometheus."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from lowtide.app.registry import read_config
from lowtide.config.load import LoadedConfig


@dataclass(frozen=True, slots=True)
class ConfigOptions:
    file: Path | None
    prometheus_address: str | None

    def read(self) -> LoadedConfig:
        return read_config(self.file, self.prometheus_address)


def config_options(file_help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds them, and hands what they say to the command as its argument `config`."""

    def add_to(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option("--config", "config_file", type=click.Path(path_type=Path), help=file_help)
        @click.option(
            "--prometheus",
            "prometheus_address",
            metavar="URL",
            help="Without --config: kube-scheduler's default plugins and NetworkTraffic, by this "
            "Prometheus.",
        )
        @wraps(command)
        def with_config(
            *arguments: Any,
            config_file: Path | None,
            prometheus_address: str | None,
            **given: Any,
        ) -> Any:
            if config_file is not None and prometheus_address is not None:
                raise click.UsageError(
                    "--prometheus is for runs without --config; name it in the file"
                )
            config = ConfigOptions(config_file, prometheus_address)
            return command(*arguments, config=config, **given)

        return with_config

    return add_to
