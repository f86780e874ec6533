"""Tokens and passwords: what they may hold, and how they are read from files.

`kube` and `telemetry` show them to servers."""

import re
from pathlib import Path
from typing import Final

from lowtide.input_limits import TooLargeError, read_file

# What an HTTP header takes as one word.
TOKEN: Final = re.compile(r"[\x21-\x7e]+")
PASSWORD: Final = re.compile(r"[^\x00-\x1f\x7f]+")


def read_secret(path: Path, what: str, form: re.Pattern[str]) -> str:
    """The one line of the file; OSError or ValueError, which does not repeat it, says why not."""
    try:
        text = read_file(path).decode().strip()
    except UnicodeDecodeError:
        raise ValueError("it is not text") from None
    except TooLargeError as error:
        raise ValueError(f"it holds {error}") from None
    if not text:
        raise ValueError("it is empty")
    if form.fullmatch(text) is None:
        raise ValueError(f"it should hold the {what} on one line and nothing else")
    return text


def reason_of(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
