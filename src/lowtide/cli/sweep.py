"""`lowtide sweep`: many configurations, draws and recordings, in one table."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from lowtide.app.registry import read_config
from lowtide.app.simulate import NamedConfig, warnings_of
from lowtide.app.sweep import SweepRun, SweepTask, run_tasks
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.cli.simulate import Seeds, runs_progress
from lowtide.scenario.simulation import read_simulation

_GZIP_MAGIC = b"\x1f\x8b"
_COLUMNS = {  # as `lowtide replay` has them; a median of counts may be a half
    "peak": ("hottest link", ".0%"),
    "p95": ("95th percentile", ".0%"),
    "fairness": ("fairness", ".2f"),
    "cpu_imbalance": ("CPU imbalance", ".2f"),
    "pending": ("pending", "g"),
    "moved_pods": ("elsewhere", "g"),
}
_WIDTH_WITHOUT_TERMINAL = 140


@click.command()
@click.argument(
    "sources",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    nargs=-1,
    required=True,
)
@click.option(
    "--config",
    "config_files",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="Configuration; may be given several times.",
)
@click.option(
    "--seeds", type=Seeds(), default="1", show_default=True, help="Of scenarios: 1-20 or 1,5,7."
)
@click.option(
    "--dask",
    "dask_address",
    metavar="ADDRESS",
    help="Run on this Dask cluster, such as tcp://HOST:8786. [default: on the cores of this one]",
)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def sweep(
    plugins: dict[str, type[Any]],
    sources: tuple[Path, ...],
    config_files: tuple[Path, ...],
    seeds: tuple[int, ...],
    dask_address: str | None,
    output: str,
) -> None:
    """Runs every configuration on every source, side by side.

    Sources are scenarios of `lowtide simulate`, which are run with each seed, and recordings of
    `lowtide record` or `lowtide scheduler --record`. Printed are medians over the seeds. The result
    does not depend on where it ran.
    """
    with reported_in_one_sentence():
        configs = [NamedConfig(str(file), read_config(file)) for file in config_files]
        warnings = warnings_of(configs, plugins)
        tasks = [
            task
            for source in sources
            for config in configs
            for task in _tasks(source, config, seeds)
        ]
        if any(task.simulation is not None for task in tasks):  # a replay has its own
            _warn(warnings)
        with runs_progress(len(tasks)) as on_run:
            found = run_tasks(tasks, plugins=plugins, dask_address=dask_address, on_run=on_run)
        _warn(dict.fromkeys(warning for each in found for warning in each.warnings))
        if output == "json":
            print(msgspec.json.encode({"runs": found}).decode())
        else:
            _print(found)


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _tasks(source: Path, config: NamedConfig, seeds: Sequence[int]) -> list[SweepTask]:
    data = source.read_bytes()
    if data.startswith(_GZIP_MAGIC):
        return [SweepTask(source.name, config, 0, recording=data)]
    simulation = read_simulation(source)
    return [SweepTask(source.name, config, seed, simulation=simulation) for seed in seeds]


def _print(found: Sequence[SweepRun]) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH_WITHOUT_TERMINAL)
    columns = {
        name: column
        for name, column in _COLUMNS.items()
        if any(name in run.figures for run in found)
    }
    runs_made = "1 run" if len(found) == 1 else f"{len(found)} runs; medians"
    table = Table(title=runs_made)
    for heading in ("source", "configuration", "runs"):
        table.add_column(heading)
    for heading, _ in columns.values():
        table.add_column(heading, justify="right")
    for source, config in dict.fromkeys((run.source, run.config) for run in found):
        runs = [run.figures for run in found if (run.source, run.config) == (source, config)]
        cells = []
        for name, (_, form) in columns.items():
            known = [figures[name] for figures in runs if name in figures]
            cells.append(f"{median(known):{form}}" if known else "")
        table.add_row(source, config, str(len(runs)), *cells)
    console.print(table)
