"""One server as a child process: start, wait until it answers, measure, stop, with nothing left.

Used by control_plane, prometheus and hosts, and by tests that run `lowtide` itself."""

import atexit
import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

LINES_OF_A_DEAD_PROCESS = 25
POLL_SECONDS = 0.02
PR_SET_PDEATHSIG = 1
# Below the range that outgoing connections take their ports from (from 32768 on Linux): a client
# that dials a stopped server on loopback could otherwise be given that very port, meet itself,
# and keep the server from coming back.
LISTENING_PORTS = range(20_000, 32_000)


class ProcessError(Exception):
    """A process ended or stayed silent when it should have been ready; the log's end is told."""


def free_ports(count: int) -> list[int]:
    """Different ports of loopback that nothing listens on."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for port in random.sample(LISTENING_PORTS, k=len(LISTENING_PORTS)):
            candidate = held.enter_context(socket.socket())
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == count:
                return ports
    raise ProcessError(
        f"{len(ports)} of {count} wanted ports are free between {LISTENING_PORTS.start} "
        f"and {LISTENING_PORTS.stop}; stop what listens there"
    )


def free_port() -> int:
    return free_ports(1)[0]


def wait_until(
    check: Callable[[], bool],
    *,
    timeout_seconds: float,
    what: str,
    every_seconds: float = POLL_SECONDS,
) -> None:
    """Asks `check` again and again until it says yes; a rejected connection counts as no.

    Ask seldom (`every_seconds`) what costs the server much, such as a list of many pods."""
    deadline = time.monotonic() + timeout_seconds
    while not _says_yes(check):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not so within {timeout_seconds:g} seconds")
        time.sleep(every_seconds)


def _says_yes(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except OSError:
        return False


class Process:
    """A command that runs in a session of its own, its output in a log file.

    The kernel kills it when the thread that called `start` ends, so nothing survives a killed
    test run: start it from a thread that lives as long as it should."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        url: str = "",
    ) -> None:
        self.name = name
        self.command = [str(word) for word in command]
        self.folder = folder
        self.environment = environment
        self.url = url
        self.log_file = folder / f"{name}.log"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self.is_running():
            raise ProcessError(f"{self.name} already runs as {self.pid}; stop it first")
        with self.log_file.open("ab") as log, warnings.catch_warnings():
            # Python 3.12 warns of any preexec_fn beside threads; ours makes two system calls.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._child = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=None if self.environment is None else {**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_the_parent(),
            )
        atexit.register(self.stop)

    @property
    def pid(self) -> int:
        if self._child is None:
            raise ProcessError(f"{self.name} was not started; call start() first")
        return self._child.pid

    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        return None if self._child is None else self._child.poll()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def wait_until_ready(self, check: Callable[[], bool], timeout_seconds: float = 30.0) -> None:
        """Waits for `check`; raises ProcessError with the log's end on an early death."""

        def ready_or_dead() -> bool:
            return not self.is_running() or _says_yes(check)

        try:
            wait_until(ready_or_dead, timeout_seconds=timeout_seconds, what=self.name)
        except TimeoutError:
            raise ProcessError(
                f"{self.name} is not ready after {timeout_seconds:g} seconds:\n{self._log_end()}"
            ) from None
        if not self.is_running():
            raise ProcessError(
                f"{self.name} ended with {self.exit_code} before it was ready:\n{self._log_end()}"
            )

    def wait(self, timeout_seconds: float) -> int:
        """The exit code, after the process ended by itself."""
        if self._child is None:
            raise ProcessError(f"{self.name} was not started; call start() first")
        try:
            return self._child.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            raise ProcessError(
                f"{self.name} still runs after {timeout_seconds:g} seconds:\n{self._log_end()}"
            ) from None

    def send(self, number: signal.Signals) -> None:
        if self._child is not None:
            self._child.send_signal(number)

    def stop(self, grace_seconds: float = 10.0) -> int | None:
        """SIGTERM, then SIGKILL after the grace; the exit code (negative: the signal)."""
        atexit.unregister(self.stop)
        if self._child is None:
            return None
        self._child.terminate()
        try:
            return self._child.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int | None:
        atexit.unregister(self.stop)
        if self._child is None:
            return None
        self._child.kill()
        return self._child.wait()

    def cpu_seconds(self) -> float:
        """User and system time of all its threads since it started."""
        # The name in the second field may hold blanks; the fields are counted from after it.
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_bytes(self) -> int:
        resident_pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(resident_pages) * os.sysconf("SC_PAGE_SIZE")

    def _log_end(self) -> str:
        return "\n".join(self.log().splitlines()[-LINES_OF_A_DEAD_PROCESS:])


def _die_with_the_parent() -> Callable[[], None]:
    control = ctypes.CDLL(None, use_errno=True).prctl  # looked up before the fork
    parent = os.getpid()

    def in_the_child() -> None:
        control(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the kernel knew
            os._exit(1)

    return in_the_child
