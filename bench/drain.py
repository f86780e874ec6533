"""Draining a backlog: all pods exist, then a scheduler starts; measured from outside, in turns.

The turns of one workload are on one API server; `none` is no scheduler but the limit: bindings
posted as fast as the API server takes them."""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

from drain_observer import MACHINE
from drain_observing import Observer, Seen, access_flags
from drain_posting import Server, send_all
from realparts import commands
from realparts.control_plane import ControlPlane
from realparts.parts import obtain
from realparts.process import Process, free_port, wait_until
from workloads import (
    BEFORE,
    CHURNED,
    CHURNING,
    MEASURED,
    NAMESPACES,
    SCHEDULER_NAME,
    Object,
    Workload,
    make_namespace,
    make_priority_class,
    node_name,
)
from workloads import make_node as make_node  # for burst

HERE = Path(__file__).resolve().parent
LOWTIDE = "lowtide"
KUBE_SCHEDULER = "kube-scheduler"
KUBE_SCHEDULER_ALL_NODES = "kube-scheduler-all-nodes"
NONE = "none"
SCHEDULERS = (LOWTIDE, KUBE_SCHEDULER)
# Lowtide between the two that it is compared with: a machine changes its pace within minutes.
TURNS = (NONE, LOWTIDE, KUBE_SCHEDULER, KUBE_SCHEDULER_ALL_NODES)
NAMESPACE = "default"
ALL_NODES_PODS = 300

# The API server and etcd are at rest when they take less than this of a core.
REST_CORES = 0.08
REST_LOOK_SECONDS = 0.5
REST_SECONDS = 30.0
# Go does that before it tells what is left; `debug=1` has it told in text.
COLLECT_GARBAGE = "/debug/pprof/heap?gc=1&debug=1"

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {qps: 5000, burst: 5000}
profiles: [{schedulerName: NAME}]
"""
# Lowtide sets itself no limit unless told to: 5000 would be one.
UNLIMITED_CONFIG = CONFIG.replace("clientConnection: {qps: 5000, burst: 5000}\n", "")


@dataclass(frozen=True, slots=True)
class DrainResult:
    """Pace and CPU count from the first binding, or an eviction that makes room for it, CPU to
    the last Event; `..._with_start` is the CPU of the whole life. No pace is told of pods that
    were all seen at one moment.

    Seconds to a binding count from the scheduler's start: the pods were there before."""

    workload: str
    nodes: int
    pods: int
    scheduler: str
    round: int
    pods_per_second: float | None
    pods_per_second_with_events: float | None
    scheduler_cpu_ms_per_pod: float
    p50_seconds: float
    p99_seconds: float
    rss_mb: float
    scheduler_cpu_ms_per_pod_with_start: float
    api_server_cpu_ms_per_pod: float
    etcd_cpu_ms_per_pod: float
    observer_cpu_ms_per_pod: float
    events: int
    unbound: int
    nodes_used: int
    others_cpu_share: float  # of all CPU that was spent, by what has no part in the benchmark

    @classmethod
    def from_seen(
        cls,
        workload: Workload,
        seen: Seen,
        spent: "Spent",
        *,
        scheduler: str,
        round: int,  # noqa: A002
        started_at: float,
    ) -> Self:
        bound = sorted(seen.bound_at.values())
        ms_per_pod = {name: 1000 * each / len(bound) for name, each in seen.cpu_seconds.items()}
        machine_seconds = seen.cpu_seconds[MACHINE]
        ours_seconds = sum(seen.cpu_seconds.values()) - machine_seconds + seen.own_cpu_seconds
        others_seconds = max(machine_seconds - ours_seconds, 0.0)
        with_events = max(seen.event_at[-1:] + bound[-1:]) if seen.event_at else None
        return cls(
            workload=workload.name,
            nodes=workload.nodes,
            pods=seen.pods,
            scheduler=scheduler,
            round=round,
            pods_per_second=_pace(len(bound), bound[-1] - seen.begun_at),
            pods_per_second_with_events=with_events
            and _pace(len(bound), with_events - seen.begun_at),
            scheduler_cpu_ms_per_pod=ms_per_pod["scheduler"],
            p50_seconds=share_of(bound, 0.50) - started_at,
            p99_seconds=share_of(bound, 0.99) - started_at,
            rss_mb=spent.rss_bytes / 1e6,
            scheduler_cpu_ms_per_pod_with_start=1000 * spent.cpu_seconds / len(bound),
            api_server_cpu_ms_per_pod=ms_per_pod["api_server"],
            etcd_cpu_ms_per_pod=ms_per_pod["etcd"],
            observer_cpu_ms_per_pod=1000 * seen.own_cpu_seconds / len(bound),
            events=len(seen.event_at),
            unbound=seen.pods - len(bound),
            nodes_used=seen.nodes_used,
            others_cpu_share=others_seconds / machine_seconds if machine_seconds else 0.0,
        )


