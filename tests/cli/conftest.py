"""Runs the command line as a user does, without a process of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lowtide.cli import lowtide

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("decide", "x.jsonl")`, in an empty folder; an error of ours is raised as it is."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, plugins: dict[str, type[object]] | None = None) -> Result:
        result = CliRunner().invoke(lowtide, list(arguments), obj=plugins or {})
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run
