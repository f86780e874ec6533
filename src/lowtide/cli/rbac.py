"""`lowtide rbac`: what a mode may ask of the API server, as RBAC objects."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from lowtide.app.no_binder import NoBinder
from lowtide.app.permissions import Mode, Need, Needs, needs_of, permissions_of
from lowtide.app.registry import make_registry, read_config
from lowtide.app.roles import TABLE_HEADINGS, Account, manifest_of, objects_of, table_of
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.framework.plugin import Binder
from lowtide.framework.registry import Registry
from lowtide.server.loopback import is_loopback

_WIDTH_WITHOUT_TERMINAL = 140


@click.command()
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.SCHEDULER.value,
    show_default=True,
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="The KubeSchedulerConfiguration it is to run with. "
    "[default: that of a run without --config; for the extender, plugins that watch nothing else]",
)
@click.option(
    "--bind-address",
    metavar="ADDRESS",
    help="For a shadow that serves its page and metrics there. [default: 127.0.0.1]",
)
@click.option(
    "--account",
    metavar="NAMESPACE/NAME",
    help="The service account that gets them. [default: kube-system/lowtide-MODE]",
)
@click.option("--name", help="Name of the roles and bindings. [default: the account's]")
@click.option(
    "--output", type=click.Choice(["yaml", "json", "table"]), default="yaml", show_default=True
)
@click.pass_obj
def rbac(
    plugins: dict[str, type[Any]],
    /,
    mode: str,
    config_file: Path | None,
    bind_address: str | None,
    account: str | None,
    name: str | None,
    output: str,
) -> None:
    """Prints the roles that a mode needs with a configuration.

    They allow nothing else.
    `lowtide rbac --mode shadow --config FILE | kubectl apply -f -` grants them.
    """
    chosen = Mode(mode)
    if bind_address is not None and chosen is not Mode.SHADOW:
        raise click.UsageError("--bind-address is for --mode shadow")
    whose = _account(account or f"kube-system/lowtide-{mode}", name)
    with reported_in_one_sentence():
        needs = needs_by(make_registry(plugins), chosen, config_file)
        if bind_address is not None and not is_loopback(bind_address):
            needs = replace(needs, needs=needs.needs | {Need.SERVING})
        found = permissions_of(chosen, needs)
    match output:
        case "yaml":
            click.echo(manifest_of(found, whose), nl=False)
        case "json":
            listed = {"apiVersion": "v1", "kind": "List", "items": objects_of(found, whose)}
            click.echo(json.dumps(listed, indent=2))
        case _:
            _print_table(table_of(found))


def needs_by(registry: Registry, mode: Mode, config_file: Path | None) -> Needs:
    loaded = read_config(config_file)
    if mode is Mode.EXTENDER and config_file is None:
        return needs_of(loaded.config, {}, {})
    built = registry.build(loaded, {Binder: NoBinder()})
    return needs_of(loaded.config, built.profiles, built.extender_settings)


def _account(account: str, role_name: str | None) -> Account:
    namespace, _, name = account.partition("/")
    if not namespace or not name:
        raise click.UsageError(f"--account {account} is not NAMESPACE/NAME")
    return Account(namespace, name, role_name or name)


def _print_table(rows: list[tuple[str, ...]]) -> None:
    console = Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, markup=False)
    table = Table()
    for heading in TABLE_HEADINGS:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    console.print(table)
