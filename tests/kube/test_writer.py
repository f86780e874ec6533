"""Bindings, status patches and reads of pods against a small real server."""

from typing import Any

import pytest
from aiohttp import web
from tests.kube.conftest import Answer, ApiServer, ManualClock, cut, document, redirect, status

from lowtide.kube.connection import Connection
from lowtide.kube.errors import ApiError, Unreadable
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.writer import Outcome, Writer, Written
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.pod import Pod, PodCondition


@pytest.fixture
def writer(connection: Connection, clock: ManualClock) -> Writer:
    return Writer(connection, may_write=lambda: True, sleep=clock.sleep)


async def test_bind_posts_the_binding(writer: Writer, server: ApiServer) -> None:
    server.answers = [document({"kind": "Status", "status": "Success"}, 201)]
    assert await writer.bind("default", "web-0", "u-1", "node-a") == Written(Outcome.BOUND)
    asked = server.asked[0]
    assert (asked.method, asked.path, asked.json) == (
        "POST",
        "/api/v1/namespaces/default/pods/web-0/binding",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": "default", "name": "web-0", "uid": "u-1"},
            "target": {"kind": "Node", "name": "node-a"},
        },
    )


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(
            status(409, "Conflict", "already assigned"),
            Written(Outcome.CONFLICT, "already assigned (HTTP 409 Conflict)"),
            id="is a conflict when the server says 409",
        ),
        pytest.param(
            status(404, "NotFound", 'pods "x" not found'),
            Written(Outcome.GONE, 'pods "x" not found (HTTP 404 NotFound)'),
            id="is gone when the server says 404",
        ),
        pytest.param(
            status(403, "Forbidden", "no right"),
            Written(Outcome.REJECTED, "no right (HTTP 403 Forbidden)"),
            id="is rejected when the server says 403",
        ),
        pytest.param(
            status(500, "InternalError", "etcd"),
            Written(Outcome.UNKNOWN, "etcd (HTTP 500 InternalError)"),
            id="is unknown when the server says 500",
        ),
        pytest.param(
            status(503, "ServiceUnavailable", "later", Retry_After="1"),
            Written(Outcome.UNKNOWN, "later (HTTP 503 ServiceUnavailable)"),
            id="is unknown and not repeated when the server says 503, even with Retry-After",
        ),
    ],
)
async def test_bind_outcome(
    writer: Writer, server: ApiServer, clock: ManualClock, answer: Answer, want: Written
) -> None:
    server.answers = [answer]
    assert await writer.bind("default", "x", "u", "n") == want
    assert (len(server.asked), clock.slept) == (1, [])


async def test_what_is_redirected_is_unknown_and_only_what_may_be_sent_twice_is_repeated(
    writer: Writer, server: ApiServer
) -> None:
    server.answers = [redirect]
    unknown = Written(
        Outcome.UNKNOWN,
        f"{server.url} answered HTTP 302, a redirect to https://login.example: "
        "is there a proxy that wants a login?",
    )
    assert await writer.bind("default", "x", "u", "n") == unknown
    assert len(server.asked) == 1
    assert await writer.patch_pod_status("default", "x", "u", nominated_node_name="n") == unknown
    assert len(server.asked) == 1 + 4
    assert await writer.delete_pod("default", "x", "u") == unknown
    assert len(server.asked) == 1 + 4 + 4


async def test_bind_without_an_answer_is_unknown_and_not_repeated(
    writer: Writer, server: ApiServer
) -> None:
    server.answers = [cut]
    written = await writer.bind("default", "x", "u", "n")
    assert (written.outcome, written.was_sent) == (Outcome.UNKNOWN, True)
    assert len(server.asked) == 1


async def test_what_finds_no_connection_was_not_sent(clock: ManualClock) -> None:
    async with Connection(plain_access("http://127.0.0.1:1"), clock) as connection:
        written = await Writer(connection, may_write=lambda: True).bind("default", "x", "u", "n")
    assert written == Written(
        Outcome.UNKNOWN,
        "No answer from http://127.0.0.1:1 to POST /api/v1/namespaces/default/pods/x/binding: "
        "Connection refused",
        was_sent=False,
    )


