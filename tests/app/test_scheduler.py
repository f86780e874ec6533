"""The scheduler's parts as they are joined, on the embedded cluster."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.app.conftest import NOW, app_on, running, until

from lowtide.app.scheduler import DRAIN_SECONDS, FLUSH_SECONDS, LeaseLostError, SchedulerApp
from lowtide.app.watchdog import EXIT_CODE, Watchdog
from lowtide.framework.plugin import Nodes, Pod, Rejection
from lowtide.kube.lease import RELEASE_TIMEOUT_SECONDS
from lowtide.localcluster import LocalCluster
from lowtide.scheduler.binding_cycle import CONFIRMED_WITHIN_SECONDS
from lowtide.server.http import DEFAULT_DRAIN
from lowtide.server.serving import Serving
from lowtide.testing import ManualClock

pytestmark = pytest.mark.timeout(60)


def app_with(
    cluster: LocalCluster,
    *plugins: type[Any],
    parts: dict[str, Any] | None = None,
    **config: Any,
) -> SchedulerApp:
    """Of the default plugins and these."""
    about = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    enabled = [{"name": plugin.name} for plugin in plugins]
    profile = {"schedulerName": "lowtide", "plugins": {"multiPoint": {"enabled": enabled}}}
    return app_on(cluster, {**about, "profiles": [profile], **config}, *plugins, **(parts or {}))


def pod(name: str, *, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": "lowtide", "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def condition_of(cluster: LocalCluster, name: str) -> dict[str, Any]:
    conditions = cluster.store.get("pods", "default", name)["status"].get("conditions") or []
    found: dict[str, Any] = {each["type"]: each for each in conditions}.get("PodScheduled", {})
    return found


def node_of(cluster: LocalCluster, name: str) -> str | None:
    node_name: str | None = cluster.store.get("pods", "default", name)["spec"].get("nodeName")
    return node_name


async def test_the_lease_waits_for_no_rate_limit_and_is_dated_by_the_wall_clock() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        app = app_with(cluster, clientConnection={"qps": 0.001, "burst": 1})

        def lease() -> dict[str, Any]:
            found = cluster.store.find("leases", "kube-system", "lowtide") or {"spec": {}}
            spec: dict[str, Any] = found["spec"]
            return spec

        async with running(app):
            await until(cluster, lambda: bool(lease().get("holderIdentity")))
            assert lease()["renewTime"] == "2026-01-01T00:00:00.000000Z"
        assert lease()["holderIdentity"] == ""


class Gate:
    """Bindings wait at it until it is opened."""

    def __init__(self) -> None:
        self._is_reached = asyncio.Event()
        self._is_open = asyncio.Event()

    def plugin(self) -> type[Any]:
        gate = self

        class Waiting:
            name = "Waiting"

            async def pre_bind(self, pod: Pod, node_name: str) -> str | None:
                await gate._passed()
                return None

        return Waiting

    def plugin_after_binding(self) -> type[Any]:
        gate = self

        class Lingering:
            name = "Lingering"

            async def post_bind(self, pod: Pod, node_name: str) -> None:
                await gate._passed()

        return Lingering

    async def _passed(self) -> None:
        self._is_reached.set()
        await self._is_open.wait()

    async def reached(self) -> None:
        async with asyncio.timeout(20):
            await self._is_reached.wait()

    def open(self) -> None:
        self._is_open.set()


async def lose_the_lease(cluster: LocalCluster, **config: Any) -> None:
    """Runs a scheduler that loses the lease while the binding of the pod `web` waits, and ends."""
    cluster.add_node("alone")
    cluster.store.create("pods", pod("web"), namespace="default")
    clock, gate = ManualClock(), Gate()
    election = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "50ms"}
    app = app_with(
        cluster, gate.plugin(), parts={"clock": clock}, leaderElection=election, **config
    )
    run = asyncio.create_task(app.run())
    await gate.reached()
    lease = cluster.store.get("leases", "kube-system", "lowtide")
    lease["spec"]["holderIdentity"] = "thief"
    cluster.store.replace("leases", lease)
    clock.advance(10)
    gate.open()
    with pytest.raises(LeaseLostError):
        await run


async def test_a_binding_that_waited_until_the_lease_was_lost_is_not_sent() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        await lose_the_lease(cluster)
        assert (node_of(cluster, "web"), condition_of(cluster, "web")) == (None, {})


@asynccontextmanager
async def binding_extender() -> AsyncIterator[tuple[dict[str, str], list[str]]]:
    """Yields how it is configured, and the paths that it is asked."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({})

    application = web.Application()
    application.router.add_post("/{verb}", answer)
    async with TestServer(application) as extender:
        said = {"urlPrefix": f"http://127.0.0.1:{extender.port}", "bindVerb": "bind"}
        yield said, asked


