"""Quantities as exact integers."""

import pytest

from lowtide.objects.quantity import LARGEST, Quantity, QuantityError, milli, parse_nano, units

CAP = LARGEST * 10**9


@pytest.mark.parametrize(
    ("text", "nano", "whole_units", "milli_units"),
    [
        pytest.param("87m", 87_000_000, 1, 87, id="reads milli"),
        pytest.param("123456n", 123_456, 1, 1, id="rounds nano up to one milli"),
        pytest.param("123456789n", 123_456_789, 1, 124, id="rounds nano up to the next milli"),
        pytest.param("1.5", 1_500_000_000, 2, 1500, id="rounds a fraction up to a whole unit"),
        pytest.param("0.1m", 100_000, 1, 1, id="rounds a fraction of a milli up"),
        pytest.param("1536Ki", 1_572_864 * 10**9, 1_572_864, 1_572_864_000, id="reads Ki"),
        pytest.param(
            "1.5Gi", 1_610_612_736 * 10**9, 1_610_612_736, 1_610_612_736_000, id="reads 1.5Gi"
        ),
        pytest.param(
            "1024Mi", 1_073_741_824 * 10**9, 1_073_741_824, 1_073_741_824_000, id="reads Mi"
        ),
        pytest.param("2e3", 2000 * 10**9, 2000, 2_000_000, id="reads an exponent"),
        pytest.param("500M", 500 * 10**15, 500_000_000, 500_000_000_000, id="reads mega"),
        pytest.param("1E", 10**27, 10**18, LARGEST, id="takes E alone for exa, and caps milli"),
        pytest.param("1E3", 1000 * 10**9, 1000, 10**6, id="takes E with digits for an exponent"),
        pytest.param("15e-1", 1_500_000_000, 2, 1500, id="reads a negative exponent"),
        pytest.param("1.", 10**9, 1, 1000, id="allows a dot at the end"),
        pytest.param(".5", 500_000_000, 1, 500, id="allows a dot at the start"),
        pytest.param("+1", 10**9, 1, 1000, id="allows a plus"),
        pytest.param(" 2 ", 2 * 10**9, 2, 2000, id="trims blanks"),
        pytest.param(3, 3 * 10**9, 3, 3000, id="takes a bare integer"),
        pytest.param(0.25, 250_000_000, 1, 250, id="takes a bare float"),
        pytest.param("0", 0, 0, 0, id="reads zero"),
        pytest.param("0.1n", 1, 1, 1, id="rounds what is finer than nano up to one nano"),
        pytest.param("-1.5", -1_500_000_000, -2, -1500, id="rounds a negative away from zero"),
        pytest.param("-0.1n", -1, -1, -1, id="rounds a tiny negative away from zero"),
        pytest.param("9223372036854775807", CAP, LARGEST, LARGEST, id="reads the largest int64"),
        pytest.param("8Ei", CAP, LARGEST, LARGEST, id="caps at the largest int64"),
        pytest.param("-8Ei", -CAP, -LARGEST, -LARGEST, id="caps a negative too"),
        pytest.param("10E", CAP, LARGEST, LARGEST, id="caps a decimal suffix"),
        pytest.param("1e100", CAP, LARGEST, LARGEST, id="caps a large exponent"),
        pytest.param("1e2147483648", CAP, LARGEST, LARGEST, id="caps an exponent beyond int32"),
        pytest.param("0e9223372036854775807", 0, 0, 0, id="reads zero with any exponent"),
        pytest.param("1e-9223372036854775807", 1, 1, 1, id="rounds any negative exponent up"),
        pytest.param("1e0000000000000000000003", 1000 * 10**9, 1000, 10**6, id="pads an exponent"),
        pytest.param("1" + "0" * 120, CAP, LARGEST, LARGEST, id="caps 121 digits"),
        pytest.param("0" * 120 + "1", 10**9, 1, 1000, id="skips leading zeros"),
        pytest.param("1." + "0" * 120, 10**9, 1, 1000, id="skips zeros at the end"),
        pytest.param("1." + "0" * 120 + "1", 10**9 + 1, 2, 1001, id="sees the 121st decimal"),
        pytest.param("1" + "0" * 120 + "e-120", 10**9, 1, 1000, id="brings many digits down"),
        pytest.param("0." + "0" * 120 + "1e121", 10**9, 1, 1000, id="brings many zeros up"),
        pytest.param(
            "9223372036854775806.9999999999", CAP, LARGEST, LARGEST, id="rounds up below the cap"
        ),
        pytest.param("0.0009765625Ki", 10**9, 1, 1000, id="takes a binary fraction for what it is"),
        pytest.param(
            "0.0000000000009094947017729282379150390625Ti", 10**9, 1, 1000, id="keeps 40 decimals"
        ),
        pytest.param(
            "0.00000000000090949470177292823791503906250000000001Ti",
            10**9 + 1,
            2,
            1001,
            id="sees the 50th decimal",
        ),
        pytest.param(10**5000, CAP, LARGEST, LARGEST, id="caps a bare integer of 5001 digits"),
        pytest.param(1e300, CAP, LARGEST, LARGEST, id="caps a bare float"),
    ],
)
def test_a_quantity(text: Quantity, nano: int, whole_units: int, milli_units: int) -> None:
    exact = parse_nano(text)
    assert (exact, units(exact), milli(exact)) == (nano, whole_units, milli_units)


@pytest.mark.parametrize(
    ("suffix", "factor"),
    [
        *[(s, 10**e) for s, e in [("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)]],
        *[(s, 2**e) for s, e in [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50)]],
        ("Ei", 2**60),
    ],
)
def test_every_suffix(suffix: str, factor: int) -> None:
    assert parse_nano(f"2{suffix}") == 2 * factor * 10**9


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="an empty text"),
        pytest.param(".", id="a dot"),
        pytest.param("-", id="a sign"),
        pytest.param("abc", id="a word"),
        pytest.param("1..2", id="two dots after each other"),
        pytest.param("nan", id="not a number"),
        pytest.param("٣", id="digits of another script"),
    ],
)
def test_rejects(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_nano(text)


def test_says_what_would_be_right() -> None:
    with pytest.raises(QuantityError) as caught:
        parse_nano("many")
    assert str(caught.value) == "'many' is not a quantity such as 500m, 2, 1.5Gi or 2e3"


@pytest.mark.parametrize("suffix", ["K", "mi", "ki", "B", "GiB", "e", "e1.5", "x9", "m1"])
def test_rejects_an_unknown_suffix(suffix: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_nano(f"1{suffix}")
    assert str(caught.value) == (
        f"'1{suffix}' has the unknown suffix '{suffix}'; "
        "suffixes are n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei"
    )


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        pytest.param("9" * 10**6, CAP, id="a million digits"),
        pytest.param("0." + "0" * 10**6 + "1", 1, id="a million decimals"),
        pytest.param("1" * 10**6 + "e-999999", 1_111_111_112, id="a million digits brought down"),
    ],
)
def test_reads_a_very_long_text(text: str, nano: int) -> None:
    """Python's own int() rejects it, or takes minutes."""
    assert parse_nano(text) == nano


def test_rejects_an_exponent_of_more_than_64_bits() -> None:
    with pytest.raises(QuantityError, match="'1e9223372036854775808' has the unknown suffix"):
        parse_nano("1e9223372036854775808")


def test_shows_the_start_of_a_long_text() -> None:
    with pytest.raises(QuantityError) as caught:
        parse_nano("x" * 10**6)
    assert str(caught.value) == (f"'{'x' * 40}'... is not a quantity such as 500m, 2, 1.5Gi or 2e3")
