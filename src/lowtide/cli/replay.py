"""`lowtide replay`: a recording decided again, and what came out differently."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import Progress as Bar

from lowtide.app.garbage import look_seldom_for_garbage
from lowtide.app.registry import make_registry
from lowtide.app.replay import Progress, Replayed
from lowtide.app.replay import replay as replayed
from lowtide.cli.errors import told_in_one_sentence
from lowtide.records.replaying import Difference


@click.command()
@click.argument("recording", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="A KubeSchedulerConfiguration instead of the recorded one.",
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_obj
def replay(
    plugins: dict[str, type[Any]], recording: Path, config_file: Path | None, output: str
) -> None:
    """Feeds RECORDING to a fresh scheduler and compares its decisions with the recorded ones.

    RECORDING is a file that `lowtide scheduler --record` wrote. Under the same configuration every
    decision comes out the same; each that does not is named, and the exit status is then 1.
    """
    look_seldom_for_garbage()
    with told_in_one_sentence():
        with _bar() as progress:
            made = replayed(recording, make_registry(plugins), config_file, progress)
        for warning in made.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        if output == "json":
            print(_json(made))
        else:
            for difference in made.differences:
                print(_in_words(difference))
            print(_summary(made))
        sys.exit(1 if made.differences else 0)


@contextmanager
def _bar() -> Iterator[Progress]:
    """On a terminal alone, and not in the way of what is printed."""
    console = Console(stderr=True)
    with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("replaying", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _summary(made: Replayed) -> str:
    count, different = made.decision_count, len(made.differences)
    decisions = "1 decision" if count == 1 else f"{count} decisions"
    if not different:
        return f"{decisions}, all the same"
    return f"{decisions}; {different} came out differently"


def _in_words(difference: Difference) -> str:
    nodes = f"{difference.recorded_node or 'no node'} -> {difference.replayed_node or 'no node'}"
    return (
        f"line {difference.line}: {difference.pod} (attempt {difference.attempt}): {nodes}: "
        f"{difference.what}"
    )


def _json(made: Replayed) -> str:
    told = {
        "events": made.event_count,
        "decisions": made.decision_count,
        "different": len(made.differences),
        "differences": made.differences,
        "warnings": made.warnings,
    }
    return msgspec.json.encode(told).decode()
