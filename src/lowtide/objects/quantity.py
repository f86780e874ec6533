"""Parses Kubernetes quantities ("250m", "1.5Gi") into exact integers.

Amounts are in nano units (1e-9), the finest unit of a quantity, so that sums are exact. Rounding up
to milli or whole units happens once, at the end. Amounts that exceed 64 bits are capped.
"""

import re
from functools import lru_cache

Quantity = str | int | float

NANO = 10**9
LARGEST = 2**63 - 1
LARGEST_NANO = LARGEST * NANO

_FORM = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_DECIMAL_EXPONENT = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_POWER = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT = re.compile(r"[eE]([+-]?)0*([0-9]{1,19})")
_LONGEST_KEPT = 100  # characters; cached texts must be small
_LONGEST_SHOWN = 40
# A number with a higher power of ten is capped, whatever its suffix. One with a lower power is less
# than a nano unit. Digits after the first _MOST_DIGITS cannot change how a number is rounded.
_HIGHEST_POWER = 40
_LOWEST_POWER = -40
_MOST_DIGITS = 200


class QuantityError(ValueError):
    """The text is not a quantity."""


def parse_nano(quantity: Quantity) -> int:
    """The quantity in nano units, rounded away from zero, and capped at LARGEST whole units."""
    if isinstance(quantity, int):
        return _capped(quantity, LARGEST) * NANO
    text = str(quantity)
    return _parse_kept(text) if len(text) <= _LONGEST_KEPT else _parse(text)


def _parse(text: str) -> int:
    """Parse the text in time linear in its length."""
    text = text.strip()
    form = _FORM.fullmatch(text)
    assert form is not None  # it matches every text
    sign, whole, fraction, suffix = form.groups("")
    if not whole and not fraction:
        raise QuantityError(f"{_shown(text)} is not a quantity such as 500m, 2, 1.5Gi or 2e3")
    exponent, binary_power = _powers(suffix, text)
    digits, power = _without_zeros(whole, fraction)
    nano = _nano(digits, power + exponent, binary_power) if digits else 0
    return -nano if sign == "-" else nano


_parse_kept = lru_cache(maxsize=65536)(_parse)


def _nano(digits: str, exponent: int, binary_power: int) -> int:
    """0.DIGITS * 10**exponent * 2**binary_power in nano units, rounded up and capped."""
    if exponent > _HIGHEST_POWER:
        return LARGEST_NANO
    if exponent < _LOWEST_POWER:
        return 1
    if len(digits) > _MOST_DIGITS:
        digits = digits[:_MOST_DIGITS] + "1"  # stands for the rest, so that it rounds up
    numerator, exponent = int(digits) * NANO << binary_power, exponent - len(digits)
    nano = numerator * 10**exponent if exponent >= 0 else _divide_up(numerator, 10**-exponent)
    return min(nano, LARGEST_NANO)


def _without_zeros(whole: str, fraction: str) -> tuple[str, int]:
    """The number as (DIGITS, power): 0.DIGITS * 10**power, without zeros at either end."""
    digits = (whole + fraction).lstrip("0")
    power = len(whole) - (len(whole) + len(fraction) - len(digits))
    return digits.rstrip("0"), power


def milli(nano: int) -> int:
    """Convert nano units to milli units, rounded away from zero, like MilliValue in Kubernetes."""
    return _capped(_divide_away(nano, NANO // 1000), LARGEST)


def units(nano: int) -> int:
    """Convert nano units to whole units, rounded away from zero, like Value in Kubernetes."""
    return _capped(_divide_away(nano, NANO), LARGEST)


def _powers(suffix: str, text: str) -> tuple[int, int]:
    """The power of ten and the power of two that the suffix stands for."""
    if suffix in _BINARY_POWER:
        return 0, _BINARY_POWER[suffix]
    if suffix in _DECIMAL_EXPONENT:
        return _DECIMAL_EXPONENT[suffix], 0
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or int(exponent[2]) > LARGEST:
        known = ", ".join([*filter(None, _DECIMAL_EXPONENT), *_BINARY_POWER])
        raise QuantityError(
            f"{_shown(text)} has the unknown suffix {_shown(suffix)}; suffixes are {known}"
        )
    return int(exponent[1] + exponent[2]), 0


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]!r}..."


def _divide_up(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _divide_away(nano: int, unit: int) -> int:
    return _divide_up(nano, unit) if nano >= 0 else -_divide_up(-nano, unit)


def _capped(value: int, most: int) -> int:
    return max(-most, min(value, most))
