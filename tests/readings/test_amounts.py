"""Bandwidths as people write them."""

import pytest

from lowtide.objects.quantity import QuantityError
from lowtide.readings.amounts import bandwidth_text, bytes_per_second


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("8", 1.0, id="takes a plain number for bits"),
        pytest.param("10G", 1.25e9, id="takes G for 10^9"),
        pytest.param("250M", 31.25e6, id="takes M for 10^6"),
        pytest.param("1Gi", 2**30 / 8, id="takes Gi for 2^30"),
        pytest.param("1e9", 1.25e8, id="takes an exponent"),
        pytest.param("500m", 0.0625, id="takes m for a thousandth"),
    ],
)
def test_a_bandwidth(text: str, want: float) -> None:
    assert bytes_per_second(text) == want


def test_nothing_is_a_bandwidth_only_where_it_may_be() -> None:
    assert bytes_per_second("0", may_be_zero=True) == 0.0
    with pytest.raises(QuantityError):
        bytes_per_second("-1", may_be_zero=True)


@pytest.mark.parametrize("text", ["", "fast", "0", "-1G", "10Gbit", "10 G", "1G/s"])
def test_a_bandwidth_is_rejected(text: str) -> None:
    with pytest.raises(QuantityError):
        bytes_per_second(text)


@pytest.mark.parametrize(
    ("amount", "want"),
    [
        pytest.param(0, "0bit/s", id="nothing"),
        pytest.param(100, "800bit/s", id="in bits"),
        pytest.param(125, "1kbit/s", id="in thousands"),
        pytest.param(31.25e6, "250Mbit/s", id="in millions"),
        pytest.param(1.2e9, "9.6Gbit/s", id="in thousands of millions"),
    ],
)
def test_in_words(amount: float, want: str) -> None:
    assert bandwidth_text(amount) == want


@pytest.mark.parametrize("text", ["9P", "1e100", "9" * 5000])
def test_more_than_any_link_carries_counts_as_the_most(text: str) -> None:
    assert bytes_per_second(text) == (2**50 if text != "9P" else 9 * 10**15 / 8)
