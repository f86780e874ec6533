"""`lowtide decide`: what the scheduler would decide for scenarios from a file."""

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from lowtide.app.offline import Decider
from lowtide.app.registry import make_registry, read_config
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.scenario.files import read_scenarios
from lowtide.scenario.scenario import Scenario, ScenarioError


@click.command()
@click.argument(
    "scenarios",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    nargs=-1,
    required=True,
)
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Configuration.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def decide(
    plugins: dict[str, type[Any]],
    scenarios: tuple[Path, ...],
    config_file: Path | None,
    output: str,
) -> None:
    """Decides SCENARIOS without a cluster and prints why.

    SCENARIOS are JSON lines (also gzipped), one scenario each, or a YAML file of ordinary
    manifests: nodes, bound pods, and the pods to place. A scenario's own configuration wins over
    --config. Lines that cannot be read are reported on stderr, and the exit status is then 1.
    """
    with reported_in_one_sentence():
        decider = Decider(make_registry(plugins), read_config(config_file))
        failed = False
        for path in scenarios:
            for scenario in read_scenarios(path):
                answer = _answer(decider, scenario)
                if isinstance(answer, ScenarioError):
                    failed = True
                    for line in str(answer).splitlines():
                        print(f"lowtide: {line}", file=sys.stderr)
                    continue
                if output == "json":
                    print(json.dumps(answer))
                else:
                    _print_table(answer)
        for warning in decider.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        sys.exit(1 if failed else 0)


def _answer(decider: Decider, scenario: Scenario | ScenarioError) -> dict[str, Any] | ScenarioError:
    if isinstance(scenario, ScenarioError):
        return scenario
    try:
        return decider.answer(scenario)
    except ScenarioError as error:
        place = f"{scenario.where}: " if scenario.where not in ("", scenario.id) else ""
        return ScenarioError("\n".join(place + line for line in str(error).splitlines()))


def _print_table(answer: dict[str, Any]) -> None:
    # Brackets and colons in names and reasons are meant as they stand.
    width = None if sys.stdout.isatty() else 120
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    console.print(answer["id"], style="bold")
    if "preenqueue" in answer:
        for name, verdict in answer["preenqueue"].items():
            console.print(f"  not queued: {name}: {', '.join(verdict['reasons'])}")
        return
    if "filter" not in answer:
        console.print(f"  {answer['fit_error']}")
        return
    plugins = list(answer.get("scores", {}))
    best = set(answer.get("best", ()))
    table = Table()
    table.add_column("node")
    for plugin in plugins:
        table.add_column(plugin, justify="right")
    table.add_column("total", justify="right")
    table.add_column("verdict")
    for node in _best_first(answer):
        verdict = answer["filter"][node]
        scores = [answer["scores"][plugin].get(node) for plugin in plugins]
        table.add_row(
            node,
            *("" if score is None else f"{score['raw']} → {score['weighted']}" for score in scores),
            str(answer.get("total", {}).get(node, "")),
            _in_words(verdict, is_best=node in best),
        )
    console.print(table)
    if "fit_error" in answer:
        console.print(f"  {answer['fit_error']}")


def _best_first(answer: dict[str, Any]) -> list[str]:
    total = answer.get("total", {})
    return sorted(answer["filter"], key=lambda node: (-total.get(node, -1), node))


def _in_words(verdict: Any, *, is_best: bool) -> str:
    if verdict == "ok":
        return "best" if is_best else "fits"
    return f"{verdict['plugin'] or 'PreFilter'}: {', '.join(verdict['reasons'])}"
