"""`lowtide shadow` and `lowtide record` where the API server is away: run as a user would."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from realparts.process import free_port

COMMANDS = {"shadow": ["shadow", "--port=0"], "record": ["record", "run.lowtide"]}
NO_TRAFFIC = (
    "No plugin reads traffic, so links are not measured: give --prometheus URL, or --config FILE "
    "with NetworkTraffic"
)


@pytest.fixture
def address(tmp_path: Path) -> str:
    """Where nothing listens; the kubeconfig beside it names it."""
    server = f"http://127.0.0.1:{free_port()}"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    return server


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "lowtide", *arguments, "--kubeconfig=kubeconfig"]
    with subprocess.Popen(
        words, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("command", ["shadow", "record"])
def test_a_cluster_that_was_never_seen_is_told_once_and_at_the_end(
    tmp_path: Path, address: str, command: str
) -> None:
    with started(tmp_path, *COMMANDS[command], "--for=3s") as process:
        out, err = process.communicate(timeout=60)
    why = f"No answer from {address}: Connection refused"
    warned = [line for line in err.splitlines() if line.startswith("W")]
    assert [line.partition("] ")[2] for line in warned] == [
        NO_TRAFFIC,
        f'"Cannot reach the cluster, trying again" err="{why}"',
    ]
    last = err.splitlines()[-1]
    assert last == f"lowtide: nodes and pods of the cluster were never seen: {why}"
    assert (out, process.returncode) == ("", 1)
    assert [each.name for each in tmp_path.iterdir()] == ["kubeconfig"]


@pytest.mark.parametrize("command", ["shadow", "record"])
def test_with_a_prometheus_links_are_measured(tmp_path: Path, address: str, command: str) -> None:
    words = (*COMMANDS[command], f"--prometheus={address}", "--for=1s")
    with started(tmp_path, *words) as process:
        _, err = process.communicate(timeout=60)
    assert "Cannot reach the cluster" in err
    assert NO_TRAFFIC not in err


def test_ctrl_c_ends_it_with_the_same_words(tmp_path: Path, address: str) -> None:
    with started(tmp_path, *COMMANDS["shadow"]) as process:
        assert process.stderr is not None
        assert NO_TRAFFIC in process.stderr.readline()
        assert "Cannot reach the cluster" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    why = f"No answer from {address}: Connection refused"
    assert err == f"lowtide: nodes and pods of the cluster were never seen: {why}\n"
    assert (out, process.returncode) == ("", 1)
