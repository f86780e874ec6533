"""`lowtide config validate` and `lowtide config show`."""

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import check_addresses, make_registry, read_config
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.config.load import LoadedConfig
from lowtide.framework.plugin import Binder
from lowtide.framework.registry import Built

CONFIG_FILE = click.Path(path_type=Path)


@click.group()
def config() -> None:
    """Checks and shows files of a KubeSchedulerConfiguration."""


@config.command()
@click.argument("file", type=CONFIG_FILE)
@click.pass_obj
def validate(plugins: dict[str, type[Any]], file: Path) -> None:
    """Reads FILE as the scheduler would and says what is wrong.

    FILE may also be a manifest with a ConfigMap that holds the configuration. Exit status 0: all is
    well.
    """
    with reported_in_one_sentence():
        loaded, built = _build(plugins, file)
        check_addresses(built.profiles)
        _warn(loaded, built)
        names = ", ".join(built.profiles)
        click.echo(f"{file}: valid; schedules for {names}")


@config.command()
@click.argument("file", type=CONFIG_FILE, required=False)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def show(plugins: dict[str, type[Any]], file: Path | None, output: str) -> None:
    """Prints the effective profiles of FILE.

    That is what runs at each extension point, and its weight. Without FILE, the profile of a run
    without a configuration.
    """
    with reported_in_one_sentence():
        loaded, built = _build(plugins, file)
    if output == "json":
        click.echo(json.dumps(_as_json(built), indent=2))
        return
    _warn(loaded, built)
    console = Console(width=None if sys.stdout.isatty() else 100, markup=False)
    for scheduler_name, expansion in built.expansions.items():
        table = Table(title=f"schedulerName: {scheduler_name}", title_justify="left")
        table.add_column("extension point")
        table.add_column("plugins, in order (weight)")
        for point, enabled in expansion.items():
            if enabled:
                weighted = point == "score"
                table.add_row(
                    point,
                    ", ".join(
                        f"{each.name} ({each.weight})" if weighted else each.name
                        for each in enabled
                    ),
                )
        console.print(table)


def _build(plugins: dict[str, type[Any]], file: Path | None) -> tuple[LoadedConfig, Built]:
    loaded = read_config(file)
    return loaded, make_registry(plugins).build(loaded, {Binder: NoBinder()})


def _warn(loaded: LoadedConfig, built: Built) -> None:
    for warning in (*loaded.warnings, *built.warnings):
        click.echo(f"warning: {warning}", err=True)


def _as_json(built: Built) -> Any:
    return {
        "profiles": [
            {
                "schedulerName": name,
                "plugins": {
                    point: [
                        [plugin.name, plugin.weight] if point == "score" else plugin.name
                        for plugin in enabled
                    ]
                    for point, enabled in expansion.items()
                    if enabled
                },
            }
            for name, expansion in built.expansions.items()
        ]
    }