@dataclass(frozen=True, slots=True)
class Spent:
    """By a scheduler in its whole life."""

    cpu_seconds: float
    rss_bytes: int


class Drain:
    """One API server, on which schedulers take turns at the same backlog."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._plane = ControlPlane(
            has_controllers=False,
            has_kwok=False,
            priority_and_fairness=workload.has_priority_and_fairness,
        )
        self._folder = Path(tempfile.mkdtemp(prefix="lowtide-bench-"))
        self._stack = ExitStack()
        self._beside: dict[str, Process] = {}  # what has a part in the benchmark besides

    def __enter__(self) -> Self:
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
        namespaces = map(make_namespace, NAMESPACES)
        self._create({"/api/v1/namespaces": namespaces})
        self._create(
            {
                "/apis/scheduling.k8s.io/v1/priorityclasses": [make_priority_class()],
                "/api/v1/nodes": self._workload.make_nodes(),
            }
        )

    def change_to(self, workload: Workload) -> None:
        """Another workload of as many nodes takes this one's place."""
        self._plane.empty_namespace(BEFORE)
        self._workload = workload

    def run(self, scheduler: str, number: int) -> DrainResult:
        """One turn. Who scores all nodes is given fewer pods, or it would take most of the hour:
        its rows are those of a shorter drain, and what it does with 3000 pods they do not say."""
        pods = self._workload.pods
        if scheduler == KUBE_SCHEDULER_ALL_NODES:
            pods = min(pods, ALL_NODES_PODS)
        self._prepare(pods)
        with Observer(self._plane, MEASURED, BEFORE) as observer, self._churning():
            started_at = time.monotonic()
            process = self._start(scheduler)
            try:
                pids = {name: each.pid for name, each in self._measured(process).items()}
                seen = observer.see(pods=pods, pids=pids, has_events=scheduler != NONE)
                spent = Spent(process.cpu_seconds(), process.rss_bytes())
                self._check(process)
            except (OSError, ValueError) as failure:
                raise RuntimeError(f"{scheduler} was not measured:\n{process.log()}") from failure
            finally:
                process.stop()
        self._plane.empty_namespace(MEASURED)
        if not seen.bound_at:
            raise RuntimeError(f"{scheduler} bound no pod of {self._workload}:\n{process.log()}")
        return DrainResult.from_seen(
            self._workload, seen, spent, scheduler=scheduler, round=number, started_at=started_at
        )

    def _measured(self, scheduler: Process) -> dict[str, Process]:
        servers = self._plane.processes
        return {
            "scheduler": scheduler,
            "api_server": servers["kube-apiserver"],
            "etcd": servers["etcd"],
            **self._beside,
        }

    def _check(self, scheduler: Process) -> None:
        """Whether the turn was what it was to be; here it always is."""

    # Before a turn.

    def _prepare(self, pods: int) -> None:
        """All pods are there as if nobody had been at them, and the API server rests."""
        if self._workload.is_spent_by_trying:
            self._plane.empty_namespace(BEFORE)
        there = self._names(f"/api/v1/namespaces/{BEFORE}/pods")
        self._create(
            {
                f"/api/v1/namespaces/{BEFORE}/pods": [
                    pod
                    for pod in self._workload.make_pods_before()
                    if pod["metadata"]["name"] not in there
                ],
                f"/api/v1/namespaces/{MEASURED}/pods": islice(self._workload.make_pods(), pods),
            }
        )
        rest(self._plane)

    def _names(self, path: str) -> set[str]:
        listed = self._plane.request("GET", path)["items"]
        return {each["metadata"]["name"] for each in listed}

    def _create(self, objects: Mapping[str, Iterable[Object]]) -> None:
        server = server_of(self._plane)
        send_all(
            server,
            [server.request("POST", path, each) for path, many in objects.items() for each in many],
        )

    # Who takes the turn.

    def _start(self, scheduler: str) -> Process:
        match scheduler:
            case "lowtide":
                config = UNLIMITED_CONFIG.replace("NAME", SCHEDULER_NAME)
                return started_lowtide(self._plane, self._folder, config)
            case "kube-scheduler":
                return self._kube_scheduler(CONFIG)
            case "kube-scheduler-all-nodes":
                return self._kube_scheduler(f"{CONFIG}percentageOfNodesToScore: 100\n")
            case "none":
                return self._poster()
        raise ValueError(f"no scheduler is called {scheduler}; there are {', '.join(TURNS)}")

    def _kube_scheduler(self, config: str) -> Process:
        """Unlike ControlPlane's it is not asked whether it is ready: that would cost CPU."""
        kubeconfig = self._plane.kubeconfig("system:kube-scheduler")
        file = self._folder / "kube-scheduler.yaml"
        file.write_text(
            config.replace("NAME", SCHEDULER_NAME).replace(
                "clientConnection: {", f"clientConnection: {{kubeconfig: {kubeconfig}, "
            )
        )
        command = commands.kube_scheduler(
            obtain("kube-scheduler")["kube-scheduler"],
            self._plane.site,
            port=free_port(),
            config_file=file,
            kubeconfig=kubeconfig,
        )
        return started(Process("kube-scheduler", command, folder=self._folder))

    def _poster(self) -> Process:
        file = self._folder / "names.json"
        names = {
            "pods": [pod["metadata"]["name"] for pod in self._workload.make_pods()],
            "nodes": [node_name(number) for number in range(self._workload.nodes)],
        }
        file.write_text(json.dumps(names))
        return started(
            Process(
                "poster",
                [
                    *(sys.executable, str(HERE / "drain_posting.py"), *access_flags(self._plane)),
                    *(f"--namespace={MEASURED}", f"--names={file}"),
                ],
                folder=self._folder,
            )
        )

    @contextmanager
    def _churning(self) -> Iterator[None]:
        if not self._workload.has_churn:
            yield
            return
        churner = started(
            Process(
                "churner",
                [sys.executable, HERE / "drain_churn.py", *access_flags(self._plane)],
                folder=self._folder,
            )
        )
        self._beside["churner"] = churner
        try:
            yield
            if not churner.is_running():
                raise RuntimeError(f"the churner ended too early:\n{churner.log()}")
        finally:
            del self._beside["churner"]
            churner.stop()
            self._plane.empty_namespace(CHURNING)
            self._plane.request("DELETE", f"/api/v1/nodes?labelSelector={CHURNED}")


