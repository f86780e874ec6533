"""Kubernetes quantities ("250m", "1.5Gi") as exact integers.

Everything is counted in nano units (1e-9), the finest a quantity may be, so that sums are exact;
rounding up to milli or whole units happens once, at the end. An amount that 64 bits do not hold is
capped at the largest that they do.
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
_LONGEST_KEPT = 100  # characters: what is cached must be small
_LONGEST_SHOWN = 40
# A number with a power of ten above the first is capped, whatever its suffix; one below the second
# is less than a nano unit. In between, more digits than this cannot change how a number is rounded.
_HIGHEST_POWER = 40
_LOWEST_POWER = -40
_MOST_DIGITS = 200


class QuantityError(ValueError):
    """A text that is not a quantity."""


def parse_nano(quantity: Quantity) -> int:
    """The quantity in nano units, rounded away from zero, and capped at LARGEST whole units."""
    if isinstance(quantity, int):
        return _capped(quantity, LARGEST) * NANO
    text = str(quantity)
    return _parse_kept(text) if len(text) <= _LONGEST_KEPT else _parse(text)


def _parse(text: str) -> int:
    """In time that grows with the length of the text, and no faster."""
    text = text.strip()
    form = _FORM.fullmatch(text)
    assert form is not None  # it matches every text
    sign, whole, fraction, suffix = form.groups("")
    if not whole and not fraction:
        raise QuantityError(
            f"{_shown(text)} is not a quantity; right would be 500m, 2, 1.5Gi or 2e3"
        )
    exponent, binary_power = _powers(suffix, text)
    digits, power = _without_zeros(whole, fraction)
    nano = _nano(digits, power + exponent, binary_power) if digits else 0
    return -nano if sign == "-" else nano


_parse_kept = lru_cache(maxsize=65536)(_parse)


def _nano(digits: str, exponent: int, binary_power: int) -> int:
    """Of 0.DIGITS, times 10 to the exponent, times 2 to the binary power."""
    if exponent > _HIGHEST_POWER:
        return LARGEST_NANO
    if exponent < _LOWEST_POWER:
        return 1
    if len(digits) > _MOST_DIGITS:
        digits = digits[:_MOST_DIGITS] + "1"  # something follows, so that it is rounded up
    numerator, exponent = int(digits) * NANO << binary_power, exponent - len(digits)
    nano = numerator * 10**exponent if exponent >= 0 else _divide_up(numerator, 10**-exponent)
    return min(nano, LARGEST_NANO)


def _without_zeros(whole: str, fraction: str) -> tuple[str, int]:
    """A number as 0.DIGITS, without zeros at either end, times a power of ten."""
    digits = (whole + fraction).lstrip("0")
    power = len(whole) - (len(whole) + len(fraction) - len(digits))
    return digits.rstrip("0"), power


def milli(nano: int) -> int:
    """Nano units as milli units, rounded away from zero, as kube's MilliValue does."""
    return _capped(_divide_away(nano, NANO // 1000), LARGEST)


def units(nano: int) -> int:
    """Nano units as whole units, rounded away from zero, as kube's Value does."""
    return _capped(_divide_away(nano, NANO), LARGEST)


def _powers(suffix: str, text: str) -> tuple[int, int]:
    """Of ten, and of two."""
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
