"""Keeps replicas of the scheduler running as a kubelet would: who ended is started again at once.

Used by the arena; faults kill, freeze and end replicas through it."""

import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from faults.auditor import Life
from realparts.process import Process, wait_until

LOOK_SECONDS = 0.01
STOP_SECONDS = 45.0  # a pod is granted 30
WATCHDOG_EXIT_CODE = 70


@dataclass(slots=True)
class Replica:
    """One of several; who it is to the API server tells it from the others in the audit log."""

    user: str
    process: Process
    is_wanted: bool = True
    began_at: float = 0.0
    ends: list[int] = field(default_factory=list)  # exit codes, negative: the signal


class Supervisor:
    """Its thread is the one that starts processes: they end with it."""

    def __init__(
        self,
        make: Callable[[str], Process],
        users: Sequence[str],
        *,
        wall_clock: Callable[[], float],
    ) -> None:
        self._make = make
        self._wall_clock = wall_clock
        self.replicas = [Replica(user, make(user)) for user in users]
        self.lives: list[Life] = []
        self._lock = threading.Lock()  # a replica is started or ended, not both
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._keep_running, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> list[int]:
        """SIGTERM to all, as long as it takes; how each ended."""
        with self._lock:
            for replica in self.replicas:
                replica.is_wanted = False
                if replica.process.is_running():
                    replica.process.send(signal.SIGCONT)
                    replica.process.send(signal.SIGTERM)
        try:
            wait_until(
                lambda: not any(replica.process.is_running() for replica in self.replicas),
                timeout_seconds=STOP_SECONDS,
                what="all replicas ended",
            )
        except TimeoutError:
            for replica in self.replicas:
                self.kill(replica)
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()
            for replica in self.replicas:
                self._look_after(replica)  # notes their ends
        return [replica.ends[-1] for replica in self.replicas if replica.ends]

    def replica_of(self, user: str) -> Replica:
        return next(replica for replica in self.replicas if replica.user == user)

    def kill(self, replica: Replica) -> None:
        replica.process.send(signal.SIGKILL)

    def replace(self, replica: Replica) -> None:
        """Ends it as an upgrade does; returns when the next one was started."""
        ended = len(replica.ends)
        replica.process.send(signal.SIGTERM)
        wait_until(
            lambda: len(replica.ends) > ended and replica.began_at > 0.0,
            timeout_seconds=STOP_SECONDS,
            what=f"{replica.user} is replaced",
        )

    def _keep_running(self) -> None:
        while not self._is_over.is_set():
            with self._lock:
                for replica in self.replicas:
                    self._look_after(replica)
            self._is_over.wait(LOOK_SECONDS)

    def _look_after(self, replica: Replica) -> None:
        if replica.process.is_running():
            return
        exit_code = replica.process.exit_code
        if exit_code is not None and replica.began_at:
            replica.ends.append(exit_code)
            self.lives.append(
                Life(
                    replica.user,
                    replica.began_at,
                    self._wall_clock(),
                    ended_abruptly=exit_code < 0 or exit_code == WATCHDOG_EXIT_CODE,
                )
            )
            replica.began_at = 0.0
        if replica.is_wanted:
            replica.process = self._make(replica.user)
            replica.began_at = self._wall_clock()
            replica.process.start()