def rest(plane: ControlPlane, *others: Process) -> None:
    """Returns when the API server and etcd, and others, have done what they had to do. The API
    server has also collected its garbage: that takes both cores for a second, and would else fall
    into whichever turn it falls into, of which some take two."""
    processes = [plane.processes["kube-apiserver"], plane.processes["etcd"], *others]

    def is_at_rest() -> bool:
        before = sum(each.cpu_seconds() for each in processes)
        time.sleep(REST_LOOK_SECONDS)
        spent = sum(each.cpu_seconds() for each in processes) - before
        return spent < REST_CORES * REST_LOOK_SECONDS

    wait_until(is_at_rest, timeout_seconds=REST_SECONDS, what="the API server is at rest")
    plane.client().text("GET", COLLECT_GARBAGE)
    wait_until(is_at_rest, timeout_seconds=REST_SECONDS, what="the API server is at rest")


def started_lowtide(plane: ControlPlane, folder: Path, config: str, *, port: int = 0) -> Process:
    """`lowtide scheduler`, which serves health and metrics on this port, or nothing on 0."""
    file = folder / "config.yaml"
    file.write_text(config)
    return started(
        Process(
            "lowtide",
            [
                *(sys.executable, "-m", "lowtide", "scheduler"),
                f"--config={file}",
                f"--kubeconfig={plane.kubeconfig('system:kube-scheduler')}",
                "--leader-elect=false",
                f"--secure-port={port}",
            ],
            folder=folder,
            url=f"http://127.0.0.1:{port}",
        )
    )


def started(process: Process) -> Process:
    process.start()
    return process


def server_of(plane: ControlPlane) -> Server:
    return Server(plane.url, str(plane.ca_file), plane.admin_token)


def _pace(pods: int, seconds: float) -> float | None:
    return pods / seconds if seconds else None


def share_of(ordered: list[float], share: float) -> float:
    """The lowest value that this share of all is not above."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
