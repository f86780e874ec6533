"""Converts bandwidths that users write into bytes per second, and back into text.

Users write bits per second as a quantity (10G), as in Kubernetes' bandwidth annotations."""

from typing import Final

from lowtide.objects.quantity import NANO, QuantityError, parse_nano

BITS_PER_BYTE = 8
# More than any link carries; larger values are capped here. Sums of such values stay exact.
MOST_BYTES_PER_SECOND: Final = 2.0**50
# The lowest capacity of any link, so that shares of a capacity stay finite.
LEAST_BYTES_PER_SECOND: Final = 1.0


def bytes_per_second(text: str, *, may_be_zero: bool = False) -> float:
    """Parse `10G` or `250M`, in bits per second.

    Raises QuantityError if the text is not a quantity, is negative, or is 0 where 0 is not allowed.
    """
    nano = parse_nano(text)
    if nano < 0 or (nano == 0 and not may_be_zero):
        raise QuantityError(f"{text!r} is not a bandwidth; write for example 10G or 250M (bits/s)")
    return min(nano / NANO / BITS_PER_BYTE, MOST_BYTES_PER_SECOND)


def bandwidth_text(bytes_per_second: float) -> str:
    """The bandwidth for display, such as `9.6Gbit/s`."""
    bits = bytes_per_second * BITS_PER_BYTE
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if bits >= size:
            return f"{bits / size:.3g}{unit}bit/s"
    return f"{bits:.0f}bit/s"
