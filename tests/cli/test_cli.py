"""The command line as a whole: help, version, and no traceback for a user's mistake."""

import ast
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.cli.conftest import Run

COMMANDS = [
    [],
    ["scheduler"],
    ["extender"],
    ["decide"],
    ["config"],
    ["config", "validate"],
    ["config", "show"],
    ["rbac"],
    ["doctor"],
    ["demo"],
    ["version"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command) or "lowtide")
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_has_help(run: Run, command: list[str], option: str) -> None:
    result = run(*command, option)
    assert (result.exit_code, result.stderr) == (0, "")
    usage, _, first, *_ = result.stdout.splitlines()
    assert usage.startswith(f"Usage: {' '.join(['lowtide', *command])} [OPTIONS]")
    assert first.strip()


@pytest.mark.parametrize("group", [[], ["config"]], ids=["lowtide", "config"])
def test_no_description_of_a_command_is_cut(run: Run, group: list[str]) -> None:
    """At the 80 columns that help has where nobody says otherwise."""
    _, _, commands = run(*group, "--help").stdout.partition("Commands:\n")
    lines = commands.splitlines()
    assert lines
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []


def test_the_version_is_the_packages(run: Run) -> None:
    assert run("version").stdout == f"lowtide {version('lowtide')}\n"


def test_the_scheduler_starts_without_what_only_other_commands_need() -> None:
    program = """
import sys
from lowtide.cli import lowtide
lowtide.main(["scheduler", "--help"], standalone_mode=False)
print({name.split(".")[1] for name in sys.modules if name.startswith("lowtide.")})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    rooms = ast.literal_eval(done.stdout.splitlines()[-1])
    assert "scheduler" in rooms
    assert rooms & {"advisor", "doctor", "localcluster", "scenario", "simulator"} == {"scenario"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["schedule"], "No such command 'schedule'", id="an unknown command"),
        pytest.param(
            ["scheduler", "--confg=x"], "No such option '--confg'", id="an unknown option"
        ),
        pytest.param(
            ["scheduler", "--config=x.yaml", "--prometheus=http://p"],
            "--prometheus is for runs without --config; name it in the file",
            id="--prometheus beside --config",
        ),
        pytest.param(
            ["scheduler", "--tls-cert-file=x.pem"],
            "--tls-cert-file and --tls-private-key-file go together",
            id="a certificate without its key",
        ),
        pytest.param(
            ["scheduler", "--leader-elect-lease-duration=soon"],
            "'soon' is not a duration; expected 15s or 1m30s",
            id="a time that is none",
        ),
        pytest.param(
            ["scheduler", "--leader-elect="],
            "'--leader-elect': it is empty; expected true or false",
            id="a truth that is empty",
        ),
        pytest.param(
            ["scheduler", "--secure-port=70000"],
            "70000 is not in the range 0<=x<=65535",
            id="a port that is none",
        ),
    ],
)
def test_usage_is_told_for(run: Run, arguments: list[str], sentence: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(
            ["scheduler", "--config=missing.yaml"],
            "lowtide: missing.yaml: cannot be read: No such file or directory",
            id="a configuration that is missing",
        ),
        pytest.param(
            ["scheduler", "--kubeconfig=missing"],
            "lowtide: missing cannot be read: No such file or directory",
            id="a kubeconfig that is missing",
        ),
    ],
)
def test_one_sentence_is_told_for(run: Run, arguments: list[str], sentence: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"{sentence}\n")


def test_the_installed_command_ends_as_told(tmp_path: Path) -> None:
    lowtide = Path(sys.executable).with_name("lowtide")
    ended = subprocess.run(
        [lowtide, "config", "validate", "missing.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        1,
        "",
        "lowtide: missing.yaml: cannot be read: No such file or directory\n",
    )


def test_a_reader_that_has_seen_enough_is_no_error_of_ours(tmp_path: Path) -> None:
    lines = "".join(
        f'{{"id": "case-{number}", "pod": {{"metadata": {{"name": "web"}}}}}}\n'
        for number in range(3000)
    )
    (tmp_path / "cases.jsonl").write_text(lines)
    lowtide = Path(sys.executable).with_name("lowtide")
    ended = subprocess.run(
        f"{lowtide} decide --output json cases.jsonl | head -1",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (len(ended.stdout.splitlines()), ended.stderr) == (1, "")


def test_flags_of_leader_election_are_checked_together(run: Run) -> None:
    done = run("scheduler", "--master=http://127.0.0.1:1", "--leader-elect-lease-duration=5s")
    assert done.exit_code == 1
    assert "lowtide: leaderElection.leaseDuration: must be more than" in done.stderr
