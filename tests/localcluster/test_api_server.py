import json
from typing import Any

import aiohttp
import pytest

from lowtide.localcluster import LocalCluster
from lowtide.localcluster.documents import Json
from lowtide.testing.clock import ManualClock

PODS = "/api/v1/namespaces/default/pods"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


def pod(name: str, **labels: str) -> Json:
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers}}


async def ask(
    http: aiohttp.ClientSession, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    data = body if isinstance(body, str) or body is None else json.dumps(body)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with http.request(method, path, data=data, headers=sent) as response:
        return response.status, await response.json()


async def create(http: aiohttp.ClientSession, *names: str) -> None:
    for name in names:
        status, _ = await ask(http, "POST", PODS, pod(name))
        assert status == 201


async def bind(http: aiohttp.ClientSession, name: str, node_name: str) -> tuple[int, Any]:
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node_name}}
    return await ask(http, "POST", f"{PODS}/{name}/binding", body)


async def read(response: aiohttp.ClientResponse, count: int) -> list[tuple[str, str]]:
    """The next watch events, as their type and the name in them (a bookmark has none)."""
    events = [json.loads(await response.content.readline()) for _ in range(count)]
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


async def test_an_object_goes_through_its_life(http: aiohttp.ClientSession) -> None:
    status, created = await ask(http, "POST", PODS, pod("p"))
    assert (status, created["kind"], created["apiVersion"]) == (201, "Pod", "v1")
    assert await ask(http, "GET", f"{PODS}/p") == (200, created)
    status, listed = await ask(http, "GET", "/api/v1/pods")
    bare = {key: value for key, value in created.items() if key not in ("kind", "apiVersion")}
    version = created["metadata"]["resourceVersion"]
    assert (status, listed) == (
        200,
        {
            "kind": "PodList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": version},
            "items": [bare],
        },
    )
    status, patched = await ask(
        http,
        "PATCH",
        f"{PODS}/p/status",
        {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}},
        Content_Type="application/strategic-merge-patch+json",
    )
    conditions = [{"type": "PodScheduled", "status": "False"}]
    assert (status, patched["status"]["conditions"]) == (200, conditions)
    status, updated = await ask(http, "PUT", f"{PODS}/p", patched)
    assert (status, updated) == (200, patched)
    status, deleted = await ask(http, "DELETE", f"{PODS}/p")
    assert (status, deleted["metadata"]["name"]) == (200, "p")
    assert (await ask(http, "GET", f"{PODS}/p"))[0] == 404


async def test_a_pod_is_bound_once(http: aiohttp.ClientSession) -> None:
    await create(http, "p")
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    assert await bind(http, "p", "a") == (201, {**success, "code": 201})
    status, rejection = await bind(http, "p", "b")
    assert (status, rejection["reason"], rejection["message"]) == (
        409,
        "Conflict",
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "a"',
    )
    again = {"metadata": {"name": "p"}, "target": {"name": "b"}}
    assert (await ask(http, "POST", "/api/v1/namespaces/default/bindings", again))[0] == 409
    _, bound = await ask(http, "GET", f"{PODS}/p")
    assert bound["spec"]["nodeName"] == "a"


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "reason"),
    [
        pytest.param("GET", "/api/v1/foos", None, 404, "NotFound", id="an unknown resource"),
        pytest.param("GET", "/apis/no/v1/foos", None, 404, "NotFound", id="an unknown group"),
        pytest.param("GET", "/elsewhere", None, 404, "NotFound", id="an unknown path"),
        pytest.param("GET", f"{PODS}/p/exec", None, 404, "NotFound", id="an unknown subresource"),
        pytest.param("POST", PODS, '{"metadata":', 400, "BadRequest", id="malformed JSON"),
        pytest.param("POST", PODS, "[]", 400, "BadRequest", id="a list instead of an object"),
        pytest.param("PUT", PODS, "{}", 405, "MethodNotAllowed", id="a wrong method"),
        pytest.param("POST", "/api/v1/pods", "{}", 405, "MethodNotAllowed", id="no namespace"),
        pytest.param("PUT", f"{PODS}/p", pod("q"), 400, "BadRequest", id="another name"),
        pytest.param("GET", f"{PODS}?limit=x", None, 400, "BadRequest", id="a limit in letters"),
        pytest.param(
            "GET", f"{PODS}?fieldSelector=x=y", None, 400, "BadRequest", id="an unknown field"
        ),
        pytest.param(
            "GET", f"{PODS}?resourceVersion=x", None, 400, "BadRequest", id="a version in letters"
        ),
        pytest.param(
            "GET", f"{PODS}?resourceVersion=9999", None, 504, "Timeout", id="a future version"
        ),
        pytest.param(
            "PATCH", f"{PODS}/p", "{}", 415, "UnsupportedMediaType", id="an unknown patch form"
        ),
        pytest.param("POST", f"{PODS}?dryRun=All", pod("x"), 400, "BadRequest", id="a dry run"),
    ],
)
async def test_errors_are_status_objects(
    http: aiohttp.ClientSession, method: str, path: str, body: Any, code: int, reason: str
) -> None:
    await create(http, "p")
    status, answer = await ask(http, method, path, body)
    assert (status, answer["kind"], answer["code"], answer["reason"]) == (
        code,
        "Status",
        code,
        reason,
    )


