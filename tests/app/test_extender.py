"""The extender's parts as they are joined, on the embedded cluster and over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.app.conftest import NOW

from lowtide.app.clocks import steady_clock
from lowtide.app.extender import MOST_POD_BYTES, ExtenderApp, ExtenderParts
from lowtide.app.registry import make_registry
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.kube.kubeconfig import plain_access
from lowtide.localcluster import LocalCluster, bind
from lowtide.records.journal import Journal, read_journal
from lowtide.server.http import Drain
from lowtide.server.serving import Serving
from lowtide.testing import ManualClock, make_pod

pytestmark = pytest.mark.timeout(60)

LACKS = "node(s) did not have label disk"
NEEDED = ("PrioritySort", "DefaultBinder")


def config(*plugins: str, bind: bool = False) -> str:
    enabled = [{"name": name} for name in (*NEEDED, *plugins)]
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "schedulerName": "asking",
                    "plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}},
                    "pluginConfig": [
                        {"name": "NodeLabel", "args": {"label": "disk"}},
                        {"name": "Extender", "args": {"bind": bind}},
                    ],
                }
            ],
        }
    )


BINDING = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "a"}}
LABEL_AND_USAGE = config("NodeLabel", "NodeUsage")


class Extender:
    """A running one, asked over HTTP."""

    def __init__(self, app: ExtenderApp, session: aiohttp.ClientSession) -> None:
        self.app = app
        self._session = session

    async def ask(self, verb: str, **args: Any) -> Any:
        async with self._session.post(f"{self._url}/scheduler/{verb}", json=args) as response:
            answer = await response.json()
            return answer if response.status == 200 else (response.status, answer["error"])

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self._session.get(f"{self._url}{path}", headers=headers) as response:
            return response.status, await response.text()

    async def is_ready(self) -> None:
        """Until it knows what there is."""
        async with asyncio.timeout(20):
            while (await self.get("/readyz"))[0] != 200:
                pass

    @property
    def _url(self) -> str:
        assert self.app.server is not None
        return self.app.server.address.url


@asynccontextmanager
async def extender_on(
    cluster: LocalCluster, config: str = LABEL_AND_USAGE, **parts: Any
) -> AsyncIterator[Extender]:
    async with extender_at(cluster.url, config, **parts) as extender:
        await extender.is_ready()
        yield extender


@asynccontextmanager
async def extender_at(
    api_server_url: str, config: str = LABEL_AND_USAGE, **parts: Any
) -> AsyncIterator[Extender]:
    loaded = load_config(config, file="test")
    app = ExtenderApp(
        ExtenderParts(
            access=plain_access(api_server_url),
            build=lambda binder: make_registry({}).build(loaded, {Binder: binder}),
            clock=steady_clock(),
            wall_clock=ManualClock(NOW),
            serving=Serving(port=0),
            url_prefix="/scheduler",
            most_body_bytes=2**20,
            drain=Drain(),
            **parts,
        )
    )
    task = asyncio.create_task(app.run())
    async with aiohttp.ClientSession() as session:
        try:
            while app.server is None:
                await asyncio.sleep(0)
            yield Extender(app, session)
        finally:
            app.stop()
            await task


def pod(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "none"}]}
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


async def test_it_answers_from_what_the_watches_say() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster, extender_on(cluster) as extender:
        cluster.add_node("a", labels={"disk": "ssd"})
        cluster.add_node("b")
        args = {"Pod": pod("web"), "NodeNames": ["a", "b"]}
        async with asyncio.timeout(10):
            while (answer := await extender.ask("filter", **args))["NodeNames"] != ["a"]:
                pass
        assert answer == {
            "Nodes": None,
            "NodeNames": ["a"],
            "FailedNodes": None,
            "FailedAndUnresolvableNodes": {"b": LACKS},
            "Error": "",
        }
        assert await extender.ask("prioritize", **args) == [
            {"Host": "a", "Score": 0},
            {"Host": "b", "Score": 0},
        ]


async def test_it_needs_nothing_that_is_measured() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("a", labels={"disk": "ssd"})
        async with extender_on(cluster, config("NodeLabel")) as extender:
            answer = await extender.ask("filter", Pod=pod("web"), NodeNames=["a"])
    assert answer["NodeNames"] == ["a"]


async def test_what_the_request_says_of_nodes_wins() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("a", labels={"disk": "ssd"})
        cluster.add_node("b")
        async with extender_on(cluster) as extender:
            nodes = [
                {"metadata": {"name": "a"}},
                {"metadata": {"name": "b", "labels": {"disk": ""}}},
            ]
            answer = await extender.ask("filter", Pod=pod("web"), Nodes={"items": nodes})
    assert answer["Nodes"]["items"] == [nodes[1]]
    assert answer["FailedAndUnresolvableNodes"] == {"a": LACKS}


async def test_it_binds_and_tells_what_the_api_server_says() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("a")
        made = cluster.store.create("pods", pod("web"), namespace="default")
        args = {
            "PodName": "web",
            "PodNamespace": "default",
            "PodUID": made["metadata"]["uid"],
            "Node": "a",
        }
        async with extender_on(cluster, config("NodeLabel", bind=True)) as extender:
            assert await extender.ask("bind", **args) == {"Error": ""}
            again = await extender.ask("bind", **{**args, "PodName": "other"})
        assert cluster.store.get("pods", "default", "web")["spec"]["nodeName"] == "a"
    assert again == {"Error": 'pods "other" not found (HTTP 404 NotFound)'}


async def test_it_binds_nothing_where_the_configuration_does_not_say_so() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("a")
        made = cluster.store.create("pods", pod("web"), namespace="default")
        args = {"PodName": "web", "PodNamespace": "default", "PodUID": made["metadata"]["uid"]}
        async with extender_on(cluster) as extender:
            status, error = await extender.ask("bind", **args, Node="a")
        assert "nodeName" not in cluster.store.get("pods", "default", "web")["spec"]
    assert (status, error.partition(":")[0]) == (404, "this extender does not bind pods")


async def test_rejected_requests_are_counted_by_reason() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster, extender_on(cluster) as extender:
        await extender.ask("filter")
        await extender.ask("bind", PodName="web")
        await extender.get("/nothing")
        await extender.get("/healthz", Host="rebound.example")
        await extender.get("/healthz", Origin="http://evil.example")
        _, metrics = await extender.get("/metrics")
    name = "lowtide_extender_rejected_requests_total"
    told = {line.removeprefix(name) for line in metrics.splitlines() if line.startswith(name)}
    reasons = ("unreadable", "no-bind", "path", "host", "origin")
    assert told == {f'{{reason="{reason}"}} 1.0' for reason in reasons}


async def test_it_goes_on_without_the_api_server() -> None:
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(LocalCluster(clock=ManualClock(NOW)))
        cluster.add_node("a", labels={"disk": "ssd"})
        async with extender_on(cluster) as extender:
            await stack.aclose()
            answer = await extender.ask("filter", Pod=pod("web"), NodeNames=["a"])
            assert (answer["NodeNames"], await extender.get("/readyz")) == (["a"], (200, "ok"))


async def test_health_and_metrics_are_served_beside_the_verbs() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster, extender_on(cluster) as extender:
        await extender.ask("filter", Pod=pod("web"), NodeNames=[])
        await extender.ask("filter")
        for path in ("/healthz", "/livez", "/readyz"):
            assert await extender.get(path) == (200, "ok")
        _, metrics = await extender.get("/metrics")
    told = {
        line for line in metrics.splitlines() if line.startswith("lowtide_extender_requests_total")
    }
    assert told == {
        'lowtide_extender_requests_total{code="200",verb="filter"} 1.0',
        'lowtide_extender_requests_total{code="400",verb="filter"} 1.0',
    }


async def test_before_it_knows_the_cluster_it_says_why_it_cannot_answer() -> None:
    async with extender_at("http://127.0.0.1:9") as extender:  # where nobody listens
        assert await extender.ask("filter", Pod=pod("web"), NodeNames=["a"]) == (
            503,
            "Lowtide cannot answer yet: not listed yet: Node, Pod",
        )
        status, text = await extender.get("/readyz/cluster")
    assert (status, text) == (500, "internal server error: not listed yet: Node, Pod\n")


async def test_a_binding_that_was_not_sent_is_told_at_once() -> None:
    async with extender_at("http://127.0.0.1:9") as extender:  # where nobody listens
        assert await extender.app.bind(make_pod("web"), "a") == (
            "No answer from http://127.0.0.1:9 to POST "
            "/api/v1/namespaces/default/pods/web/binding: Connection refused"
        )


@pytest.mark.parametrize(
    ("fault", "known"),
    [
        pytest.param(
            {"status": 500, "message": "etcd is gone"},
            "etcd is gone (HTTP 500 InternalError)",
            id="by what the API server said",
        ),
        pytest.param(
            {"seconds": 2.0}, "the API server has not answered", id="where it said nothing"
        ),
    ],
)
async def test_a_binding_in_doubt_is_told_in_time(fault: dict[str, Any], known: str) -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster, extender_on(cluster) as extender:
        set_fault = cluster.faults.answer if "status" in fault else cluster.faults.delay
        for path in ("/pods/web/binding", "/pods/web"):
            set_fault("*", path, times=100, **fault)
        told = await extender.app.bind(make_pod("web"), "a")
    assert told == f"{known}; whether the pod is bound is not known after 1.5 s"


async def test_its_answers_are_explained_and_shown() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        for name in ("a", "b"):
            cluster.add_node(name, labels={"disk": "ssd"})
        cluster.add_node("c")
        async with extender_on(cluster, config("NodeLabel")) as extender:
            await extender.ask("filter", Pod=pod("web"), NodeNames=["a", "b", "c"])
            await extender.ask("prioritize", Pod=pod("web"), NodeNames=["a", "b"])
            await extender.ask("filter", Pod=pod("web"), NodeNames=["c"])
            _, said = await extender.get("/api/explain/default/web?node=c")
            _, lines = await extender.get("/api/decisions")
            _, shown = await extender.get("/api/cluster")
            _, health = await extender.get("/api/health")
            status, page = await extender.get("/")
    found = json.loads(said)
    records = [
        (each["extender_verb"], each["attempt"], each["feasible"]) for each in found["records"]
    ]
    assert records == [("filter", 2, 0), ("prioritize", 1, 2), ("filter", 1, 2)]
    assert found["records"][0]["message"] == f"0/1 nodes are available: 1 {LACKS}."
    assert found["why_not"]["rejections"] == [f"NodeLabel: {LACKS}"]
    assert json.loads(lines)["last"] == 3
    assert (json.loads(shown)["mode"], json.loads(shown)["names"]) == ("extender", ["a", "b", "c"])
    told = json.loads(health)
    assert (told["bindings_in_flight"], told["is_leader"]) == (None, None)
    assert (status, page.startswith("<!doctype html>")) == (200, True)


async def test_where_the_other_scheduler_put_the_pod_is_told() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("a", labels={"disk": "ssd"})
        made = cluster.store.create("pods", pod("web"), namespace="default")
        async with extender_on(cluster, config("NodeLabel")) as extender:
            await extender.ask("filter", Pod=made, NodeNames=["a"])
            bind(cluster.store, BINDING, namespace="default", clock=ManualClock(NOW))
            async with asyncio.timeout(10):
                while True:
                    _, said = await extender.get("/api/decisions/default/web")
                    (record,) = json.loads(said)["records"]
                    if record["actual_node"] is not None:
                        break
    assert (record["node"], record["actual_node"], record["extender_verb"]) == ("a", "a", "filter")


async def test_answers_are_written_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("a", labels={"disk": "ssd"})
        journal = Journal(file)
        async with extender_on(cluster, config("NodeLabel"), journal=journal) as extender:
            await extender.ask("filter", Pod=pod("web"), NodeNames=["a"])
    assert [(each.pod, each.extender_verb, each.node) for each in read_journal(file)] == [
        ("default/web", "filter", "a")
    ]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            {"metadata": {"annotations": {"large": "x" * MOST_POD_BYTES}}}, id="by its bytes"
        ),
        pytest.param({"spec": {"tolerations": [{}] * 1000}}, id="by its many small objects"),
    ],
)
async def test_of_a_pod_that_is_too_large_nothing_is_kept(change: dict[str, Any]) -> None:
    large = pod("web")
    for part, fields in change.items():
        large[part] |= fields
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("a", labels={"disk": "ssd"})
        async with extender_on(cluster, config("NodeLabel")) as extender:
            answer = await extender.ask("filter", Pod=large, NodeNames=["a"])
            assert answer["NodeNames"] == ["a"]
            assert (await extender.get("/api/decisions/default/web"))[0] == 404
