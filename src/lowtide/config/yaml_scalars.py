"""Interprets YAML scalars without quotes as Kubernetes does. Called by yaml_document.

Kubernetes' tools convert YAML to JSON with a mix of YAML 1.1 and 1.2: as in 1.1, `yes`, `on` and
`y` are booleans and `010` is 8; but `1:30` and dates are strings, and `16.0` is the integer 16.
"""

import math
import re

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
# The lengths allow for 64 bits. A longer decimal is read as a float, as in Go.
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,19})")
_OTHER_BASES = (
    (re.compile(r"[-+]?0[xX][0-9a-fA-F]{1,16}"), 16),
    (re.compile(r"[-+]?0[oO]?[0-7]{1,22}"), 8),
    (re.compile(r"[-+]?0[bB][01]{1,64}"), 2),
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
# From here on Go prints a float with an exponent, which integer fields do not accept.
_FLOATS_PRINTED_AS_INTEGERS_BELOW = 1e21


def plain_scalar(text: str) -> Scalar:
    """Return the value of a scalar without quotes and without a tag."""
    if text in _WORDS:
        return _WORDS[text]
    if not (text[0] in "+-." or text[0].isdigit()):
        return text
    digits = text.replace("_", "")
    if _DECIMAL.fullmatch(digits):
        return int(digits)
    for pattern, radix in _OTHER_BASES:
        if pattern.fullmatch(digits):
            return int(re.sub(r"0[xXoObB]", "", digits, count=1), radix)
    if _FLOAT.fullmatch(digits):
        value = float(digits)
        return _as_printed(value) if math.isfinite(value) else text
    return text


def _as_printed(value: float) -> int | float:
    if value.is_integer() and abs(value) < _FLOATS_PRINTED_AS_INTEGERS_BELOW:
        return int(value)
    return value
