"""How soon a scheduler schedules on a full cluster, and how much memory it takes then.

The real API server has 5000 nodes and 30,000 running pods; measured is `lowtide scheduler` from the
start of its process, again and again. `make bench` runs it."""

import compileall
import json
import shutil
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from ssl import create_default_context
from typing import Self

import lowtide
from drain import UNLIMITED_CONFIG, rest, server_of, started_lowtide
from drain_posting import send_all
from flame import Flame
from flame_scheduler import started_for_flame
from ready_objects import NAMESPACE, make_canary, make_running_pods
from realparts.control_plane import ControlPlane
from realparts.process import Process, free_port
from workloads import make_zoned_node

NODES = 5000
PODS = 30_000
SCHEDULER_NAME = "ready"
LONGEST_SECONDS = 120.0
AT_ONCE = 32
LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ReadyResult:
    """Seconds count from the start of the process; memory is taken once the canary is bound."""

    workload: str
    nodes: int
    pods: int
    scheduler: str
    round: int
    ready_seconds: float
    first_binding_seconds: float
    cpu_seconds: float
    rss_mb: float
    peak_rss_mb: float
    list_mb: float
    create_seconds: float


class Ready:
    """One full cluster, on which the scheduler is started in each round."""

    def __init__(self, flame: Flame | None = None) -> None:
        self._flame = flame
        self._plane = ControlPlane(
            has_controllers=False, has_kwok=False, priority_and_fairness=False
        )
        self._folder = Path(tempfile.mkdtemp(prefix="lowtide-bench-"))
        self._stack = ExitStack()
        self._create_seconds = 0.0
        self._list_bytes = 0

    def __enter__(self) -> Self:
        # As an installation leaves it, also where Python is told to write no bytecode.
        compileall.compile_dir(lowtide.__path__[0], quiet=1)
        self._stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
        try:
            self._set_up()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _set_up(self) -> None:
        self._stack.enter_context(self._plane)
        begin = time.monotonic()
        self._fill()
        self._create_seconds = time.monotonic() - begin
        self._list_bytes = len(self._plane.client().text("GET", _list_path()))

    def run(self, number: int) -> ReadyResult:
        canary = f"canary-{number}"
        self._plane.request("POST", _pods_path(), make_canary(canary, SCHEDULER_NAME))
        rest(self._plane)
        bound = _Moment(self._binding_of(canary))
        started_at = time.monotonic()
        config = UNLIMITED_CONFIG.replace("NAME", SCHEDULER_NAME)
        start = started_lowtide if self._flame is None else started_for_flame
        process = start(self._plane, self._folder, config, port=free_port())
        try:
            with nullcontext() if self._flame is None else self._flame.of_scheduler(process.url):
                ready_at = _Moment(lambda: _wait_until_ready(process)).unix_time()
                bound_at = bound.unix_time()
            result = self._result(number, process, ready_at - started_at, bound_at - started_at)
        finally:
            process.stop()
        self._plane.request("DELETE", f"{_pods_path()}/{canary}?gracePeriodSeconds=0")
        return result

    def _fill(self) -> None:
        """Twice for each pod: what a kubelet says of it is not taken when it is created."""
        server = server_of(self._plane)
        nodes = map(make_zoned_node, range(NODES))
        send_all(server, [server.request("POST", "/api/v1/nodes", each) for each in nodes], AT_ONCE)
        pods = list(make_running_pods(PODS, NODES))
        created = [server.request("POST", _pods_path(), each) for each in pods]
        send_all(server, created, AT_ONCE)
        told = [
            server.request("PUT", f"{_pods_path()}/{each['metadata']['name']}/status", each)
            for each in pods
        ]
        send_all(server, told, AT_ONCE)

    def _binding_of(self, name: str) -> Callable[[], None]:
        """Waits until that pod has a node; the watch is open when this returns."""
        request = urllib.request.Request(
            f"{self._plane.url}{_pods_path()}?watch=true&fieldSelector=metadata.name={name}",
            headers={"Authorization": f"Bearer {self._plane.admin_token}"},
        )
        context = create_default_context(cafile=str(self._plane.ca_file))
        response = urllib.request.urlopen(request, context=context)

        def wait() -> None:
            with response:
                for line in response:
                    if json.loads(line)["object"]["spec"].get("nodeName"):
                        return

        return wait

    def _result(
        self, number: int, process: Process, ready_seconds: float, first_binding_seconds: float
    ) -> ReadyResult:
        return ReadyResult(
            workload="ready",
            nodes=NODES,
            pods=PODS,
            scheduler="lowtide",
            round=number,
            ready_seconds=ready_seconds,
            first_binding_seconds=first_binding_seconds,
            cpu_seconds=process.cpu_seconds(),
            rss_mb=process.rss_bytes() / 1e6,
            peak_rss_mb=_peak_rss_bytes(process) / 1e6,
            list_mb=self._list_bytes / 1e6,
            create_seconds=self._create_seconds,
        )


class _Moment:
    """When something is over that a thread waits for from now on."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self._is_over = threading.Event()
        self._over_at = 0.0
        threading.Thread(target=self._run, args=(wait,), daemon=True).start()

    def unix_time(self) -> float:
        if not self._is_over.wait(LONGEST_SECONDS):
            raise TimeoutError(f"the scheduler was not ready within {LONGEST_SECONDS:.0f} seconds")
        return self._over_at

    def _run(self, wait: Callable[[], None]) -> None:
        wait()
        self._over_at = time.monotonic()
        self._is_over.set()


def _wait_until_ready(process: Process) -> None:
    """Until /readyz says yes; that of a busy process comes late, which counts."""
    while process.is_running():
        with (
            suppress(OSError, urllib.error.HTTPError),
            urllib.request.urlopen(f"{process.url}/readyz", timeout=LONGEST_SECONDS),
        ):
            return
        time.sleep(LOOK_SECONDS)


def _peak_rss_bytes(process: Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    (kibibytes,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return 1024 * int(kibibytes)


def _pods_path() -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/pods"


def _list_path() -> str:
    return f"{_pods_path()}?resourceVersion=0"
