"""What every test goes by: which tests are `real`, that `long` ones run only when asked for, and
how a test runs `lowtide scheduler` and `lowtide extender` as processes of their own."""

import logging
import os
import signal
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.extender_process import StartExtender, extenders_in

from realparts.process import Process, free_port

pytest_plugins = ["realparts.pytest_plugin"]

# Who runs tests in the background may ignore it, and what tests start would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)

REAL_TESTS = Path(__file__).resolve().parent / "real"
LOWTIDE = Path(sys.executable).parent / "lowtide"


@pytest.hookimpl(tryfirst=True)  # before -m is applied
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(REAL_TESTS):
            item.add_marker(pytest.mark.real)
    if os.environ.get("LOWTIDE_LONG") == "1" or "long" in str(config.option.markexpr):
        return
    long_tests = [item for item in items if item.get_closest_marker("long")]
    if long_tests:
        config.hook.pytest_deselected(items=long_tests)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.fixture(autouse=True)
def _log_level_restored() -> Iterator[None]:
    """A command that a test runs sets it for the whole process; others look at what is logged."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)


@pytest.fixture(scope="session")
def examples() -> Path:
    return Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture
def lowtide_scheduler(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Runs `lowtide scheduler -v 2` with that configuration until it is ready.

    Its `url` serves health and metrics. In the end it has to stop by itself when asked to, with
    exit code 0, and never to have printed a traceback."""
    started: list[Process] = []

    def start(
        config: Mapping[str, Any],
        kubeconfig: Path,
        *flags: str,
        until: Callable[[Process], bool] = is_ready,
        scheme: str = "http",
    ) -> Process:
        name = f"lowtide-{len(started) + 1}"
        config_file = tmp_path / f"{name}.yaml"
        config_file.write_text(yaml.safe_dump(dict(config)))
        port = free_port()
        words = ["scheduler", f"--config={config_file}", f"--kubeconfig={kubeconfig}"]
        process = Process(
            name,
            [LOWTIDE, *words, f"--secure-port={port}", "-v=2", *flags],
            folder=tmp_path,
            url=f"{scheme}://127.0.0.1:{port}",
        )
        started.append(process)
        process.start()
        process.wait_until_ready(lambda: until(process))
        return process

    yield start
    ends = {process.name: process.stop() for process in started if process.is_running()}
    assert ends == dict.fromkeys(ends, 0)
    assert [
        line
        for process in started
        for line in process.log().splitlines()
        if line.startswith("Traceback")
    ] == []


@pytest.fixture
def lowtide_extender(tmp_path: Path) -> Iterator[StartExtender]:
    """Starts `lowtide extender -v 2` until it is ready; see extenders_in."""
    with extenders_in(tmp_path) as start:
        yield start


def is_ready(scheduler: Process) -> bool:
    with urllib.request.urlopen(f"{scheduler.url}/readyz", timeout=5) as response:
        return bool(response.status == 200)
