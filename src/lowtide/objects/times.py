"""Times as API objects spell them, in seconds since 1970."""

import datetime
from functools import lru_cache


@lru_cache(maxsize=65536)
def epoch_seconds(text: str) -> float | None:
    """None where the text is no time."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
