"""The reader of metrics.k8s.io: what it makes of each answer."""

from typing import Any

import pytest
from aiohttp import web
from tests.kube.conftest import Answer, ApiServer, cut, document, status

from lowtide.kube.connection import Connection
from lowtide.kube.metrics_api import MetricsApi
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


async def test_the_usage_of_every_node(server: ApiServer, connection: Connection) -> None:
    items = [item("a", cpu="264000001n", memory="2048Ki"), item("b", cpu="67m", memory="1Gi")]
    server.answers = [document({"kind": "NodeMetricsList", "metadata": {}, "items": items})]
    assert await MetricsApi(connection).node_usage() == {
        "a": UsageSample(265, 2 * 2**20, NOW, 10.045),
        "b": UsageSample(67, 2**30, NOW, 10.045),
    }
    assert server.requests() == [("GET", PATH)]


async def test_no_items(server: ApiServer, connection: Connection) -> None:
    server.answers = [document({"items": None})]
    assert await MetricsApi(connection).node_usage() == {}


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
    assert await MetricsApi(connection).node_usage() == NoUsage(want)
    assert len(server.asked) == 1


async def test_no_answer(server: ApiServer, connection: Connection) -> None:
    server.answers = [cut]
    found = await MetricsApi(connection).node_usage()
    assert isinstance(found, NoUsage)
    assert found.reason.startswith(f"No answer from {server.url} to GET {PATH}: ")
