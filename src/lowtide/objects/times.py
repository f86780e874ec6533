"""Converts the timestamps of API objects into seconds since 1970."""

import datetime
from functools import lru_cache

_LONGEST = 64  # characters; cached texts must be small


def epoch_seconds(text: str) -> float | None:
    """The time in seconds since 1970; None if the text is not a timestamp."""
    return _epoch_seconds(text) if len(text) <= _LONGEST else None


@lru_cache(maxsize=65536)
def _epoch_seconds(text: str) -> float | None:
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