async def test_lists_come_in_pages_of_one_version(
    cluster: LocalCluster, http: aiohttp.ClientSession
) -> None:
    await create(http, "a", "b", "c")
    _, first = await ask(http, "GET", f"{PODS}?limit=2")
    token = first["metadata"]["continue"]
    assert first["metadata"]["remainingItemCount"] == 1
    await create(http, "d")
    _, second = await ask(http, "GET", f"{PODS}?limit=2&continue={token}")
    pages = [[item["metadata"]["name"] for item in page["items"]] for page in (first, second)]
    assert pages == [["a", "b"], ["c"]]
    cluster.store.compact()
    status, expired = await ask(http, "GET", f"{PODS}?limit=2&continue={token}")
    assert (status, expired["reason"]) == (410, "Expired")


async def test_collections_are_deleted_by_selector(http: aiohttp.ClientSession) -> None:
    for name, app in (("a", "x"), ("b", "y")):
        await ask(http, "POST", PODS, pod(name, app=app))
    await bind(http, "a", "a")
    status, gone = await ask(http, "DELETE", f"{PODS}?labelSelector=app%3Dx&gracePeriodSeconds=0")
    assert (status, [item["metadata"]["name"] for item in gone["items"]]) == (200, ["a"])
    _, left = await ask(http, "GET", PODS)
    assert [item["metadata"]["name"] for item in left["items"]] == ["b"]


async def test_a_watch_without_version_starts_with_what_exists(
    http: aiohttp.ClientSession,
) -> None:
    await create(http, "old")
    async with http.get(f"{PODS}?watch=true") as watch:
        assert await read(watch, 1) == [("ADDED", "old")]
        await create(http, "new")
        await ask(http, "DELETE", f"{PODS}/old")
        assert await read(watch, 2) == [("ADDED", "new"), ("DELETED", "old")]


async def test_a_watch_from_a_version_tells_what_came_after(http: aiohttp.ClientSession) -> None:
    await create(http, "old")
    _, listed = await ask(http, "GET", PODS)
    await create(http, "new")
    version = listed["metadata"]["resourceVersion"]
    async with http.get(f"{PODS}?watch=1&resourceVersion={version}") as watch:
        assert await read(watch, 1) == [("ADDED", "new")]
        await bind(http, "old", "a")
        assert await read(watch, 1) == [("MODIFIED", "old")]


