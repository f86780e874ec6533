"""Files that commands write where a user wants them, often at the end of long work: whether they
can be written is tried when the options are read."""

import os
import stat
from pathlib import Path
from typing import Any

import click


class OutputFile(click.ParamType[Path]):
    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        problem = _why_not_writable(path)
        if problem is not None:
            raise _cannot_be_written(path, problem)
        return path


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise _cannot_be_written(path, error.strerror) from None


def _why_not_writable(path: Path) -> str | None:
    """Leaves nothing behind, and a file that is there already as it is."""
    if not path.parent.is_dir():
        if path.parent.exists():
            return f"{path.parent} is no folder"
        return f"there is no folder {path.parent}"
    try:
        _try_to_open(path)
    except IsADirectoryError:
        return "it is a folder"
    except OSError as error:
        return error.strerror
    return None


def _try_to_open(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        # A pipe would wait for its reader.
        if stat.S_ISREG(path.stat().st_mode) or path.is_dir():
            path.open("ab").close()
    else:
        path.unlink()


def _cannot_be_written(path: Path, why: str | None) -> click.ClickException:
    return click.ClickException(f"{path}: cannot be written: {why}")
