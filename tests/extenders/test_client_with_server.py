"""Lowtide's own client of extenders against the extender that Lowtide is: both speak the same
words."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from tests.server.fake_asking import FakeAsking, FakeMetrics, served
from tests.server.recorded_extender import Recorded, recorded_requests

from lowtide.advisor.advice import Asked, AskedPreemption
from lowtide.config.types import Extender
from lowtide.extenders.client import ExtenderCallError, ExtenderClient
from lowtide.framework.plugin import Eviction
from lowtide.objects.extender import NodeSeen
from lowtide.objects.pod import Pod
from lowtide.scheduler.extending import Filtered, Preempted
from lowtide.testing import make_pod

POD_DATA = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"dnsPolicy": "Default"}}
POD = msgspec.Raw(json.dumps(POD_DATA).encode())
NODES_DATA = {
    name: {"metadata": {"name": name, "labels": {"rack": name}}, "status": {"images": [{}]}}
    for name in ("one", "two", "three")
}
NODES = {name: msgspec.Raw(json.dumps(node).encode()) for name, node in NODES_DATA.items()}
both_forms = pytest.mark.parametrize("knows_nodes", [True, False])


@asynccontextmanager
async def client_of(asking: FakeAsking, *, knows_nodes: bool) -> AsyncIterator[ExtenderClient]:
    async with served(asking, FakeMetrics()) as url:
        extender = Extender(
            url_prefix=f"{url}/scheduler",
            filter_verb="filter",
            prioritize_verb="prioritize",
            preempt_verb="preempt",
            bind_verb="bind",
            weight=1,
            node_cache_capable=knows_nodes,
        )
        async with ExtenderClient(extender) as client:
            yield client


def question(*, knows_nodes: bool) -> Asked:
    seen = msgspec.convert(list(NODES_DATA.values()), list[NodeSeen])
    pod = msgspec.convert(POD_DATA, Pod)
    return Asked(pod, list(NODES_DATA), None if knows_nodes else seen)


@both_forms
async def test_filter(knows_nodes: bool) -> None:
    asking = FakeAsking(rejected={"two": "busy"}, unresolvable={"one": "no rack"})
    async with client_of(asking, knows_nodes=knows_nodes) as client:
        got = await client.filter(POD, NODES)
    assert got == Filtered(("three",), {"two": "busy"}, {"one": "no rack"})
    assert asking.questions == [question(knows_nodes=knows_nodes)]


@both_forms
@pytest.mark.parametrize(
    ("asking", "want"),
    [
        pytest.param(FakeAsking(), Filtered(tuple(NODES)), id="keeps every node"),
        pytest.param(
            FakeAsking(rejected=dict.fromkeys(NODES, "busy")),
            Filtered((), dict.fromkeys(NODES, "busy")),
            id="keeps none",
        ),
    ],
)
async def test_filter_of_all(asking: FakeAsking, want: Filtered, knows_nodes: bool) -> None:
    async with client_of(asking, knows_nodes=knows_nodes) as client:
        assert await client.filter(POD, NODES) == want


@both_forms
async def test_an_error_of_filter(knows_nodes: bool) -> None:
    asking = FakeAsking(error="all nodes are busy")
    async with client_of(asking, knows_nodes=knows_nodes) as client:
        with pytest.raises(ExtenderCallError, match=r"^all nodes are busy$"):
            await client.filter(POD, NODES)


@both_forms
async def test_priorities(knows_nodes: bool) -> None:
    asking = FakeAsking()
    async with client_of(asking, knows_nodes=knows_nodes) as client:
        assert await client.priorities(POD, NODES) == {"one": 0, "two": 1, "three": 2}
    assert asking.questions == [question(knows_nodes=knows_nodes)]


@both_forms
async def test_preempt(knows_nodes: bool) -> None:
    asking = FakeAsking(rejected={"two": "busy"})
    first, second = make_pod("first"), make_pod("second")
    evictions = [Eviction("one", (first, second), 3), Eviction("two", (second,), 0)]
    whole = {
        pod.uid: msgspec.Raw(json.dumps({"metadata": {"uid": pod.uid}, "spec": {}}).encode())
        for pod in (first, second)
    }
    async with client_of(asking, knows_nodes=knows_nodes) as client:
        got = await client.preempt(POD, evictions, whole)
    assert got == Preempted({"one": ((first.uid, second.uid), 3)})
    pod = msgspec.convert(POD_DATA, Pod)
    victims = {"one": (first.uid, second.uid), "two": (second.uid,)}
    assert asking.questions == [AskedPreemption(pod, victims)]


async def test_bind() -> None:
    asking = FakeAsking()
    async with client_of(asking, knows_nodes=True) as client:
        await client.bind(make_pod("web"), "one")
        asking.bind_error = "the node has gone"
        with pytest.raises(ExtenderCallError, match=r"^the node has gone$"):
            await client.bind(make_pod("web"), "one")
    assert [(pod.key, node) for pod, node in asking.questions] == [("default/web", "one")] * 2


async def test_an_extender_that_is_not_ready() -> None:
    async with client_of(FakeAsking(not_ready="no nodes"), knows_nodes=True) as client:
        with pytest.raises(ExtenderCallError, match=r"code 503$"):
            await client.filter(POD, NODES)


def by_name(nodes: list[dict[str, Any]]) -> dict[str, msgspec.Raw]:
    return {node["metadata"]["name"]: msgspec.Raw(json.dumps(node).encode()) for node in nodes}


@pytest.mark.parametrize(
    "recorded", recorded_requests("filter", "prioritize"), ids=lambda each: each.name
)
async def test_recorded_questions_of_kube_scheduler(recorded: Recorded) -> None:
    data = recorded.data
    nodes = (
        dict.fromkeys(data["NodeNames"], msgspec.Raw(b"null"))
        if recorded.is_by_name
        else by_name(data["Nodes"]["items"])
    )
    pod = msgspec.Raw(json.dumps(data["Pod"]).encode())
    rejected = sorted(nodes)[0]
    asking = FakeAsking(rejected={rejected: "busy"})
    async with client_of(asking, knows_nodes=recorded.is_by_name) as client:
        filtered = await client.filter(pod, nodes)
        priorities = await client.priorities(pod, nodes)
    kept = tuple(name for name in nodes if name != rejected)
    assert filtered == Filtered(kept, {rejected: "busy"})
    assert priorities == {name: at for at, name in enumerate(nodes)}
