"""Unquoted YAML scalars, as the Kubernetes tools read them."""

import pytest

from lowtide.config.yaml_scalars import Scalar, plain_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("", None, id="takes nothing for null"),
        pytest.param("~", None, id="takes a tilde for null"),
        pytest.param("yes", True, id="takes yes for a boolean"),
        pytest.param("y", True, id="takes a lone y for a boolean"),
        pytest.param("Off", False, id="takes Off for a boolean"),
        pytest.param("tRUE", "tRUE", id="leaves odd capitals a string"),
        pytest.param("16", 16, id="reads an integer"),
        pytest.param("-3", -3, id="reads a negative integer"),
        pytest.param("1_000", 1000, id="reads an integer with underscores"),
        pytest.param("010", 8, id="reads a leading zero as octal"),
        pytest.param("0o10", 8, id="reads 0o as octal"),
        pytest.param("0x1F", 31, id="reads hexadecimal"),
        pytest.param("0b101", 5, id="reads binary"),
        pytest.param("08", 8, id="reads what is no octal as a number"),
        pytest.param("16.0", 16, id="reads a whole float as an integer"),
        pytest.param("1e3", 1000, id="reads an exponent without a sign"),
        pytest.param("0.5", 0.5, id="reads a fraction"),
        pytest.param(".5", 0.5, id="reads a fraction without a leading digit"),
        pytest.param("1e30", 1e30, id="leaves a huge number a float"),
        pytest.param("9" * 25, 1e25, id="reads more digits than 64 bits hold as a float"),
        pytest.param("9" * 5000, "9" * 5000, id="leaves what no float holds a string"),
        pytest.param("0x" + "f" * 17, "0x" + "f" * 17, id="leaves too long a hexadecimal a string"),
        pytest.param("1:30", "1:30", id="leaves 1:30 a string"),
        pytest.param("2026-01-02", "2026-01-02", id="leaves a date a string"),
        pytest.param("10.0.0.1", "10.0.0.1", id="leaves an address a string"),
        pytest.param("15s", "15s", id="leaves a duration a string"),
        pytest.param("-", "-", id="leaves a lone dash a string"),
        pytest.param("eth0", "eth0", id="leaves a word a string"),
    ],
)
def test_a_scalar(text: str, value: Scalar) -> None:
    got = plain_scalar(text)
    assert (type(got), got) == (type(value), value)
