"""Kubernetes quantities ("250m", "1.5Gi") as exact integers.

Everything is counted in nano units (1e-9), the finest a quantity may be, so that sums are exact;
rounding up to milli or whole units happens once, at the end.
"""

import re
from functools import lru_cache

Quantity = str | int | float

NANO = 10**9
LARGEST = 2**63 - 1

_FORM = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(.*)", re.DOTALL)
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
_LONGEST = 100
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")


class QuantityError(ValueError):
    """A text that is not a quantity."""


@lru_cache(maxsize=65536)
def parse_nano(quantity: Quantity) -> int:
    """The quantity in nano units; what is finer than that is rounded away from zero."""
    text = str(quantity)
    if len(text) > _LONGEST:  # spaces too: what is cached must be small
        raise QuantityError(f"{text.strip()[:20]!r}... is too long for a quantity")
    text = text.strip()
    form = _FORM.fullmatch(text)
    if form is None:
        raise QuantityError(f"{text!r} is not a quantity; right would be 500m, 2, 1.5Gi or 2e3")
    sign, number, suffix = form.groups()
    whole, _, fraction = number.partition(".")
    digits = int((whole + fraction) or "0")
    numerator, denominator = digits * NANO, 10 ** len(fraction)
    if suffix in _BINARY_POWER:
        numerator <<= _BINARY_POWER[suffix]
    else:
        exponent = _decimal_exponent(suffix, text)
        if exponent >= 0:
            numerator *= 10**exponent
        else:
            denominator *= 10**-exponent
    nano = _divide_up(numerator, denominator)
    return -nano if sign == "-" else nano


def milli(nano: int) -> int:
    """Nano units as milli units, rounded away from zero, as kube's MilliValue does."""
    return _capped(_divide_away(nano, NANO // 1000))


def units(nano: int) -> int:
    """Nano units as whole units, rounded away from zero, as kube's Value does."""
    return _capped(_divide_away(nano, NANO))


def _decimal_exponent(suffix: str, text: str) -> int:
    if suffix in _DECIMAL_EXPONENT:
        return _DECIMAL_EXPONENT[suffix]
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        known = ", ".join([*filter(None, _DECIMAL_EXPONENT), *_BINARY_POWER])
        raise QuantityError(f"{text!r} has the unknown suffix {suffix!r}; suffixes are {known}")
    power = int(exponent[1])
    if abs(power) > 40:
        raise QuantityError(f"{text!r} has an exponent beyond 40")
    return power


def _divide_up(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _divide_away(nano: int, unit: int) -> int:
    return _divide_up(nano, unit) if nano >= 0 else -_divide_up(-nano, unit)


def _capped(value: int) -> int:
    return max(-LARGEST, min(value, LARGEST))