async def test_bind_is_repeated_after_429(
    writer: Writer, server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [
        status(429, "TooManyRequests", "later", Retry_After="2"),
        status(429, "TooManyRequests", "later"),
        document({}, 201),
    ]
    assert await writer.bind("default", "x", "u", "n") == Written(Outcome.BOUND)
    assert clock.slept == [2.0, 1.0]


async def test_writes_go_on_after_30_seconds_whatever_the_server_asks_for(
    writer: Writer, server: ApiServer, clock: ManualClock
) -> None:
    later = status(429, "TooManyRequests", "later", Retry_After="3600")
    server.answers = [later, document({}), later, document({}), later, document({})]
    assert await writer.bind("default", "x", "u", "node") == Written(Outcome.BOUND)
    assert await writer.delete_pod("default", "x", "u") == Written(Outcome.WRITTEN)
    patched = await writer.patch_pod_status("default", "x", "u", nominated_node_name="")
    assert patched == Written(Outcome.WRITTEN)
    assert clock.slept == [30.0] * 3


async def test_bind_gives_up_after_ten_429(
    writer: Writer, server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [status(429, "TooManyRequests", "later")]
    written = await writer.bind("default", "x", "u", "n")
    assert written == Written(Outcome.REJECTED, "later (HTTP 429 TooManyRequests)")
    assert len(server.asked) == 10


async def test_a_binding_is_not_sent_that_came_to_be_wrong_while_it_waited(
    connection: Connection, server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [status(429, "TooManyRequests", "later", Retry_After="20"), document({})]
    full_at = clock.now + 10
    writer = Writer(connection, may_write=lambda: True, sleep=clock.sleep)
    written = await writer.bind(
        "default", "x", "u", "n", lambda: None if clock.now < full_at else "it is full"
    )
    assert written == Written(Outcome.REJECTED, "it is full", was_sent=False)
    assert len(server.asked) == 1


async def test_nothing_is_written_by_one_who_lost_the_lease_while_waiting(
    connection: Connection, server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [status(429, "TooManyRequests", "later", Retry_After="20"), document({})]
    lost_at = clock.now + 10
    writer = Writer(connection, may_write=lambda: clock.now < lost_at, sleep=clock.sleep)
    rejected = Written(
        Outcome.REJECTED, "this process does not hold the leader lease (HTTP 403 NotLeader)"
    )
    assert await writer.bind("default", "x", "u", "n") == rejected
    assert await writer.patch_pod_status("default", "x", "u", nominated_node_name="n") == rejected
    assert len(server.asked) == 1


CONDITION = PodCondition(
    type="PodScheduled",
    status="False",
    reason="Unschedulable",
    message='0/1 nodes are available: 1 "odd".',
    observed_generation=3,
    last_transition_time="2026-01-02T03:04:05Z",
)


@pytest.mark.parametrize(
    ("changes", "want_status"),
    [
        pytest.param(
            {"conditions": [CONDITION]},
            {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": '0/1 nodes are available: 1 "odd".',
                        "observedGeneration": 3,
                        "lastTransitionTime": "2026-01-02T03:04:05Z",
                    }
                ]
            },
            id="writes a condition and leaves the nomination alone",
        ),
        pytest.param(
            {"nominated_node_name": "node-a"},
            {"nominatedNodeName": "node-a"},
            id="nominates a node",
        ),
        pytest.param(
            {"nominated_node_name": ""}, {"nominatedNodeName": None}, id="takes a nomination back"
        ),
    ],
)
async def test_status_patch(
    writer: Writer, server: ApiServer, changes: dict[str, Any], want_status: dict[str, Any]
) -> None:
    server.answers = [document({})]
    written = await writer.patch_pod_status("default", "x", "u-1", **changes)
    asked = server.asked[0]
    assert written == Written(Outcome.WRITTEN)
    assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/default/pods/x/status")
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert asked.json == {"metadata": {"uid": "u-1"}, "status": want_status}


async def test_status_patch_is_tried_four_times(
    writer: Writer, server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [status(500, "InternalError", "etcd")]
    written = await writer.patch_pod_status("default", "x", "u", nominated_node_name="n")
    assert written == Written(Outcome.UNKNOWN, "etcd (HTTP 500 InternalError)")
    assert (len(server.asked), clock.slept) == (4, [0.01, 0.05, 0.25])


async def test_status_patch_of_a_pod_that_is_gone_is_final(
    writer: Writer, server: ApiServer
) -> None:
    server.answers = [status(404, "NotFound", "gone")]
    written = await writer.patch_pod_status("default", "x", "u", nominated_node_name="n")
    assert written == Written(Outcome.GONE, "gone (HTTP 404 NotFound)")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("answer", "want_attempts"),
    [
        pytest.param(status(409, "Conflict", "modified"), 4, id="is tried again after 409"),
        pytest.param(
            status(422, "Invalid", "metadata.uid: Invalid value: field is immutable"),
            1,
            id="is a conflict at once when another pod has the name now",
        ),
    ],
)
async def test_status_patch_conflict(
    writer: Writer, server: ApiServer, answer: Answer, want_attempts: int
) -> None:
    server.answers = [answer]
    written = await writer.patch_pod_status("default", "x", "u", nominated_node_name="n")
    assert (written.outcome, len(server.asked)) == (Outcome.CONFLICT, want_attempts)


async def test_get_pod(writer: Writer, server: ApiServer) -> None:
    found = {"metadata": {"name": "x", "uid": "u"}, "spec": {"nodeName": "node-a"}}
    server.answers = [document(found), status(404, "NotFound", "gone"), status(500, "Oops", "no")]
    pod = await writer.get_pod("default", "x")
    assert pod is not None
    assert (pod.metadata.uid, pod.spec.node_name) == ("u", "node-a")
    assert await writer.get_pod("default", "x") is None
    with pytest.raises(ApiError, match="no"):
        await writer.get_pod("default", "x")


async def test_get_pod_takes_null_for_not_set(writer: Writer, server: ApiServer) -> None:
    server.answers = [document({"metadata": {"name": "x", "labels": None}, "status": None})]
    assert await writer.get_pod("default", "x") == Pod(metadata=ObjectMeta(name="x"))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>", id="is no JSON"),
        pytest.param(b'{"spec":7}', id="is no pod"),
        pytest.param(b'{"metadata":{"name":"\xff"}}', id="is no UTF-8"),
    ],
)
async def test_get_pod_tells_when_the_answer(
    writer: Writer, server: ApiServer, body: bytes
) -> None:
    server.answers = [web.Response(body=body)]
    with pytest.raises(Unreadable, match=r"^The pod default/x cannot be read: "):
        await writer.get_pod("default", "x")