async def test_objects_enter_and_leave_a_selection(http: aiohttp.ClientSession) -> None:
    await create(http, "p")
    unbound, bound = "spec.nodeName%3D", "spec.nodeName!%3D"
    async with (
        http.get(f"{PODS}?watch=true&fieldSelector={unbound}") as waiting,
        http.get(f"{PODS}?watch=true&resourceVersion=1&fieldSelector={bound}") as placed,
    ):
        assert await read(waiting, 1) == [("ADDED", "p")]
        await bind(http, "p", "a")
        left = json.loads(await waiting.content.readline())
        entered = json.loads(await placed.content.readline())
        assert (left["type"], entered["type"]) == ("DELETED", "ADDED")
        # The object as it last was in the selection, under the version of the change.
        assert "nodeName" not in left["object"]["spec"]
        versions = [event["object"]["metadata"]["resourceVersion"] for event in (left, entered)]
        assert versions[0] == versions[1]
        await ask(http, "DELETE", f"{PODS}/p?gracePeriodSeconds=0")
        assert await read(placed, 1) == [("DELETED", "p")]


async def test_a_watch_from_before_compaction_is_gone(
    cluster: LocalCluster, http: aiohttp.ClientSession
) -> None:
    await create(http, "p")
    cluster.store.compact()
    async with http.get(f"{PODS}?watch=true&resourceVersion=2") as watch:
        event = json.loads(await watch.content.read())
    assert watch.status == 200
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
        "ERROR",
        410,
        "Expired",
    )


async def test_a_watch_ends_at_its_timeout_with_a_bookmark(
    cluster: LocalCluster, http: aiohttp.ClientSession
) -> None:
    query = "watch=true&resourceVersion=0&timeoutSeconds=1&allowWatchBookmarks=true"
    async with http.get(f"{PODS}?{query}") as watch:
        lines = (await watch.content.read()).splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "type": "BOOKMARK",
            "object": {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {
                    "resourceVersion": str(cluster.store.version),
                    "creationTimestamp": None,
                },
                "spec": {"containers": None},
                "status": {},
            },
        }
    ]


async def test_bookmarks_come_while_nothing_happens(clock: ManualClock) -> None:
    async with (
        LocalCluster(clock=clock, bookmark_seconds=0.01) as cluster,
        aiohttp.ClientSession(base_url=cluster.url) as http,
        http.get("/api/v1/nodes?watch=true&allowWatchBookmarks=true") as watch,
    ):
        assert await read(watch, 2) == [("BOOKMARK", ""), ("BOOKMARK", "")]


async def test_initial_events_can_be_streamed(http: aiohttp.ClientSession) -> None:
    await create(http, "p")
    query = (
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true"
    )
    async with http.get(f"{PODS}?{query}") as watch:
        assert await read(watch, 1) == [("ADDED", "p")]
        end = json.loads(await watch.content.readline())
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_is_forgotten_when_its_client_leaves(
    cluster: LocalCluster, http: aiohttp.ClientSession
) -> None:
    async with http.get("/api/v1/nodes?watch=true") as watch:
        await read(watch, 2)
        assert cluster.open_watches("nodes") == 1
        watch.close()
    async with http.get("/api/v1/nodes?watch=true") as watch:
        await read(watch, 2)  # a second one, opened after the first was dropped
        assert cluster.open_watches("nodes") == 1


async def test_events_have_two_faces(http: aiohttp.ClientSession) -> None:
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "note": "Successfully assigned default/p to a",
        "reportingController": "lowtide",
    }
    path = "namespaces/default/events"
    status, made = await ask(http, "POST", f"/apis/events.k8s.io/v1/{path}", event)
    assert (status, made["apiVersion"], made["note"]) == (
        201,
        "events.k8s.io/v1",
        "Successfully assigned default/p to a",
    )
    _, found = await ask(http, "GET", f"/api/v1/{path}?fieldSelector=involvedObject.name%3Dp")
    (core,) = found["items"]
    assert (core["message"], core["involvedObject"], core["reportingComponent"]) == (
        "Successfully assigned default/p to a",
        {"kind": "Pod", "name": "p", "namespace": "default"},
        "lowtide",
    )
    status, patched = await ask(
        http,
        "PATCH",
        f"/apis/events.k8s.io/v1/{path}/e",
        {"series": {"count": 2}, "note": "again"},
        Content_Type="application/merge-patch+json",
    )
    assert (status, patched["series"], patched["note"]) == (200, {"count": 2}, "again")


