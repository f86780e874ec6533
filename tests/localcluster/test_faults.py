import json

import aiohttp
import pytest

from lowtide.localcluster import Drop, LocalCluster

PODS = "/api/v1/namespaces/default/pods"
POD = json.dumps({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})


async def test_the_next_matching_requests_are_answered_wrongly(
    cluster: LocalCluster, http: aiohttp.ClientSession
) -> None:
    cluster.faults.answer("POST", "/pods", status=429, times=2, retry_after_seconds=3)
    answers = []
    for _ in range(3):
        async with http.post(PODS, data=POD) as response:
            answers.append((response.status, response.headers.get("Retry-After")))
            body = await response.json()
    assert answers == [(429, "3"), (429, "3"), (201, None)]
    assert body["kind"] == "Pod"
    assert cluster.faults.met == [("POST", PODS), ("POST", PODS)]


async def test_a_request_can_be_answered_with_success_and_not_applied(
    cluster: LocalCluster, http: aiohttp.ClientSession
) -> None:
    cluster.faults.answer("POST", "/pods", status=201)
    async with http.post(PODS, data=POD) as response:
        answer = await response.json()
    assert (response.status, answer["status"], answer["code"]) == (201, "Success", 201)
    assert cluster.store.find("pods", "default", "p") is None


async def test_other_requests_meet_no_fault(
    cluster: LocalCluster, http: aiohttp.ClientSession
) -> None:
    cluster.faults.answer("POST", "/binding", status=500)
    async with http.post(PODS, data=POD) as response:
        assert response.status == 201
    cluster.faults.clear()
    async with http.post(f"{PODS}/p/binding", data='{"target": {"name": "a"}}') as response:
        assert response.status == 201


@pytest.mark.parametrize(
    ("when", "was_applied"),
    [
        pytest.param(Drop.BEFORE_APPLYING, False, id="drops a request before it is applied"),
        pytest.param(Drop.AFTER_APPLYING, True, id="drops a request after it was applied"),
    ],
)
async def test_no_answer(
    cluster: LocalCluster, http: aiohttp.ClientSession, when: Drop, was_applied: bool
) -> None:
    cluster.faults.drop("POST", "/pods", when=when)
    with pytest.raises(aiohttp.ClientConnectionError):
        await http.post(PODS, data=POD)
    assert (cluster.store.find("pods", "default", "p") is not None) is was_applied


async def test_a_delayed_request_is_looked_at_later(
    cluster: LocalCluster, http: aiohttp.ClientSession
) -> None:
    cluster.faults.delay("GET", "/nodes", seconds=30)
    with pytest.raises(TimeoutError):
        await http.get("/api/v1/nodes", timeout=aiohttp.ClientTimeout(total=0.05))
    async with http.get("/api/v1/nodes") as response:
        assert response.status == 200


async def test_all_watches_are_cut(cluster: LocalCluster, http: aiohttp.ClientSession) -> None:
    async with http.get("/api/v1/nodes?watch=true") as watch:
        await watch.content.readline()
        cluster.faults.cut_watches()
        with pytest.raises(aiohttp.ClientPayloadError):
            await watch.content.read()
    async with http.get("/api/v1/nodes?watch=true") as watch:
        assert json.loads(await watch.content.readline())["type"] == "ADDED"