async def test_no_extender_is_told_to_bind_once_the_lease_was_lost() -> None:
    async with (
        binding_extender() as (said, asked),
        LocalCluster(clock=ManualClock(NOW)) as cluster,
    ):
        await lose_the_lease(cluster, extenders=[said])
    assert asked == []


@pytest.mark.parametrize("is_bound_by_extender", [False, True])
async def test_a_binding_is_not_sent_where_another_pod_took_the_room_while_it_waited(
    is_bound_by_extender: bool,
) -> None:
    gate = Gate()
    async with (
        binding_extender() as (said, asked),
        LocalCluster(clock=ManualClock(NOW), runs_controllers=False) as cluster,
    ):
        cluster.add_node("alone", cpu="2")
        cluster.store.create("pods", pod("web", cpu="2"), namespace="default")
        extenders = [said] if is_bound_by_extender else []
        app = app_with(
            cluster, gate.plugin(), leaderElection={"leaderElect": False}, extenders=extenders
        )
        async with running(app):
            await gate.reached()
            foreign = pod("foreign", schedulerName="other", nodeName="alone")
            cluster.store.create("pods", foreign, namespace="default")
            # Pods are told in order: when the next one is rejected, the foreign one is known.
            cluster.store.create("pods", pod("next", cpu="3"), namespace="default")
            await until(cluster, lambda: bool(condition_of(cluster, "next")))
            gate.open()
            await until(cluster, lambda: bool(condition_of(cluster, "web")))
            rejected = condition_of(cluster, "web")
        assert node_of(cluster, "web") is None
        assert "node alone has changed meanwhile: Insufficient cpu" in rejected["message"]
    assert asked == []


async def test_a_binding_that_may_be_sent_again_in_an_hour_holds_up_no_end() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("alone")
        cluster.faults.answer("POST", "/web/binding", status=429, retry_after_seconds=3600)
        for name in ("web", "next"):
            cluster.store.create("pods", pod(name), namespace="default")
        app = app_with(cluster, leaderElection={"leaderElect": False})
        run = asyncio.create_task(app.run())
        await until(cluster, lambda: node_of(cluster, "next") == "alone")
        app.stop()
        await asyncio.wait_for(run, DRAIN_SECONDS / 2)
        assert (node_of(cluster, "web"), condition_of(cluster, "web")) == (None, {})


async def test_a_binding_that_was_answered_but_not_applied_is_read_and_then_sent_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("alone")
        cluster.store.create("pods", pod("web"), namespace="default")
        cluster.faults.answer("POST", "/web/binding", status=201)
        for method, path in (("POST", "/web/binding"), ("GET", "/pods/web")):
            cluster.faults.delay(method, path, seconds=0, times=9)  # so that both are kept in `met`
        clock = ManualClock()
        app = app_with(cluster, parts={"clock": clock}, leaderElection={"leaderElect": False})

        def notes(reason: str) -> list[str]:
            events = cluster.store.items("events")
            return [each["message"] for each in events if each["reason"] == reason]

        async with running(app):
            await until(cluster, lambda: notes("Scheduled") != [])
            assert node_of(cluster, "web") is None
            clock.advance(CONFIRMED_WITHIN_SECONDS)
            app.live.wake()
            await until(cluster, lambda: notes("FailedScheduling") != [])
            clock.advance(5)  # longer than the backoff of a first failure
            app.live.wake()
            await until(cluster, lambda: node_of(cluster, "web") == "alone")
    why = "the binding to node alone was answered with success, but the pod has no node"
    assert notes("FailedScheduling") == [why]
    assert [method for method, _ in cluster.faults.met] == ["POST", "GET", "POST"]
    assert caplog.messages.count("A binding was answered with success, but not applied") == 1


async def test_a_plugin_that_hangs_ends_the_process_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    codes: list[int] = []
    letting_go = threading.Event()

    def end(code: int) -> None:
        codes.append(code)
        letting_go.set()

    class Hanging:
        name = "Hanging"

        def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
            letting_go.wait(10)
            return ()

    async def place_a_pod() -> None:
        async with LocalCluster(clock=ManualClock(NOW)) as cluster:
            cluster.add_node("alone")
            cluster.store.create("pods", pod("web"), namespace="default")
            app = app_with(cluster, Hanging, leaderElection={"leaderElect": False})
            async with running(app):
                await until(cluster, lambda: node_of(cluster, "web") == "alone")

    with Watchdog(hung_seconds=10, look_seconds=0.1, end=end) as watchdog:
        await watchdog.watch(place_a_pod())
    assert codes == [EXIT_CODE]
    assert "Hanging.filter hangs; this process ends" in caplog.messages


