import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from lowtide.app import backstop, watchdog
from lowtide.cli.running import log_unhandled

CLOSED = "unable to perform operation on <TCPTransport closed=True>; the handler is closed"

# What runs in a process of its own: the watchdog ends it after 1 second, the backstop after 2.
PRELUDE: Final = """
import asyncio, re, signal, sys, threading, time
from lowtide.app.watchdog import Watchdog
from lowtide.cli.running import run, stop_on_signals

def hold_pythons_lock():
    print("holding", flush=True)
    re.fullmatch("(a|a)*b", "a" * 80)  # takes longer than the universe is old

def run_watched(work):
    return run(work, Watchdog(hung_seconds=10, look_seconds=0.1, backstop_seconds=2))
"""
ON_THE_LOOP: Final = """
async def work():
    stop_on_signals(lambda: None)
    hold_pythons_lock()
run_watched(work())
"""
ON_ANOTHER_THREAD: Final = """
async def work():
    stop_on_signals(lambda: None)
    await asyncio.to_thread(hold_pythons_lock)
run_watched(work())
"""
# As a mode that tidies up after SIGTERM.
AFTER_SIGTERM: Final = """
async def work():
    stopping = asyncio.Event()
    stop_on_signals(stopping.set)
    print("ready", flush=True)
    await stopping.wait()
    hold_pythons_lock()
run_watched(work())
"""
IN_PYTHON: Final = """
async def work():
    time.sleep(3600)
run_watched(work())
"""
# A thread of the loop's that never ends, as where a disk hangs.
AFTER_THE_WORK: Final = """
async def work():
    asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)
run_watched(work())
"""
WHILE_PYTHON_ENDS: Final = """
from lowtide.app.backstop import Backstop
threading.Thread(target=time.sleep, args=[3600]).start()
Backstop(1).put_off()
"""
IN_A_PLUGIN: Final = """
from tests.app.conftest import NOW, app_on
from lowtide.localcluster import LocalCluster
from lowtide.testing import ManualClock

class Slow:
    name = "Slow"

    def filter(self, pod, nodes):
        hold_pythons_lock()
        return ()

async def work():
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("alone")
        container = {"name": "main", "image": "none"}
        spec = {"schedulerName": "lowtide", "containers": [container]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
        cluster.store.create("pods", pod, namespace="default")
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "profiles": [
                {
                    "schedulerName": "lowtide",
                    "plugins": {"multiPoint": {"enabled": [{"name": "Slow"}]}},
                }
            ],
        }
        app = app_on(cluster, config, Slow)
        stop_on_signals(app.stop)
        await app.run()
run_watched(work())
"""
UNTIL_SIGTERM: Final = """
async def work():
    stopping = asyncio.Event()
    stop_on_signals(stopping.set)
    print("ready", flush=True)
    await stopping.wait()
run_watched(work())
"""


@dataclass(frozen=True)
class Ran:
    process: subprocess.Popen[str]

    def read(self, line: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{line}\n"

    def ended(self) -> tuple[int, str]:
        """Its exit code and what it wrote to stderr."""
        _, written = self.process.communicate(timeout=30)
        return self.process.returncode, written or ""


@contextmanager
def running(script: str, stderr: int = subprocess.PIPE) -> Iterator[Ran]:
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        yield Ran(process)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(ON_THE_LOOP, id="the loop"),
        pytest.param(ON_ANOTHER_THREAD, id="another thread"),
        pytest.param(IN_A_PLUGIN, id="a plugin of the scheduler"),
    ],
)
@pytest.mark.parametrize("is_stopped", [False, True], ids=["", "sigterm"])
def test_a_process_whose_c_code_hangs_ends(script: str, is_stopped: bool) -> None:
    with running(script) as ran:
        ran.read("holding")
        if is_stopped:
            ran.process.send_signal(signal.SIGTERM)
        code, written = ran.ended()
    assert code == backstop.EXIT_CODE
    assert "in hold_pythons_lock" in written


def test_a_process_that_hangs_while_it_tidies_up_ends() -> None:
    with running(AFTER_SIGTERM) as ran:
        ran.read("ready")
        ran.process.send_signal(signal.SIGTERM)
        ran.read("holding")
        code, written = ran.ended()
    assert code == backstop.EXIT_CODE
    assert "in hold_pythons_lock" in written


def test_a_process_that_hangs_ends_although_nobody_reads_its_log() -> None:
    reading, writing = os.pipe()
    with running(ON_THE_LOOP, stderr=writing) as ran:
        fill(writing)
        ran.read("holding")
        assert ran.ended()[0] == backstop.EXIT_CODE
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(IN_PYTHON, id="Python code of it"),
        pytest.param(AFTER_THE_WORK, id="a thread that it waits for in the end"),
    ],
)
def test_the_watchdog_is_first_to_end_a_process_in_which_hangs(script: str) -> None:
    with running(script) as ran:
        code, _ = ran.ended()
    assert code == watchdog.EXIT_CODE


def test_a_thread_that_does_not_end_does_not_keep_a_command_that_has_ended() -> None:
    with running(WHILE_PYTHON_ENDS) as ran:
        assert ran.ended()[0] == backstop.EXIT_CODE


def test_a_process_that_is_stopped_from_the_terminal_may_be_continued_at_any_time() -> None:
    """Several times: without the care that is taken it is by chance whether it goes on."""
    with running(UNTIL_SIGTERM) as ran:
        ran.read("ready")
        for _ in range(3):
            ran.process.send_signal(signal.SIGTSTP)
            _, status = os.waitpid(ran.process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            select.select([], [], [], 2.5)  # longer than the backstop waits
            ran.process.send_signal(signal.SIGCONT)
            select.select([], [], [], 0.5)  # it would be ended now
        ran.process.send_signal(signal.SIGTERM)
        assert ran.ended()[0] == 0


@pytest.mark.parametrize(
    ("error", "is_reported"),
    [
        pytest.param(RuntimeError(CLOSED), False, id="not of a connection that we closed"),
        pytest.param(RuntimeError("else"), True, id="of anything else"),
    ],
)
async def test_it_tells(
    error: Exception, is_reported: bool, caplog: pytest.LogCaptureFixture
) -> None:
    context: dict[str, Any] = {"message": "Fatal error on SSL protocol", "exception": error}
    log_unhandled(asyncio.get_running_loop(), context)
    assert bool(caplog.records) is is_reported


def fill(pipe: int) -> None:
    os.set_blocking(pipe, False)
    try:
        while True:
            os.write(pipe, bytes(65536))
    except BlockingIOError:
        os.set_blocking(pipe, True)
