"""Volumes are bound before the pod that uses them: what is written, and how the waiting ends."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.app.conftest import NOW, app_on, running, until

from lowtide.app.volume_writes import KubeVolumes
from lowtide.cluster.state import ClusterState
from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.writer import Writer
from lowtide.localcluster import LocalCluster
from lowtide.objects.storage import PersistentVolume, PersistentVolumeClaim
from lowtide.testing import ManualClock, make_node, make_pod, make_state

pytestmark = pytest.mark.timeout(60)

POD = make_pod("web", uid="u-1")
SELECTED = {"volume.kubernetes.io/selected-node": "node-a"}
COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}
PROMISE = {"namespace": "default", "name": "data", "uid": "c-1"}


def claim(version: int, annotations: Mapping[str, str] = {}, on: str = "") -> PersistentVolumeClaim:
    meta = {"name": "data", "namespace": "default", "uid": "c-1", "resourceVersion": str(version)}
    given = {"metadata": {**meta, "annotations": dict(annotations)}, "spec": {"volumeName": on}}
    return msgspec.convert(given, PersistentVolumeClaim)


def volume(
    version: int, promised: Mapping[str, str] | None = None, host: str = "node-a", note: str = ""
) -> PersistentVolume:
    terms = [
        {
            "matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
            ]
        }
    ]
    spec = {
        "claimRef": promised and dict(promised),
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    annotations = {"pv.kubernetes.io/bound-by-controller": note} if note else {}
    meta = {"name": "v", "resourceVersion": str(version), "annotations": annotations}
    return msgspec.convert({"metadata": meta, "spec": spec}, PersistentVolume)


class ApiServer:
    """Takes every patch, and gives what was patched version 5."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.answer: tuple[int, Any] = (200, {"metadata": {"resourceVersion": "5"}})

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append((request.method, request.path, json.loads(await request.read())))
        status, body = self.answer
        return web.json_response(body, status=status)


class Story:
    """What happens while the scheduler waits: a step each time it looks again."""

    def __init__(self, clock: ManualClock, steps: list[Callable[[], Any]]) -> None:
        self._clock = clock
        self._steps = steps

    async def sleep(self, seconds: float) -> None:
        self._clock.advance(seconds)
        if self._steps:
            self._steps.pop(0)()


@pytest.fixture
def server() -> ApiServer:
    return ApiServer()


@pytest.fixture
async def writer(server: ApiServer) -> AsyncIterator[Writer]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    async with (
        TestServer(application) as served,
        Connection(plain_access(f"http://127.0.0.1:{served.port}"), ManualClock(NOW)) as connection,
    ):
        yield Writer(connection, may_write=lambda: True)


@pytest.fixture
def state() -> ClusterState:
    state = make_state([make_node("node-a")])
    state.put_object(volume(3))
    state.put_object(claim(4))
    state.assume(POD, "node-a")
    return state


async def bound(state: ClusterState, writer: Writer, *steps: Callable[[], Any]) -> str | None:
    """How it ends for a pod with 60 seconds of patience."""
    clock = ManualClock(0.0)
    story = Story(clock, list(steps))
    volumes = KubeVolumes(writer, lambda: state, clock=clock, sleep=story.sleep)
    return await volumes.bind_volumes(POD, "node-a", 60.0)


async def test_nothing_is_written_where_nothing_was_reserved(
    server: ApiServer, writer: Writer, state: ClusterState
) -> None:
    assert await bound(state, writer) is None
    assert server.asked == []


async def test_a_volume_is_promised_to_its_claim_and_the_claim_waited_for(
    server: ApiServer, writer: Writer, state: ClusterState
) -> None:
    state.known_objects.assume("u-1", [volume(3, PROMISE, note="yes")])
    error = await bound(
        state,
        writer,
        lambda: state.put_object(claim(6, COMPLETED, on="v")),  # the volume's watch is behind
        lambda: state.put_object(volume(5, PROMISE)),
    )
    assert error is None
    assert server.asked == [
        (
            "PATCH",
            "/api/v1/persistentvolumes/v",
            {
                "metadata": {
                    "resourceVersion": "3",
                    "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
                },
                "spec": {
                    "claimRef": {
                        "kind": "PersistentVolumeClaim",
                        "apiVersion": "v1",
                        **PROMISE,
                        "resourceVersion": "4",
                    }
                },
            },
        )
    ]


