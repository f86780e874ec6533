"""The options about logs that every running mode has, spelled as kube-scheduler's."""

import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from lowtide.logs import configure_logs

F = TypeVar("F", bound=Callable[..., Any])


class Verbosity(click.ParamType[int]):
    """`-v 2`, `-v=2` and `--v=2` all mean 2."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).removeprefix("=")
        if not (text.isascii() and text.isdigit()):
            self.fail(f"{value!r} is not a level; expected 0 to 10", param, ctx)
        return int(text)


def logging_options(command: F) -> F:
    options = [
        click.option(
            "-v",
            "--v",
            "verbosity",
            type=Verbosity(),
            default=0,
            show_default=True,
            help="How much is logged: 2 shows every decision.",
        ),
        click.option(
            "--logging-format",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            help="klog's lines, or a JSON object per line.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def start_logging(verbosity: int, logging_format: Any) -> None:
    configure_logs(verbosity=verbosity, format=logging_format, stream=sys.stderr, clock=time.time)
