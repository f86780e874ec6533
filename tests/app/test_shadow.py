"""The shadow's parts as they are joined, on the embedded cluster: what it serves meanwhile."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from tests.app.conftest import NOW

from lowtide.app.beside import BesideParts
from lowtide.app.clocks import steady_clock
from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry
from lowtide.app.shadow import ShadowApp
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.kube.kubeconfig import plain_access
from lowtide.localcluster import LocalCluster, bind
from lowtide.server.serving import Serving
from lowtide.testing import ManualClock

pytestmark = pytest.mark.timeout(60)

CONFIG = json.dumps(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "tried"}],
    }
)
Get = Callable[[str], Awaitable[tuple[int, str]]]


@asynccontextmanager
async def shadow_on(cluster: LocalCluster) -> AsyncIterator[Get]:
    """Hands out how to ask it, when it is ready."""
    profiles = make_registry({}).build(load_config(CONFIG, file="test"), {Binder: NoBinder()})
    parts = BesideParts(plain_access(cluster.url), steady_clock(), ManualClock(NOW))
    app = ShadowApp(parts, profiles.profiles, lambda difference: None, Serving(port=0))
    task = asyncio.create_task(app.run())
    async with aiohttp.ClientSession() as session:

        async def get(path: str) -> tuple[int, str]:
            while app.server is None:
                await asyncio.sleep(0)
            async with session.get(f"{app.server.address.url}{path}") as response:
                return response.status, await response.text()

        try:
            async with asyncio.timeout(20):
                while (await get("/readyz"))[0] != 200:
                    pass
            yield get
        finally:
            app.stop()
            await task


async def placed_by_another(cluster: LocalCluster, get: Get, name: str, node_name: str) -> None:
    """Seen to wait, and then put there."""
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    pod = {"metadata": {"name": name}, "spec": {"containers": [container]}}
    cluster.store.create("pods", pod, namespace="default")
    await until(get, "/metrics", lambda said: "lowtide_shadow_pending_pods 1.0" in said)
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node_name}}
    bind(cluster.store, binding, namespace="default", clock=ManualClock(NOW))
    await until(get, "/metrics", lambda said: "lowtide_shadow_pending_pods 0.0" in said)


async def until(get: Get, path: str, is_so: Callable[[str], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so((await get(path))[1]):
            pass


async def test_what_it_would_have_done_is_shown_counted_and_explained() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("roomy", cpu="8")
        cluster.add_node("small", cpu="2")
        async with shadow_on(cluster) as get:
            await placed_by_another(cluster, get, "web", "small")
            await placed_by_another(cluster, get, "db", "roomy")
            lines = json.loads((await get("/api/decisions"))[1])["decisions"]
            explained = json.loads((await get("/api/explain/default/web?node=small"))[1])
            metrics = (await get("/metrics"))[1]
            shown = json.loads((await get("/api/cluster"))[1])
            health: dict[str, Any] = json.loads((await get("/api/health"))[1])
            statuses = [(await get(path))[0] for path in ("/", "/healthz", "/livez")]
    assert [(each["pod"], each["node"], each["actual_node"]) for each in lines] == [
        ("default/web", "roomy", "small"),
        ("default/db", "roomy", "roomy"),
    ]
    assert (explained["why_not"]["chosen"], explained["records"][0]["extender_verb"]) == (
        "roomy",
        "",
    )
    assert explained["records"][0]["seconds_by_plugin"]
    counted = {
        line.rpartition("{")[2]
        for line in metrics.splitlines()
        if line.startswith("lowtide_shadow_pods_total{") and not line.endswith(" 0.0")
    }
    assert counted == {'agreement="different"} 1.0', 'agreement="same"} 1.0'}
    assert (shown["mode"], shown["pods"]) == ("shadow", [1, 1])
    assert health["queue"] == {"active": 0, "unschedulable": 0, "gated": 0}
    assert statuses == [200, 200, 200]