async def test_a_claim_is_told_the_node_and_its_volume_waited_for(
    server: ApiServer, writer: Writer, state: ClusterState
) -> None:
    state.known_objects.assume("u-1", [claim(4, SELECTED)])
    error = await bound(
        state,
        writer,
        lambda: state.put_object(claim(5, SELECTED)),
        lambda: state.put_object(claim(7, SELECTED | COMPLETED, on="v")),
    )
    assert error is None
    assert server.asked == [
        (
            "PATCH",
            "/api/v1/namespaces/default/persistentvolumeclaims/data",
            {"metadata": {"resourceVersion": "4", "annotations": SELECTED}},
        )
    ]


MISMATCH = 'pv "v" node affinity doesn\'t match node "node-a": no matching NodeSelectorTerms'


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(lambda s: None, "context deadline exceeded", id="when nobody binds it"),
        pytest.param(
            lambda s: s.put_object(claim(6, {"other": "x"})),
            'provisioning failed for PVC "data"',
            id="when the claim is given back",
        ),
        pytest.param(
            lambda s: s.put_object(claim(6)),
            'selectedNode annotation reset for PVC "data"',
            id="when the claim is given back bare",
        ),
        pytest.param(
            lambda s: s.put_object(claim(6, SELECTED, on="gone")),
            "context deadline exceeded",
            id="when its volume never shows",
        ),
        pytest.param(
            lambda s: (
                s.put_object(volume(6, PROMISE, host="node-b")),
                s.put_object(claim(7, SELECTED | COMPLETED, on="v")),
            ),
            MISMATCH,
            id="when the volume is made elsewhere",
        ),
        pytest.param(
            lambda s: s.remove_object(claim(4)),
            'failed to check provisioning pvc: persistentvolumeclaim "data" not found',
            id="when the claim goes",
        ),
        pytest.param(
            lambda s: s.remove_pod("u-1"),
            'pod does not exist any more: pod "web" not found',
            id="when the pod goes",
        ),
        pytest.param(
            lambda s: s.remove_node("node-a"),
            'failed to get node "node-a": node "node-a" not found',
            id="when the node goes",
        ),
    ],
)
async def test_waiting_for_a_claim_ends_with_a_word(
    writer: Writer, state: ClusterState, change: Callable[[ClusterState], Any], want: str
) -> None:
    state.known_objects.assume("u-1", [claim(4, SELECTED)])
    error = await bound(
        state, writer, lambda: state.put_object(claim(5, SELECTED)), lambda: change(state)
    )
    assert error == f"binding volumes: {want}"


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(
            lambda s: s.put_object(volume(6)),
            'ClaimRef got reset for pv "v"',
            id="when the volume is given back",
        ),
        pytest.param(
            lambda s: s.put_object(volume(6, PROMISE, host="node-b")),
            MISMATCH,
            id="when the volume moves",
        ),
        pytest.param(
            lambda s: s.remove_object(volume(6)),
            'failed to check binding: persistentvolume "v" not found',
            id="when the volume goes",
        ),
        pytest.param(
            lambda s: s.remove_object(claim(4)),
            'failed to check binding: persistentvolumeclaim "data" not found',
            id="when the claim goes",
        ),
    ],
)
async def test_waiting_for_a_volume_ends_with_a_word(
    writer: Writer, state: ClusterState, change: Callable[[ClusterState], Any], want: str
) -> None:
    state.known_objects.assume("u-1", [volume(3, PROMISE)])
    error = await bound(state, writer, lambda: change(state))
    assert error == f"binding volumes: {want}"


async def test_a_write_that_is_rejected_is_told_in_the_servers_words(
    server: ApiServer, writer: Writer, state: ClusterState
) -> None:
    text = "the object has been modified"
    server.answer = 409, {"kind": "Status", "code": 409, "reason": "Conflict", "message": text}
    state.known_objects.assume("u-1", [claim(4, SELECTED)])
    assert await bound(state, writer) == f"{text} (HTTP 409 Conflict)"


# The whole scheduler on the embedded cluster.


CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [{"schedulerName": "lowtide"}],
}


def using(name: str, claim_name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none"}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
    spec = {"schedulerName": "lowtide", "containers": [container], "volumes": volumes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def add_class(cluster: LocalCluster, name: str, provisioner: str) -> None:
    given = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    cluster.store.create("storageclasses", {"metadata": {"name": name}, **given})


def add_claim(cluster: LocalCluster, name: str, class_name: str) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": class_name,
    }
    given = {"metadata": {"name": name}, "spec": spec}
    cluster.store.create("persistentvolumeclaims", given, namespace="default")


def add_volume(cluster: LocalCluster, name: str, class_name: str, host: str) -> None:
    requirement = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "5Gi"},
        "storageClassName": class_name,
        "nodeAffinity": affinity,
    }
    given = {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}
    cluster.store.create("persistentvolumes", given)


