"""metrics.k8s.io of the embedded cluster."""

from typing import Any

import aiohttp
import pytest

from lowtide.localcluster import LocalCluster

NODES = "/apis/metrics.k8s.io/v1beta1/nodes"
A = {
    "metadata": {"name": "a", "creationTimestamp": "2023-11-14T22:13:20Z"},
    "timestamp": "2023-11-14T22:13:20Z",
    "window": "15s",
    "usage": {"cpu": "264m", "memory": "1Gi"},
}


async def ask(http: aiohttp.ClientSession, path: str, method: str = "GET") -> tuple[int, Any]:
    async with http.request(method, path) as response:
        return response.status, await response.json()


async def test_only_what_was_set_is_known(
    cluster: LocalCluster, http: aiohttp.ClientSession
) -> None:
    about = {
        "kind": "NodeMetricsList",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {},
    }
    assert await ask(http, NODES) == (200, {**about, "items": []})
    cluster.usage.set("a", cpu="264m")
    assert await ask(http, NODES) == (200, {**about, "items": [A]})
    cluster.store.delete("nodes", "", "a")
    assert await ask(http, NODES) == (200, {**about, "items": []})


async def test_a_single_node(cluster: LocalCluster, http: aiohttp.ClientSession) -> None:
    cluster.usage.set("a", cpu="264m")
    about = {"kind": "NodeMetrics", "apiVersion": "metrics.k8s.io/v1beta1"}
    assert await ask(http, f"{NODES}/a") == (200, {**about, **A})


@pytest.mark.parametrize(
    ("method", "path", "want"),
    [
        pytest.param("GET", f"{NODES}/b", 404, id="knows no node without usage"),
        pytest.param("GET", "/apis/metrics.k8s.io/v1beta1/pods", 404, id="knows no pods"),
        pytest.param("DELETE", NODES, 405, id="can only be read"),
    ],
)
async def test_rejected(http: aiohttp.ClientSession, method: str, path: str, want: int) -> None:
    status, answer = await ask(http, path, method)
    assert (status, answer["kind"], answer["code"]) == (want, "Status", want)


async def test_discovery(http: aiohttp.ClientSession) -> None:
    _, found = await ask(http, "/apis/metrics.k8s.io/v1beta1")
    assert [(each["name"], each["kind"], each["namespaced"]) for each in found["resources"]] == [
        ("nodes", "NodeMetrics", False)
    ]
    _, group = await ask(http, "/apis/metrics.k8s.io")
    assert group["preferredVersion"]["groupVersion"] == "metrics.k8s.io/v1beta1"
