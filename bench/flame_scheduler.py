"""A scheduler that tells its stacks, and drains by it: what --flame runs instead of the usual ones.

Used by ready and by `make bench`."""

import sys
from pathlib import Path

from drain import UNLIMITED_CONFIG, Drain, DrainResult, started
from flame import Flame
from realparts.control_plane import ControlPlane
from realparts.process import Process, free_port
from workloads import SCHEDULER_NAME, Workload


class LookedAtDrain(Drain):
    """Only Lowtide takes turns; its figures are not those of a scheduler that nobody looks at."""

    def __init__(self, workload: Workload, flame: Flame) -> None:
        super().__init__(workload)
        self._flame = flame
        self._port = 0

    def run(self, scheduler: str, number: int) -> DrainResult:
        self._port = free_port()
        with self._flame.of_scheduler(f"http://127.0.0.1:{self._port}"):
            return super().run(scheduler, number)

    def _start(self, scheduler: str) -> Process:
        config = UNLIMITED_CONFIG.replace("NAME", SCHEDULER_NAME)
        return started_for_flame(self._plane, self._folder, config, port=self._port)


def started_for_flame(plane: ControlPlane, folder: Path, config: str, *, port: int) -> Process:
    file = folder / "config.yaml"
    file.write_text(config)
    command = [
        *(sys.executable, "-m", "lowtide", "scheduler", f"--config={file}"),
        f"--kubeconfig={plane.kubeconfig('system:kube-scheduler')}",
        *("--leader-elect=false", f"--secure-port={port}", "--debug"),
    ]
    return started(Process("lowtide", command, folder=folder, url=f"http://127.0.0.1:{port}"))
