"""A file or a Prometheus, for every command that can do with either."""

import pytest
from tests.cli.conftest import Run


@pytest.mark.parametrize("command", [["scheduler"], ["shadow"], ["record", "file"]])
def test_a_prometheus_beside_a_file_is_a_usage_error(run: Run, command: list[str]) -> None:
    result = run(*command, "--config", "config.yaml", "--prometheus", "http://127.0.0.1:9090")
    assert result.exit_code == 2
    told = result.stderr.splitlines()[-1]
    assert told == "Error: --prometheus is for runs without --config; name it in the file"


@pytest.mark.parametrize("command", [["shadow"], ["record", "file"]])
def test_how_long_it_runs_is_a_duration(run: Run, command: list[str]) -> None:
    result = run(*command, "--for", "soon")
    assert result.exit_code == 2
    told = "Invalid value for '--for': 'soon' is not a duration; expected 15s or 1m30s"
    assert result.stderr.splitlines()[-1] == f"Error: {told}"