def complete(cluster: LocalCluster, claim_name: str, volume_name: str) -> None:
    """As the controller of volumes does."""
    bound_claim = cluster.store.get("persistentvolumeclaims", "default", claim_name)
    bound_claim["spec"]["volumeName"] = volume_name
    bound_claim["metadata"].setdefault("annotations", {}).update(COMPLETED)
    cluster.store.replace("persistentvolumeclaims", bound_claim)


def node_of(cluster: LocalCluster, name: str) -> str | None:
    node_name: str | None = cluster.store.get("pods", "default", name)["spec"].get("nodeName")
    return node_name


def selected_for(cluster: LocalCluster, claim_name: str) -> str | None:
    found = cluster.store.get("persistentvolumeclaims", "default", claim_name)
    annotations = found["metadata"].get("annotations") or {}
    selected: str | None = annotations.get("volume.kubernetes.io/selected-node")
    return selected


async def test_a_pod_waits_for_a_volume_to_be_made_and_others_do_not_wait_for_it() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("node-a")
        add_class(cluster, "fast", "csi.example.com")
        add_claim(cluster, "data", "fast")
        cluster.store.create("pods", using("web", "data"), namespace="default")
        async with running(app_on(cluster, CONFIG)):
            await until(cluster, lambda: selected_for(cluster, "data") == "node-a")
            plain = using("plain", "data")
            plain["spec"]["volumes"] = []
            cluster.store.create("pods", plain, namespace="default")
            await until(cluster, lambda: node_of(cluster, "plain") == "node-a")
            assert node_of(cluster, "web") is None
            add_volume(cluster, "made", "fast", "node-a")
            complete(cluster, "data", "made")
            await until(cluster, lambda: node_of(cluster, "web") == "node-a")


async def test_two_pods_are_given_two_volumes() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        for name in ("node-a", "node-b"):
            cluster.add_node(name)
            add_volume(cluster, f"on-{name}", "local", name)
        add_class(cluster, "local", "kubernetes.io/no-provisioner")
        for number in (1, 2, 3):
            add_claim(cluster, f"data-{number}", "local")
            pod = using(f"web-{number}", f"data-{number}")
            cluster.store.create("pods", pod, namespace="default")

        def promised() -> dict[str, str]:
            volumes = cluster.store.items("persistentvolumes")
            return {
                each["metadata"]["name"]: each["spec"]["claimRef"]["name"]
                for each in volumes
                if "claimRef" in each["spec"]
            }

        def placed() -> dict[str, str]:
            found = {f"web-{number}": node_of(cluster, f"web-{number}") for number in (1, 2, 3)}
            return {name: node_name for name, node_name in found.items() if node_name}

        async with running(app_on(cluster, CONFIG)):
            await until(cluster, lambda: len(promised()) == 2)
            for volume_name, claim_name in promised().items():
                complete(cluster, claim_name, volume_name)
            await until(cluster, lambda: len(placed()) == 2)
            want = {
                f"web-{claim_name[-1]}": volume_name.removeprefix("on-")
                for volume_name, claim_name in promised().items()
            }
            assert placed() == want


async def test_a_claim_that_is_given_back_is_tried_again() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("node-a")
        add_class(cluster, "fast", "csi.example.com")
        add_claim(cluster, "data", "fast")
        cluster.store.create("pods", using("web", "data"), namespace="default")

        def message() -> str:
            status = cluster.store.get("pods", "default", "web").get("status", {})
            found = {each["type"]: each for each in status.get("conditions") or ()}
            return str(found.get("PodScheduled", {}).get("message", ""))

        async with running(app_on(cluster, CONFIG)):
            await until(cluster, lambda: selected_for(cluster, "data") == "node-a")
            given_back = cluster.store.get("persistentvolumeclaims", "default", "data")
            given_back["metadata"]["annotations"] = {"tried": "once"}
            cluster.store.replace("persistentvolumeclaims", given_back)
            await until(cluster, lambda: "provisioning failed" in message())
            assert message() == (
                'running PreBind plugin "VolumeBinding": '
                'binding volumes: provisioning failed for PVC "data"'
            )
            await until(cluster, lambda: selected_for(cluster, "data") == "node-a")
            add_volume(cluster, "made", "fast", "node-a")
            complete(cluster, "data", "made")
            await until(cluster, lambda: node_of(cluster, "web") == "node-a")