async def test_nothing_is_sent_by_one_who_lost_the_lease_while_waiting_for_its_turn(
    limited_connection: Connection, server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [document({})]
    lost_at = clock.now + 0.05
    writer = Writer(limited_connection, may_write=lambda: clock.now < lost_at, sleep=clock.sleep)
    outcomes = [(await writer.bind("default", "x", "u", "n")).outcome for _ in range(3)]
    assert outcomes == [Outcome.BOUND, Outcome.BOUND, Outcome.REJECTED]
    assert (len(server.asked), clock.slept) == (2, pytest.approx([0.1]))


async def test_delete_pod_deletes_only_the_pod_with_that_uid(
    writer: Writer, server: ApiServer
) -> None:
    server.answers = [document({"metadata": {"name": "x"}})]
    assert await writer.delete_pod("default", "x", "u-1") == Written(Outcome.WRITTEN)
    asked = server.asked[0]
    assert (asked.method, asked.path, asked.json) == (
        "DELETE",
        "/api/v1/namespaces/default/pods/x",
        {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u-1"}},
    )


@pytest.mark.parametrize(
    ("answer", "want", "want_attempts"),
    [
        pytest.param(
            status(404, "NotFound", "gone"),
            Written(Outcome.GONE, "gone (HTTP 404 NotFound)"),
            1,
            id="is done when there is no such pod",
        ),
        pytest.param(
            status(409, "Conflict", "another uid"),
            Written(Outcome.CONFLICT, "another uid (HTTP 409 Conflict)"),
            1,
            id="is not repeated when another pod has the name now",
        ),
        pytest.param(
            status(403, "Forbidden", "no right"),
            Written(Outcome.REJECTED, "no right (HTTP 403 Forbidden)"),
            1,
            id="is not repeated without permission to",
        ),
        pytest.param(
            status(500, "InternalError", "etcd"),
            Written(Outcome.UNKNOWN, "etcd (HTTP 500 InternalError)"),
            4,
            id="is tried four times while the server has trouble",
        ),
    ],
)
async def test_delete_pod(
    writer: Writer, server: ApiServer, answer: Answer, want: Written, want_attempts: int
) -> None:
    server.answers = [answer]
    assert await writer.delete_pod("default", "x", "u") == want
    assert len(server.asked) == want_attempts
