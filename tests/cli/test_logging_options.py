"""How much is logged and in which form, spelled as kube-scheduler's flags."""

import click
import pytest
from click.testing import CliRunner

from lowtide.cli.logging_options import logging_options


@click.command()
@logging_options
def command(verbosity: int, logging_format: str) -> None:
    click.echo(f"{verbosity} {logging_format}")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param([], "0 text", id="have defaults"),
        pytest.param(["-v", "2"], "2 text", id="are read as -v 2"),
        pytest.param(["-v=2"], "2 text", id="are read as -v=2"),
        pytest.param(["-v2"], "2 text", id="are read as -v2"),
        pytest.param(["--v=2"], "2 text", id="are read as --v=2"),
        pytest.param(["--v", "10"], "10 text", id="are read as --v 10"),
        pytest.param(["--logging-format=json"], "0 json", id="name the form"),
    ],
)
def test_the_options(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert (result.exit_code, result.stdout) == (0, f"{told}\n")


@pytest.mark.parametrize("level", ["-1", "two", "", "=", "²"])
def test_a_level_that_is_none_is_rejected(level: str) -> None:
    result = CliRunner().invoke(command, [f"--v={level}"])
    assert result.exit_code == 2
    assert f"{level!r} is not a level; expected 0 to 10" in result.stderr