async def test_leases_conflict_on_a_stale_version(http: aiohttp.ClientSession) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    _, lease = await ask(http, "POST", leases, {"metadata": {"name": "l"}, "spec": {}})
    lease["spec"]["holderIdentity"] = "one"
    assert (await ask(http, "PUT", f"{leases}/l", lease))[0] == 200
    lease["spec"]["holderIdentity"] = "two"
    status, rejection = await ask(http, "PUT", f"{leases}/l", lease)
    assert (status, rejection["details"]) == (
        409,
        {"name": "l", "kind": "leases.coordination.k8s.io"},
    )


async def test_deployments_are_scaled(http: aiohttp.ClientSession) -> None:
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await ask(http, "POST", deployments, {"metadata": {"name": "d"}, "spec": spec})
    _, scale = await ask(http, "GET", f"{deployments}/d/scale")
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 1})
    scale["spec"]["replicas"] = 4
    assert (await ask(http, "PUT", f"{deployments}/d/scale", scale))[0] == 200
    assert (await ask(http, "PUT", f"{deployments}/d/scale", scale))[0] == 409
    _, deployment = await ask(http, "GET", f"{deployments}/d")
    assert (deployment["spec"]["replicas"], deployment["metadata"]["generation"]) == (4, 2)


async def test_tables_show_the_usual_columns(
    http: aiohttp.ClientSession, clock: ManualClock
) -> None:
    await create(http, "p")
    await bind(http, "p", "a")
    clock.advance(seconds=200)
    async with http.get(PODS, headers=TABLE) as response:
        table = await response.json()
    columns = [column["name"] for column in table["columnDefinitions"]]
    assert dict(zip(columns, table["rows"][0]["cells"], strict=True)) == {
        "Name": "p",
        "Ready": "0/1",
        "Status": "Pending",
        "Restarts": "0",
        "Age": "3m20s",
        "IP": "<none>",
        "Node": "a",
        "Nominated Node": "<none>",
        "Readiness Gates": "<none>",
    }
    async with http.get("/api/v1/nodes?watch=true", headers=TABLE) as watch:
        event = json.loads(await watch.content.readline())
    assert (event["type"], event["object"]["kind"], event["object"]["rows"][0]["cells"][0]) == (
        "ADDED",
        "Table",
        "a",
    )


@pytest.mark.parametrize(
    "plural",
    ["pods", "nodes", "namespaces", "events", "serviceaccounts"],
)
async def test_each_core_kind_has_a_table(http: aiohttp.ClientSession, plural: str) -> None:
    await create(http, "p")
    event = {"metadata": {"name": "e"}, "eventTime": "2023-11-14T22:13:20.000000Z"}
    await ask(http, "POST", "/api/v1/namespaces/default/events", event)
    async with http.get(f"/api/v1/{plural}", headers=TABLE) as response:
        table = await response.json()
    widths = {len(row["cells"]) for row in table["rows"]}
    assert widths == {len(table["columnDefinitions"])}


async def test_discovery_names_every_resource(http: aiohttp.ClientSession) -> None:
    _, groups = await ask(http, "GET", "/apis")
    assert [group["name"] for group in groups["groups"]] == [
        "events.k8s.io",
        "coordination.k8s.io",
        "apps",
        "policy",
        "resource.k8s.io",
        "storage.k8s.io",
        "metrics.k8s.io",
    ]
    _, core = await ask(http, "GET", "/api/v1")
    assert [resource["name"] for resource in core["resources"]] == [
        "bindings",
        "events",
        "namespaces",
        "namespaces/status",
        "nodes",
        "nodes/status",
        "persistentvolumeclaims",
        "persistentvolumeclaims/status",
        "persistentvolumes",
        "persistentvolumes/status",
        "pods",
        "pods/binding",
        "pods/status",
        "replicationcontrollers",
        "replicationcontrollers/status",
        "serviceaccounts",
        "services",
        "services/status",
    ]
    _, apps = await ask(http, "GET", "/apis/apps/v1")
    scale = next(one for one in apps["resources"] if one["name"] == "deployments/scale")
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")
    assert (await ask(http, "GET", "/version"))[1]["minor"] == "36"
