"""The reader of metrics.k8s.io: what it makes of each answer."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from tests.kube.conftest import Answer, ApiServer, cut, document, status

from lowtide.kube.connection import Connection
from lowtide.kube.metrics_api import MetricsApi, Samples
from lowtide.readings.usage import NoUsage, UsageSample

PATH = "/apis/metrics.k8s.io/v1beta1/nodes"
NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def item(name: str, **usage: str) -> dict[str, Any]:
    """As metrics-server spells it."""
    return {
        "metadata": {"name": name, "creationTimestamp": None, "labels": {"a": "b"}},
        "timestamp": "2026-01-01T00:00:00Z",
        "window": "10.045s",
        "usage": usage,
    }


async def off_thread(work: Callable[[], Samples]) -> Samples:
    return await asyncio.to_thread(work)


def metrics_of(connection: Connection) -> MetricsApi:
    return MetricsApi(connection, off_thread=off_thread)


async def test_the_usage_of_every_node(server: ApiServer, connection: Connection) -> None:
    items = [item("a", cpu="264000001n", memory="2048Ki"), item("b", cpu="67m", memory="1Gi")]
    server.answers = [document({"kind": "NodeMetricsList", "metadata": {}, "items": items})]
    assert await metrics_of(connection).node_usage() == {
        "a": UsageSample(265, 2 * 2**20, NOW, 10.045),
        "b": UsageSample(67, 2**30, NOW, 10.045),
    }
    assert server.requests() == [("GET", PATH)]


async def test_no_items(server: ApiServer, connection: Connection) -> None:
    server.answers = [document({"items": None})]
    assert await metrics_of(connection).node_usage() == {}


def compact(items: list[Any]) -> Answer:
    """As Kubernetes spells it, without spaces."""
    text = json.dumps({"kind": "NodeMetricsList", "metadata": {}, "items": items})
    return whole_text(text.replace(", ", ",").replace(": ", ":"))


def whole_text(text: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text)

    return answer


async def test_many_nodes_are_read_in_pieces(server: ApiServer, connection: Connection) -> None:
    rests: list[None] = []
    names = [f"node-{number}" for number in range(10_000)]
    server.answers = [compact([item(name, cpu="1", memory="1Gi") for name in names])]
    metrics = MetricsApi(connection, off_thread=off_thread, rest=lambda: rests.append(None))
    found = await metrics.node_usage()
    assert found == dict.fromkeys(names, UsageSample(1000, 2**30, NOW, 10.045))
    assert len(rests) > 3


DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            '{"items":[' + "1," * (9 << 20) + "1]}",
            "has more than 16 MiB that can only be read as one piece",
            id="without an object",
        ),
        pytest.param('{"items":[' + DEEP + "]}", "maximum recursion depth", id="nested too deep"),
    ],
)
async def test_a_hostile_answer(
    server: ApiServer, connection: Connection, text: str, want: str
) -> None:
    server.answers = [whole_text(text)]
    found = await metrics_of(connection).node_usage()
    assert isinstance(found, NoUsage)
    assert want in found.reason


async def page_not_found(_: web.Request) -> web.StreamResponse:
    return web.Response(status=404, text="404 page not found\n")


FORBIDDEN = "nodes.metrics.k8s.io is forbidden: User cannot list"
BUSY = "the server is currently unable to handle the request"


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(
            page_not_found,
            "metrics-server is not installed: the API server does not know nodes.metrics.k8s.io",
            id="knows that metrics-server is not installed",
        ),
        pytest.param(
            status(403, "Forbidden", FORBIDDEN),
            f"{FORBIDDEN} (HTTP 403 Forbidden); allow to list nodes.metrics.k8s.io",
            id="says which right it lacks",
        ),
        pytest.param(
            status(503, "ServiceUnavailable", BUSY, Retry_After="30"),
            f"GET {PATH}: {BUSY} (HTTP 503 ServiceUnavailable)",
            id="does not wait for a metrics-server that is down",
        ),
        pytest.param(
            document({"items": [3]}),
            f"The answer to GET {PATH}: Expected `object`, got `int` - at `$.items[0]`",
            id="tells what it cannot read",
        ),
    ],
)
async def test_no_usage(
    server: ApiServer, connection: Connection, answer: Answer, want: str
) -> None:
    server.answers = [answer]
    assert await metrics_of(connection).node_usage() == NoUsage(want)
    assert len(server.asked) == 1


async def test_no_answer(server: ApiServer, connection: Connection) -> None:
    server.answers = [cut]
    found = await metrics_of(connection).node_usage()
    assert isinstance(found, NoUsage)
    assert found.reason.startswith(f"No answer from {server.url} to GET {PATH}: ")
