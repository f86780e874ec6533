"""The options of a command that can write its decisions to a file."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from lowtide.records.journal import DEFAULT_MAX_BYTES, Journal

MEBIBYTE = 1024 * 1024


def decisions_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds them; the command is given `journal`, which is None where nothing is to be written."""

    @click.option(
        "--decisions-file",
        type=click.Path(path_type=Path),
        help="Write every decision to this file, as JSON lines; `lowtide explain` reads it.",
    )
    @click.option(
        "--decisions-file-max-size",
        type=click.IntRange(1),
        default=DEFAULT_MAX_BYTES // MEBIBYTE,
        show_default=True,
        metavar="MIB",
        help="Then it becomes FILE.1, and so on; three are kept besides.",
    )
    @wraps(command)
    def with_journal(
        *arguments: Any, decisions_file: Path | None, decisions_file_max_size: int, **options: Any
    ) -> Any:
        journal = (
            None
            if decisions_file is None
            else Journal(decisions_file, decisions_file_max_size * MEBIBYTE)
        )
        return command(*arguments, journal=journal, **options)

    return with_journal