async def test_a_node_with_an_image_without_a_name_gets_pods() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        node = cluster.add_node("node-a")
        node["status"]["images"] = [{"names": None, "sizeBytes": 5}]
        cluster.store.replace("nodes", node)
        cluster.store.create("pods", pod("web"), namespace="default")
        async with running(app_with(cluster, leaderElection={"leaderElect": False})):
            await until(cluster, lambda: node_of(cluster, "web") == "node-a")


async def test_conditions_are_written_and_say_at_the_end_what_became_of_the_pod() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("small", cpu="1")
        cluster.store.create("pods", pod("web", cpu="3"), namespace="default")
        async with running(app_with(cluster, leaderElection={"leaderElect": False})):
            await until(cluster, lambda: condition_of(cluster, "web").get("status") == "False")
            written = condition_of(cluster, "web")
            assert written["lastTransitionTime"] == "2026-01-01T00:00:00Z"
            cluster.add_node("large", cpu="4")
            await until(cluster, lambda: node_of(cluster, "web") == "large")
        assert condition_of(cluster, "web")["status"] == "True"


async def test_a_comparison_that_is_under_way_ends_with_the_process() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("alone")
        cluster.store.create("pods", pod("web"), namespace="default")
        app = app_with(cluster, leaderElection={"leaderElect": False})
        async with running(app):
            await until(cluster, lambda: node_of(cluster, "web") == "alone")
            cluster.faults.delay("GET", "/api/v1/nodes", seconds=3600)
            before = asyncio.all_tasks()
            app.compare()
            (comparing,) = asyncio.all_tasks() - before
        assert comparing.cancelled()
        before = asyncio.all_tasks()
        app.compare()
        assert asyncio.all_tasks() == before


def test_the_end_takes_less_time_than_kubernetes_grants() -> None:
    assert DRAIN_SECONDS + FLUSH_SECONDS + RELEASE_TIMEOUT_SECONDS < 28
    serving = DEFAULT_DRAIN.request_seconds + DEFAULT_DRAIN.accept_seconds
    assert serving < FLUSH_SECONDS + RELEASE_TIMEOUT_SECONDS


@pytest.mark.parametrize(
    ("election", "leading"),
    [
        pytest.param({"leaderElect": True}, "[+]leaderElection ok\n", id="with leader election"),
        pytest.param({"leaderElect": False}, "", id="without leader election"),
    ],
)
async def test_a_process_that_ends_is_alive_but_not_ready(
    election: dict[str, bool], leading: str
) -> None:
    gate = Gate()
    async with LocalCluster(clock=ManualClock(NOW)) as cluster, aiohttp.ClientSession() as session:
        cluster.add_node("alone")
        cluster.store.create("pods", pod("web"), namespace="default")
        parts = {"serving": Serving(port=0)}
        app = app_with(cluster, gate.plugin_after_binding(), parts=parts, leaderElection=election)

        async def said(path: str) -> tuple[int, str]:
            assert app.server is not None
            async with session.get(f"{app.server.address.url}{path}?verbose") as response:
                return response.status, await response.text()

        async with running(app):
            await gate.reached()
            synced = "[+]sched-handler-sync ok\n"
            passed = f"{leading}[+]shutdown ok\n{synced}readyz check passed\n"
            assert await said("/readyz") == (200, passed)
            app.stop()
            withheld = f"{leading}[-]shutdown failed: reason withheld\n{synced}"
            assert await said("/readyz") == (500, f"{withheld}readyz check failed\n")
            assert await said("/readyz/shutdown") == (
                500,
                "internal server error: process is shutting down\n",
            )
            alive = leading or "[+]ping ok\n"
            assert await said("/healthz") == (200, f"{alive}healthz check passed\n")
            assert await said("/livez") == (200, "[+]ping ok\nlivez check passed\n")
            gate.open()


async def test_the_server_stops_while_events_are_still_written() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("alone")
        cluster.store.create("pods", pod("web"), namespace="default")
        cluster.faults.delay("POST", "/events", seconds=3600, times=99)
        app = app_with(
            cluster, parts={"serving": Serving(port=0)}, leaderElection={"leaderElect": False}
        )
        run = asyncio.create_task(app.run())
        await until(cluster, lambda: node_of(cluster, "web") == "alone")
        assert app.server is not None
        port = app.server.address.port
        app.stop()
        async with asyncio.timeout(DRAIN_SECONDS):
            while await is_served(port):
                pass
        assert not run.done()
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


async def is_served(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
