import io
import logging

import click
import pytest
from click.testing import CliRunner

from lowtide.cli.kube_scheduler_flags import kube_scheduler_flags, log_ignored
from lowtide.logs import configure_logs


@click.command()
@kube_scheduler_flags
@click.option("--other")
def command(ignored_flags: list[str], other: str | None) -> None:
    click.echo(f"{ignored_flags} {other}")


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param([], "[] None", id="none"),
        pytest.param(["--port=0", "--other=x"], "['--port'] x", id="the seeds' static pod's"),
        pytest.param(["--profiling", "--other=x"], "['--profiling'] x", id="a switch"),
        pytest.param(
            ["--profiling=false", "--feature-gates=A=true,B=false"],
            "['--profiling', '--feature-gates'] None",
            id="some with values",
        ),
    ],
)
def test_the_command_is_told_of(words: list[str], want: str) -> None:
    ran = CliRunner().invoke(command, words)
    assert (ran.exit_code, ran.output.strip()) == (0, want)


def test_help_does_not_show_them() -> None:
    assert "--port" not in CliRunner().invoke(command, ["--help"]).output


def test_each_is_told_once() -> None:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    configure_logs(verbosity=0, format="text", stream=stream, clock=lambda: 0.0)
    try:
        log_ignored(["--port", "--vmodule"])
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    assert [line.partition("] ")[2] for line in stream.getvalue().splitlines()] == [
        '"A flag of kube-scheduler\'s changes nothing here" flag="--port" '
        'why="kube-scheduler has none since 1.23; --plain-http serves HTTP"',
        '"A flag of kube-scheduler\'s changes nothing here" flag="--vmodule" '
        'why="-v is for all parts"',
    ]
