"""Bandwidths as people write them: bits per second, as a quantity (10G), like Kubernetes' own
bandwidth annotations. Here they become bytes per second."""

from typing import Final

from lowtide.objects.quantity import NANO, QuantityError, parse_nano

BITS_PER_BYTE = 8
# More than any link carries; what is written beyond it counts as it. Sums of these stay exact.
MOST_BYTES_PER_SECOND: Final = 2.0**50
# No link is slower: shares of a capacity stay finite.
LEAST_BYTES_PER_SECOND: Final = 1.0


def bytes_per_second(text: str, *, may_be_zero: bool = False) -> float:
    """From `10G` or `250M`, in bits per second; QuantityError if it is none, or not above 0."""
    nano = parse_nano(text)
    if nano < 0 or (nano == 0 and not may_be_zero):
        raise QuantityError(f"{text!r} is no bandwidth; right would be 10G or 250M, in bits/s")
    return min(nano / NANO / BITS_PER_BYTE, MOST_BYTES_PER_SECOND)


def bandwidth_text(bytes_per_second: float) -> str:
    """For people: 9.6Gbit/s."""
    bits = bytes_per_second * BITS_PER_BYTE
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if bits >= size:
            return f"{bits / size:.3g}{unit}bit/s"
    return f"{bits:.0f}bit/s"
