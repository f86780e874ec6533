"""Fixtures that run the real parts, and what happens when a part is not to be had.

Loaded by tests/conftest.py. A missing part skips the tests that need it, with one loud line; with
CI=true it fails them."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from realparts.control_plane import ControlPlane, of_version
from realparts.hosts import Hosts
from realparts.metrics_server import MetricsServer, aggregation_flags
from realparts.parts import MissingPart, obtain, part_named, say_on_stderr
from realparts.process import Process, wait_until
from realparts.prometheus import Prometheus
from realparts.users import User

CLUSTER = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kwok")
NEEDED_BY_FIXTURE = {
    "control_plane": CLUSTER,
    "new_control_plane": CLUSTER,
    "kube_scheduler": (*CLUSTER, "kube-scheduler"),
    "metrics_server": (*CLUSTER, "metrics-server"),
    "prometheus_process": ("prometheus",),
    "hosts": ("ip", "tc", "node_exporter"),
}

RBAC = "/apis/rbac.authorization.k8s.io/v1"
RBAC_GROUP = "rbac.authorization.k8s.io"
SUBJECTS = [{"apiGroup": RBAC_GROUP, "kind": "User", "name": "lowtide"}]
SCHEDULER_RIGHTS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        f"{RBAC}/clusterrolebindings",
        {
            "metadata": {"name": "lowtide"},
            "roleRef": {
                "apiGroup": RBAC_GROUP,
                "kind": "ClusterRole",
                "name": "system:kube-scheduler",
            },
            "subjects": SUBJECTS,
        },
    ),
    (
        f"{RBAC}/clusterrolebindings",
        {
            "metadata": {"name": "lowtide-volumes"},
            "roleRef": {
                "apiGroup": RBAC_GROUP,
                "kind": "ClusterRole",
                "name": "system:volume-scheduler",
            },
            "subjects": SUBJECTS,
        },
    ),
    (
        f"{RBAC}/namespaces/kube-system/roles",
        {
            "metadata": {"name": "lowtide-lease"},
            "rules": [
                {
                    "apiGroups": ["coordination.k8s.io"],
                    "resources": ["leases"],
                    "verbs": ["create", "get", "update"],
                }
            ],
        },
    ),
    (
        f"{RBAC}/namespaces/kube-system/rolebindings",
        {
            "metadata": {"name": "lowtide-lease"},
            "roleRef": {"apiGroup": RBAC_GROUP, "kind": "Role", "name": "lowtide-lease"},
            "subjects": SUBJECTS,
        },
    ),
)

USAGE_RIGHTS = (
    Path(__file__).resolve().parent.parent.parent / "examples" / "03-node-usage" / "rbac.yaml"
)

KUBERNETES = "--kubernetes"
MISSING = pytest.StashKey[dict[str, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        KUBERNETES, metavar="VERSION", help="the version of real clusters (default: v1.36.4)"
    )


def pytest_configure(config: pytest.Config) -> None:
    try:
        part_named(of_version("kube-apiserver", config.getoption(KUBERNETES)))
    except MissingPart as rejection:
        raise pytest.UsageError(f"{KUBERNETES}: {rejection}") from rejection


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds what the chosen tests need before the first one runs: a build takes minutes, and
    inside a fixture it would be ended by that test's timeout and its progress not be seen."""
    missing = session.config.stash.setdefault(MISSING, {})
    if session.config.option.collectonly:
        return
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    say = say_on_stderr if terminal is None else terminal.write_line  # none in xdist's workers
    for name in sorted({part for item in session.items for part in parts_needed_by(item)}):
        try:
            obtain(name, say=say)
        except MissingPart as rejection:
            if str(rejection) not in missing.values():
                say(f"REAL TESTS CANNOT RUN: {rejection}")
            missing[name] = str(rejection)


def pytest_runtest_setup(item: pytest.Item) -> None:
    missing = item.config.stash[MISSING]
    for name in parts_needed_by(item):
        if name in missing:
            skip_or_fail(missing[name])


def parts_needed_by(item: pytest.Item) -> set[str]:
    """By its fixtures; `pytest.mark.real("control_plane")` names one it asks for while it runs,
    `pytest.mark.real("prometheus-3")` a part that no fixture needs."""
    needed = {
        part
        for fixture in getattr(item, "fixturenames", [])
        for part in NEEDED_BY_FIXTURE.get(fixture, ())
    }
    for mark in item.iter_markers("real"):
        for name in mark.args:
            needed.update(NEEDED_BY_FIXTURE.get(name, (name,)))
    return {of_version(name, item.config.getoption(KUBERNETES)) for name in needed}


