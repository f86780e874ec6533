"""Ends the process after some seconds, whatever Python does.

Used by the watchdog, which puts the end off while all is well, and by the command line for its own
end."""

import faulthandler
import os
from contextlib import suppress
from typing import Final

EXIT_CODE: Final = 1  # faulthandler knows no other


class Backstop:
    """A timer of faulthandler: its thread needs no lock of Python's, so it also ends a process in
    which C code keeps that lock, and PID 1, which ignores most signals of its own.

    It writes the stacks of all threads to stderr first, if that is possible without waiting. Time
    goes on while the process is stopped (SIGSTOP); where the C library has no monotonic wait (musl,
    macOS) it is that of the wall clock."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._stderr = _stderr_without_waiting()

    def put_off(self) -> None:
        """From now on it takes all of its seconds again; before the first time it does not run."""
        with suppress(RuntimeError):  # no thread can be started now
            faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._stderr)

    def cancel(self) -> None:
        faulthandler.cancel_dump_traceback_later()

    def close(self) -> None:
        self.cancel()
        os.close(self._stderr)


def _stderr_without_waiting() -> int:
    """A pipe that nobody reads must not keep the process from its end. The flag for it belongs to
    what is opened, so stderr is opened once more. A socket cannot be: nothing is written then."""
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_APPEND | os.O_NOCTTY
    try:
        return os.open("/dev/stderr", flags)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
