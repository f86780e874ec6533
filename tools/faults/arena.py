"""Where faults are tried: a control plane, the auditor that follows it, and for each trial fresh
schedulers and pods. In the end of a trial everything has to be bound, told and over."""

import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from faults.auditor import Auditor, Missing
from faults.following import AUDIT_POLICY, Following
from faults.proxy import Proxy
from faults.report import Figures, Injected
from faults.supervisor import Replica, Supervisor
from faults.workload import (
    NAMESPACE,
    PODS,
    PODS_OF_A_NODE,
    SCHEDULER_NAME,
    Load,
    make_node,
    make_pods,
)
from realparts.api_client import ApiClient
from realparts.control_plane import ControlPlane
from realparts.process import Process, free_port, wait_until
from realparts.pytest_plugin import SCHEDULER_RIGHTS
from realparts.users import User, write_kubeconfig

LOWTIDE = Path(sys.executable).parent / "lowtide"
USERS = ("lowtide-1", "lowtide-2", "lowtide-3")
LOAD_EVERY_SECONDS = 0.1
SETTLE_SECONDS = 180.0
EVENTS_SECONDS = 10.0
RECOVERY_SECONDS = 90.0
ASKS_FOR_LEASE = "Attempting to acquire leader lease"
WARM_SECONDS = 1.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Size:
    nodes: int
    drain_pods: int
    kills: int
    burst_pods: int
    freeze_seconds: float
    cut_seconds: float


