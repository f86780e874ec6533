"""`lowtide simulate`: how configurations place the same pods, on virtual time."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from lowtide.app.registry import read_config
from lowtide.app.simulate import ConfigRuns, NamedConfig, run_all, usual_configs, warnings_of
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.cli.output_files import OutputFile, write_text
from lowtide.scenario.simulation import read_simulation
from lowtide.simulator.plot import chart
from lowtide.simulator.report import median_and_90th

_SEEDS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_MOST_SEEDS = 10_000

# Figure, heading, decimals.
_COLUMNS = (
    ("peak_over_reference", "peak / reference", 2),
    ("peak", "link peak", 2),
    ("p95", "link p95", 2),
    ("fairness", "fairness", 3),
    ("cpu_imbalance", "CPU imbalance", 2),
    ("nodes_used", "nodes used", 0),
    ("pending", "pending", 0),
)


class Seeds(click.ParamType[tuple[int, ...]]):
    name = "SEEDS"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        seeds: list[int] = []
        for part in str(value).split(","):
            found = _SEEDS.fullmatch(part.strip())
            if found is None:
                self.fail(f"{value!r} is not a list of seeds such as 1-20 or 1,5,7", param, ctx)
            first, last = int(found[1]), int(found[2] or found[1])
            if last < first or len(seeds) + last - first >= _MOST_SEEDS:
                self.fail(
                    f"{part.strip()!r} must go upwards, and at most {_MOST_SEEDS} seeds are run",
                    param,
                    ctx,
                )
            seeds += range(first, last + 1)
        twice = next((seed for seed, count in Counter(seeds).items() if count > 1), None)
        if twice is not None:
            self.fail(f"{value!r} has the seed {twice} twice", param, ctx)
        return tuple(seeds)


@click.command()
@click.argument("scenario", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--config",
    "config_files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Configuration; may be given several times.",
)
@click.option(
    "--seeds", type=Seeds(), default="1", show_default=True, help="Such as 1-20 or 1,5,7."
)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--plot", type=OutputFile(), help="An SVG to write.")
@click.pass_obj
def simulate(
    plugins: dict[str, type[Any]],
    scenario: Path,
    config_files: tuple[Path, ...],
    seeds: tuple[int, ...],
    output: str,
    plot: Path | None,
) -> None:
    """Runs the scheduler through SCENARIO on virtual time.

    Prints how busy links became. SCENARIO is a YAML file of nodes with links, owners whose pods
    arrive, and how Prometheus measures. Without --config the recommended profile, the first
    plugins' plugin and kube-scheduler's defaults are compared. The same seed gives the same result.
    """
    with reported_in_one_sentence():
        simulation = read_simulation(scenario)
        configs = _configs(config_files)
        for warning in warnings_of(configs, plugins) if config_files else ():
            print(f"warning: {warning}", file=sys.stderr)
        with runs_progress(len(configs) * len(seeds)) as on_run:
            found = run_all(simulation, configs, seeds, plugins=plugins, on_run=on_run)
        if output == "json":
            print(json.dumps({"configs": [each.as_json() for each in found]}))
        else:
            _print_table(found, len(seeds), sum(group.pods for group in simulation.owners))
        if plot is not None:
            write_text(plot, chart({each.name: each.runs for each in found}, scenario.stem))


def _configs(files: Sequence[Path]) -> list[NamedConfig]:
    if not files:
        return usual_configs()
    given: set[Path] = set()
    for path in files:
        if path in given:
            raise click.UsageError(f"--config {path} is given twice")
        given.add(path)
    stems = Counter(path.stem for path in files)
    return [
        NamedConfig(path.stem if stems[path.stem] == 1 else str(path), read_config(path))
        for path in files
    ]


@contextmanager
def runs_progress(count: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr, for people only."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("runs", total=count)
        yield lambda: progress.advance(task)


def _print_table(found: Sequence[ConfigRuns], draws: int, pods: int) -> None:
    width = None if sys.stdout.isatty() else 140
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    of_draws = "one draw" if draws == 1 else f"median and 90th percentile of {draws} draws"
    table = Table(title=of_draws, title_justify="left")
    table.add_column("configuration")
    for _, heading, _ in _COLUMNS:
        table.add_column(heading, justify="right")
    for each in found:
        table.add_row(each.name, *(_cell(each, name, places, pods) for name, _, places in _COLUMNS))
    console.print(table)
    for each in found:
        pending = max(run.figures.pending for run in each.runs)
        if pending:
            console.print(
                f"{each.name}: {pending} of {pods} pods found no node in the worst draw; "
                "figures without them do not compare",
                soft_wrap=True,
            )


def _cell(runs: ConfigRuns, name: str, decimals: int, pods: int) -> str:
    """What is not a count is left out of runs that placed no pod."""
    values = [
        float(getattr(run.figures, name))
        for run in runs.runs
        if decimals == 0 or run.figures.pending < pods
    ]
    if not values:
        return "–"
    if len(runs.runs) == 1:
        return f"{values[0]:.{decimals}f}"
    median, high = median_and_90th(values)
    return f"{median:.{decimals}f}, {high:.{decimals}f}"
