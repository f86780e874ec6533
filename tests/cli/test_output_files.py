"""Files to write: what is wrong with their paths is told before any work begins."""

import os
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.test_simulate import SMALL

LONG_NAME = "n" * 300


@pytest.fixture
def commands(run: Run) -> dict[str, tuple[str, ...]]:
    """Each would fail otherwise, or print something, but for the path that is added to it."""
    Path("small.yaml").write_text(SMALL)
    Path("run.lowtide").write_bytes(b"no recording")
    return {
        "simulate": ("simulate", "small.yaml", "--plot"),
        "replay's chart": ("replay", "run.lowtide", "--config", "a.yaml", "--plot"),
        "replay's page": ("replay", "run.lowtide", "--config", "a.yaml", "--report"),
        "shadow": ("shadow", "--kubeconfig", "gone", "--report"),
    }


@pytest.mark.parametrize("command", ["simulate", "replay's chart", "replay's page", "shadow"])
@pytest.mark.parametrize(
    ("path", "why"),
    [
        pytest.param("gone/out", "there is no folder gone", id="in no folder"),
        pytest.param("small.yaml/out", "small.yaml is no folder", id="in a file"),
        pytest.param(".", "it is a folder", id="a folder"),
        pytest.param(LONG_NAME, "File name too long", id="with a name that cannot be"),
        # One in which not even root may.
        pytest.param("/dev/pts/out", "Permission denied", id="in a folder of others"),
    ],
)
def test_a_path_that_cannot_be_written_is_told_at_once(
    run: Run, commands: dict[str, tuple[str, ...]], command: str, path: str, why: str
) -> None:
    result = run(*commands[command], path)
    assert (result.exit_code, result.stdout, result.stderr) == (
        1,
        "",
        f"Error: {path}: cannot be written: {why}\n",
    )


def test_trying_a_path_changes_nothing(run: Run, commands: dict[str, tuple[str, ...]]) -> None:
    Path("old.html").write_text("an older page")
    for path in ("old.html", "new.html"):
        assert run(*commands["replay's page"], path).exit_code == 1
    assert (Path("old.html").read_text(), Path("new.html").exists()) == ("an older page", False)


def test_a_pipe_is_not_waited_for(run: Run, commands: dict[str, tuple[str, ...]]) -> None:
    os.mkfifo("pipe")
    result = run(*commands["replay's page"], "pipe")
    assert "cannot be written" not in result.stderr
