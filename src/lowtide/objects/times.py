"""Times as API objects spell them, in seconds since 1970."""

import datetime
from functools import lru_cache

_LONGEST = 64  # what is remembered must be small


def epoch_seconds(text: str) -> float | None:
    """None where the text is no time."""
    return _epoch_seconds(text) if len(text) <= _LONGEST else None


@lru_cache(maxsize=65536)
def _epoch_seconds(text: str) -> float | None:
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
