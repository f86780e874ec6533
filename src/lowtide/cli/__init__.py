"""The commands: argument parsing, and nothing else. `main` is the entry point `lowtide`."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from lowtide.app.backstop import Backstop
from lowtide.cli.errors import reported_in_one_sentence

# When a command has ended, Python waits for threads that still run.
LONGEST_END_SECONDS = 40.0

COMMANDS = (
    *("scheduler", "extender", "shadow", "explain"),
    *("decide", "simulate", "sweep", "record", "replay"),
    *("config", "rbac", "doctor", "demo", "version"),
)


class CommandsByName(Mapping[str, click.Command]):
    """Each is in the module of its name, which is imported when it is asked for: the scheduler
    starts sooner without what the others need."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in COMMANDS:
            raise KeyError(name)
        command: click.Command = getattr(import_module(f"lowtide.cli.{name}"), name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@click.group(
    commands=CommandsByName(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="lowtide", message="lowtide %(version)s")
def lowtide() -> None:
    """Places Kubernetes pods on nodes whose network is quiet."""


def main(plugins: Mapping[str, type[Any]] | None = None) -> None:
    """Runs the command line; `plugins` are an outsider's plugins by name."""
    try:
        with reported_in_one_sentence():
            sys.exit(
                lowtide.main(prog_name="lowtide", obj=dict(plugins or {}), standalone_mode=True)
            )
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()  # its reader may take any time
        Backstop(LONGEST_END_SECONDS).put_off()