def skip_or_fail(sentence: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI=true and {sentence}", pytrace=False)
    pytest.skip(sentence)


@contextmanager
def missing_parts_skip() -> Iterator[None]:
    try:
        yield
    except MissingPart as missing:
        sentence = str(missing)
    else:
        return
    skip_or_fail(sentence)


@pytest.fixture(scope="session")
def parts() -> Callable[..., dict[str, Path]]:
    """`parts("kubectl")["kubectl"]` is a path; a missing part skips or fails the test."""

    def obtain_or_skip(*names: str) -> dict[str, Path]:
        with missing_parts_skip():
            return obtain(*names)

    return obtain_or_skip


@pytest.fixture(scope="session")
def kubernetes(request: pytest.FixtureRequest) -> str | None:
    """The version of the clusters' API server, controllers and scheduler; None: the pinned one."""
    stated: str | None = request.config.getoption(KUBERNETES)
    return stated


@pytest.fixture(scope="session")
def control_plane(kubernetes: str | None) -> Iterator[ControlPlane]:
    """One for all tests: each cleans up after itself, `empty_namespace` helps.

    The user `lowtide` may do nothing until a test binds a role to it."""
    with ExitStack() as running:
        with missing_parts_skip():
            users = [User("lowtide", "lowtide-token")]
            plane = running.enter_context(ControlPlane(kubernetes=kubernetes, users=users))
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own, in which pods may be created; emptied and deleted after.

    Its end is not waited for: that takes the controllers five seconds."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    control_plane.request("POST", "/api/v1/namespaces", manifest)
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    wait_until(
        lambda: bool(control_plane.request("GET", accounts)["items"]),
        timeout_seconds=20,
        what=f"namespace {name} has a service account",
    )
    yield name
    control_plane.empty_namespace(name)
    control_plane.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def new_control_plane(kubernetes: str | None) -> Iterator[Callable[..., ControlPlane]]:
    """Starts a control plane of the test's own, for a test that stops parts of it or wants other
    flags; the arguments are ControlPlane's."""
    with ExitStack() as running:

        def start(**arguments: object) -> ControlPlane:
            with missing_parts_skip():
                plane = ControlPlane(kubernetes=kubernetes, **arguments)  # type: ignore[arg-type]
                return running.enter_context(plane)

        yield start


@pytest.fixture
def metrics_server(
    new_control_plane: Callable[..., ControlPlane], tmp_path: Path
) -> Iterator[MetricsServer]:
    """A real metrics-server that was just started, on a control plane of its own."""
    plane = new_control_plane(
        users=[User("lowtide", "lowtide-token")], api_server_flags=aggregation_flags(tmp_path)
    )
    with ExitStack() as running:
        with missing_parts_skip():
            server = running.enter_context(MetricsServer(plane))
        yield server


@pytest.fixture
def kube_scheduler(control_plane: ControlPlane) -> Iterator[Callable[..., Process]]:
    """Starts the real kube-scheduler; the arguments are ControlPlane.kube_scheduler's."""
    with ExitStack() as running:

        def start(config_yaml: str, kubeconfig: Path | None = None) -> Process:
            with missing_parts_skip():
                process = control_plane.kube_scheduler(config_yaml, kubeconfig)
            running.callback(process.stop)
            return process

        yield start


@pytest.fixture
def prometheus_process() -> Iterator[Callable[..., Prometheus]]:
    """Starts a real Prometheus; the arguments are Prometheus's."""
    with ExitStack() as running:

        def start(*arguments: object, **settings: object) -> Prometheus:
            with missing_parts_skip():
                return running.enter_context(Prometheus(*arguments, **settings))  # type: ignore[arg-type]

        yield start


@pytest.fixture
def hosts() -> Iterator[Callable[..., Hosts]]:
    """Starts hosts of the given names; the arguments are Hosts's."""
    with ExitStack() as running:

        def start(*arguments: object, **settings: object) -> Hosts:
            with missing_parts_skip():
                return running.enter_context(Hosts(*arguments, **settings))  # type: ignore[arg-type]

        yield start


@pytest.fixture
def scheduler_rights(control_plane: ControlPlane) -> Iterator[None]:
    """The user `lowtide` may do what kube-scheduler may, and lead by a lease of another name."""
    grant_scheduler_rights(control_plane)
    yield
    for path, manifest in SCHEDULER_RIGHTS:
        control_plane.request("DELETE", f"{path}/{manifest['metadata']['name']}")


def usage_rights() -> list[tuple[str, dict[str, Any]]]:
    """To read from metrics-server: those of the example, for the same user."""
    role = yaml.safe_load(USAGE_RIGHTS.read_text())
    name = role["metadata"]["name"]
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name},
        "subjects": SUBJECTS,
    }
    return [(f"{RBAC}/clusterroles", role), (f"{RBAC}/clusterrolebindings", binding)]


def grant_scheduler_rights(plane: ControlPlane) -> None:
    for path, manifest in SCHEDULER_RIGHTS:
        plane.request("POST", path, manifest)