FULL = Size(
    nodes=500, drain_pods=3000, kills=20, burst_pods=300, freeze_seconds=30.0, cut_seconds=15.0
)
SHORT = Size(nodes=100, drain_pods=600, kills=4, burst_pods=60, freeze_seconds=8.0, cut_seconds=5.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """How the schedulers of a trial are run."""

    replicas: int = 1
    elects: bool = False
    is_through_proxy: bool = False
    may_print_tracebacks: bool = False
    profile: Mapping[str, Any] | None = None  # besides its schedulerName
    flags: Sequence[str] = ()
    environment: Mapping[str, str] | None = None
    folder: Path | None = None  # of their logs


class Arena:
    """One control plane for all trials."""

    def __init__(self, size: Size, folder: Path, say: Say) -> None:
        self.size = size
        self.folder = folder
        self.say = say
        self.auditor = Auditor()
        self.figures = Figures()
        self.injected: list[Injected] = []
        policy = folder / "audit-policy.json"
        policy.write_text(json.dumps(AUDIT_POLICY))
        audit_log = folder / "audit.log"
        self.plane = ControlPlane(
            has_controllers=False,
            has_kwok=False,
            users=[User(name, f"{name}-token") for name in USERS],
            audit_log=audit_log,
            api_server_flags=[f"--audit-policy-file={policy}"],
        )
        self._audit_log = audit_log
        self._following: Following | None = None

    def __enter__(self) -> Self:
        self.plane.start()
        self.grant(SCHEDULER_RIGHTS)
        self.plane.create_all("/api/v1/nodes", map(make_node, range(self.size.nodes)))
        self.proxy = Proxy(self.plane.site.ports.api_server, port=free_port())
        self.proxy.start()
        self._following = Following(
            self.auditor,
            url=self.plane.url,
            ca_file=self.plane.ca_file,
            token=self.plane.admin_token,
            audit_log=self._audit_log,
        )
        self._following.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.proxy.stop()
        if self._following is not None:
            self._following.stop()
        self.plane.stop()

    def grant(self, permissions: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """To the users of all replicas."""
        for path, manifest in permissions:
            self.plane.request("POST", path, _with_users(manifest))

    @contextmanager
    def trial(self, name: str, setting: Setting | None = None) -> Iterator["Trial"]:
        """Pods come all the time; when the faults are over, all has to be well again."""
        trial = Trial(self, name, setting or Setting())
        try:
            yield trial
            trial.settle()
        finally:
            trial.end()

    def finish(self) -> Figures:
        """What was wrong in all of it."""
        auditor, figures = self.auditor, self.figures
        figures.faults = len(self.injected)
        figures.pods = auditor.pod_count
        figures.double_bindings = len(auditor.double_bindings)
        figures.overcommitted_nodes = len(auditor.overcommitted_nodes)
        figures.violations = len(auditor.violations)
        figures.bindings_of_former_leaders = auditor.bindings_of_former_leaders().total()
        recoveries = [each.recovery_seconds or 0.0 for each in self.injected]
        figures.longest_recovery_seconds = max(recoveries, default=0.0)
        return figures


class Trial:
    def __init__(self, arena: Arena, name: str, setting: Setting) -> None:
        self.arena = arena
        self.auditor = arena.auditor
        self.plane = arena.plane
        self.size = arena.size
        self.name = name
        self.setting = setting
        self.began_at = time.time()
        self.supervisor = Supervisor(
            self._make_process, USERS[: setting.replicas], wall_clock=time.time
        )
        self._load: Load | None = None
        self._posted = 0

    # What faults use.

    def start_schedulers(self) -> None:
        self.supervisor.start()

    def start_load(self) -> None:
        """Pods one by one, as long as the trial lasts and the nodes have room."""
        client = ApiClient(self.plane.url, str(self.plane.ca_file), self.plane.admin_token)
        room = PODS_OF_A_NODE * self.size.nodes * 3 // 4 - self.size.burst_pods
        self._load = Load(
            client, f"{self.name}-load", every_seconds=LOAD_EVERY_SECONDS, most_pods=room
        )
        self._load.start()

    def start(self) -> None:
        """Schedulers and load, until pods are being bound."""
        before = self.auditor.bound_count
        self.start_schedulers()
        self.start_load()
        self.wait(lambda: self.auditor.bound_count >= before + 5, "pods are bound")

    def post(self, count: int) -> None:
        """Many at once."""
        self._posted += 1
        self.plane.create_all(PODS, make_pods(f"{self.name}-{self._posted}", count))

    def wait(self, check: Callable[[], bool], what: str, seconds: float = RECOVERY_SECONDS) -> None:
        wait_until(check, timeout_seconds=seconds, what=f"{self.name}: {what}")

    @contextmanager
    def inject(self, name: str) -> Iterator[None]:
        """A fault that lasts as long as what is in it; then a pod has to be bound."""
        began_at = time.time()
        yield
        self.note(name, began_at, time.time())

    def note(self, name: str, began_at: float, ended_at: float, after: float | None = None) -> None:
        """Waits for the next pod that is bound; `after` is later than the end where bindings on
        the wire could be taken for it."""
        moment = after or ended_at
        with suppress(TimeoutError):
            self.wait(lambda: self.auditor.first_bound_after(moment) is not None, name)
        next_bound_at = self.auditor.first_bound_after(moment)
        self.keep(Injected(name, began_at, ended_at, next_bound_at))

    def keep(self, injected: Injected) -> None:
        self.arena.injected.append(injected)
        lasted = injected.ended_at - injected.began_at
        if injected.recovery_seconds is None:
            self.auditor.object_to(f"{injected.name}: no pod was bound after it")
            recovered = "no pod was bound after it"
        else:
            recovered = f"the next pod was bound after {injected.recovery_seconds:.1f} s"
        self.arena.say(f"  {injected.name}: lasted {lasted:.1f} s, {recovered}")

    def leader(self) -> Replica:
        """The replica that holds the lease, as the audit log tells."""
        self.wait(self._has_leader, "a replica leads")
        return self.supervisor.replica_of(self.auditor.leaderships[-1].user)

    def wait_for_standbys(self) -> None:
        """Who is only just starting cannot be asked to end, and dies of it."""
        replicas = self.supervisor.replicas
        self.wait(
            lambda: all(ASKS_FOR_LEASE in each.process.log() for each in replicas), "all are up"
        )

    def replace(self, replica: Replica) -> None:
        """Ends it as an upgrade does, and waits until the next one is warm."""
        asked = replica.process.log().count(ASKS_FOR_LEASE)
        self.supervisor.replace(replica)
        self.wait(lambda: replica.process.log().count(ASKS_FOR_LEASE) > asked, "it is up")
        time.sleep(WARM_SECONDS)

    # Its end.

    def settle(self) -> None:
        """Everything that can be bound is, and everybody was told; who is asked to end does."""
        self._stop_load()
        figures, auditor = self.arena.figures, self.auditor
        there = [each["metadata"]["uid"] for each in self.plane.request("GET", PODS)["items"]]
        self._wait_a_while(lambda: auditor.has_seen(there), EVENTS_SECONDS)
        self._wait_a_while(lambda: not auditor.unbound(), SETTLE_SECONDS)
        self._wait_a_while(lambda: not auditor.without_condition(), EVENTS_SECONDS * 3)
        figures.lost_pods += self._count("pods were not bound", auditor.unbound())
        lost = auditor.without_condition()
        figures.lost_conditions += self._count("conditions were not written", lost)
        self._stop_schedulers()
        auditor.object_to_former_leaders(self.name, self.began_at)
        self._wait_a_while(lambda: not self._missing().lost, EVENTS_SECONDS)
        missing = self._missing()
        figures.lost_events += self._count("Events were not written", missing.lost)
        figures.missing_events_after_kill += len(missing.after_kill)
        if missing.after_kill:
            self.arena.say(f"  {len(missing.after_kill)} Events died with who was killed")

    def end(self) -> None:
        self._stop_load()
        self.supervisor.stop()
        self.plane.empty_namespace(NAMESPACE)

    def _stop_load(self) -> None:
        if self._load is not None:
            self._load.stop()
            self._load = None

    def _stop_schedulers(self) -> None:
        ends = self.supervisor.stop()
        # One that was started a moment ago cannot be asked to end yet, and has nothing to lose.
        if set(ends) - {0, -signal.SIGTERM}:
            self.auditor.object_to(f"{self.name}: SIGTERM ended schedulers with {ends}")
        for replica in self.supervisor.replicas:
            log = replica.process.log()
            if "Traceback" in log and not self.setting.may_print_tracebacks:
                where = replica.process.log_file
                self.auditor.object_to(f"{self.name}: {where} has a traceback")

    def _missing(self) -> Missing:
        return self.auditor.without_event(self.supervisor.lives)

    def _count(self, what: str, uids: set[str]) -> int:
        if uids:
            self.arena.say(f"  {len(uids)} {what}: {', '.join(sorted(uids)[:3])} ...")
        return len(uids)

    def _wait_a_while(self, check: Callable[[], bool], seconds: float) -> None:
        with suppress(TimeoutError):
            wait_until(check, timeout_seconds=seconds, what=self.name, every_seconds=0.1)

    def _has_leader(self) -> bool:
        leaderships = self.auditor.leaderships
        return bool(leaderships) and leaderships[-1].acquired_at > self.began_at

    def _make_process(self, user: str) -> Process:
        folder = self.setting.folder or self.arena.folder
        name = f"{self.name}-{user}"
        config_file = self.arena.folder / f"{name}.yaml"
        config_file.write_text(yaml.safe_dump(self._config()))
        port = (
            self.arena.proxy.port
            if self.setting.is_through_proxy
            else self.plane.site.ports.api_server
        )
        kubeconfig = write_kubeconfig(
            self.arena.folder / f"{name}.kubeconfig",
            url=f"https://127.0.0.1:{port}",
            ca_file=self.plane.ca_file,
            credentials={"token": f"{user}-token"},
        )
        words = ["scheduler", f"--config={config_file}", f"--kubeconfig={kubeconfig}"]
        return Process(
            name,
            [LOWTIDE, *words, "--secure-port=0", *self.setting.flags],
            folder=folder,
            environment=self.setting.environment,
        )

    def _config(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": self.setting.elects},
            "profiles": [{"schedulerName": SCHEDULER_NAME, **(self.setting.profile or {})}],
        }


@contextmanager
def arena_of(size: Size, say: Say, *, folder: Path | None) -> Iterator[Arena]:
    """With its logs in the folder, or nowhere in the end."""
    where = folder or Path(tempfile.mkdtemp(prefix="lowtide-faults-"))
    where.mkdir(parents=True, exist_ok=True)
    try:
        with Arena(size, where, say) as arena:
            yield arena
    finally:
        if folder is None:
            shutil.rmtree(where, ignore_errors=True)


def _with_users(manifest: Mapping[str, Any]) -> dict[str, Any]:
    if "subjects" not in manifest:
        return dict(manifest)
    (subject,) = manifest["subjects"]
    return {**manifest, "subjects": [{**subject, "name": user} for user in USERS]}
