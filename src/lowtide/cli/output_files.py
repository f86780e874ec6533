"""Files that commands write where a user wants them."""

from pathlib import Path

import click


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise click.ClickException(f"{path}: cannot be written: {error.strerror}") from None
