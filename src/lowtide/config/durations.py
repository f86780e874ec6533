"""Parses Go's durations (`15s`, `1h2m`, `-1.5h`) into seconds. Called by the decoder."""

import re

_SECONDS_PER_UNIT = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,  # U+00B5
    "μs": 1e-6,  # U+03BC
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PART = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"[-+]?(?:0|(?:{_PART})+)")
_LONGEST_SECONDS = (2**63 - 1) / 1e9  # Go stores durations as 64-bit nanoseconds


def seconds_from_duration(text: str) -> float:
    """Parse a Go duration. Raises ValueError if Go would reject it: all but 0 need a unit, and
    there is a maximum."""
    is_duration = _DURATION.fullmatch(text) is not None
    # On texts that do not match, the search would take quadratic time.
    parts = re.findall(_PART, text) if is_duration else []
    seconds = sum(float(number) * _SECONDS_PER_UNIT[unit] for number, unit in parts)
    if not is_duration or seconds > _LONGEST_SECONDS:
        raise ValueError(f'"{text}" is not a duration such as 15s or 1h2m')
    return -seconds if text.startswith("-") else seconds
