"""Bindings, conditions and Events of the machine, against a small real API server."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace

from lowtide.app.kube_writes import MOST_REJECTIONS, KubeBinder, KubeWrites
from lowtide.framework.plugin import BindOutcome
from lowtide.kube.connection import Connection
from lowtide.kube.kube_events import KubeEvents
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.writer import Writer
from lowtide.objects.pod import PodCondition
from lowtide.scheduler.actions import Evict, WriteCondition, WriteKubeEvent
from lowtide.testing import ManualClock, make_pod

POD = make_pod("web", uid="u-1")
POD_PATH = "/api/v1/namespaces/default/pods/web"
pytestmark = pytest.mark.timeout(30)
NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z


class ApiServer:
    """Answers each method with its next prepared status and body; keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[int, Any]]] = {}
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[Any] = []
        self.most_at_once = 0
        self.under_way = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._changed = asyncio.Event()

    async def asked_times(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.bodies) < count:
                self._changed.clear()
                await self._changed.wait()

    @property
    def messages(self) -> list[tuple[str, str]]:
        """The pods whose condition was written, each with what it says."""
        names = [path.split("/")[-2] for _, path in self.asked]
        bodies = [body["status"]["conditions"][0]["message"] for body in self.bodies]
        return list(zip(names, bodies, strict=True))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.asked.append((request.method, request.path))
        self.bodies.append(json.loads(body) if body else None)
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        self._changed.set()
        await self.may_answer.wait()
        self.under_way -= 1
        answers = self.answers[request.method]
        status, answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if status == 0:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(answer, status=status or 200)


class Sleeps:
    """Returns at once and keeps how long it was to be."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def server() -> ApiServer:
    return ApiServer()


@pytest.fixture
async def connection(server: ApiServer) -> AsyncIterator[Connection]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    async with (
        TestServer(application) as served,
        Connection(
            plain_access(f"http://127.0.0.1:{served.port}"), ManualClock(NOW), sleep=Sleeps()
        ) as connection,
    ):
        yield connection


@pytest.fixture
def writer(connection: Connection) -> Writer:
    return Writer(connection, may_write=lambda: True, sleep=Sleeps())


def failure(code: int, reason: str, message: str) -> tuple[int, Any]:
    return code, {"kind": "Status", "code": code, "reason": reason, "message": message}


def stored(*, on: str = "", uid: str = "u-1") -> tuple[int, Any]:
    metadata = {"name": "web", "namespace": "default", "uid": uid}
    return 200, {"metadata": metadata, "spec": {"nodeName": on}}


BOUND = 201, {"kind": "Status", "status": "Success"}
CONFLICT = failure(409, "Conflict", "pod web is already assigned to a node")
CONFLICT_TEXT = "pod web is already assigned to a node (HTTP 409 Conflict)"
BROKEN = failure(500, "InternalError", "etcd is away")
BROKEN_TEXT = "etcd is away (HTTP 500 InternalError)"
NOT_FOUND = failure(404, "NotFound", 'pods "web" not found')
NOT_FOUND_TEXT = 'pods "web" not found (HTTP 404 NotFound)'
REDIRECT = 302, None
FORBIDDEN = failure(403, "Forbidden", "no right")


# Bindings.


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(BOUND, BindOutcome(), id="is well when the server has bound it"),
        pytest.param(
            FORBIDDEN,
            BindOutcome(error="no right (HTTP 403 Forbidden)"),
            id="has failed when the server rejects",
        ),
    ],
)
async def test_a_binding(
    writer: Writer, server: ApiServer, answer: tuple[int, Any], outcome: BindOutcome
) -> None:
    server.answers = {"POST": [answer]}
    assert await KubeBinder(writer).bind(POD, "node-a") == outcome
    assert server.asked == [("POST", f"{POD_PATH}/binding")]


async def test_a_binding_that_is_objected_to_is_not_sent(writer: Writer, server: ApiServer) -> None:
    said = {POD.uid: "the node is full"}
    binder = KubeBinder(writer, objection=lambda pod: said.get(pod.uid))
    assert await binder.bind(POD, "node-a") == BindOutcome(error="the node is full")
    assert server.asked == []


@pytest.mark.parametrize(
    ("doubt", "text"),
    [
        pytest.param(CONFLICT, CONFLICT_TEXT, id="after a conflict"),
        pytest.param(BROKEN, BROKEN_TEXT, id="after an error of the server"),
        pytest.param(NOT_FOUND, NOT_FOUND_TEXT, id="after a 404, which may be a proxy's"),
    ],
)
@pytest.mark.parametrize(
    ("found", "outcome_of"),
    [
        pytest.param(
            stored(on="node-a"), lambda text: BindOutcome(), id="finds that it is bound as wished"
        ),
        pytest.param(
            stored(on="node-b"),
            lambda text: BindOutcome(error=text, is_gone=True),
            id="finds it elsewhere",
        ),
        pytest.param(stored(), lambda text: BindOutcome(error=text), id="finds it unbound"),
        pytest.param(
            stored(on="node-a", uid="u-2"),
            lambda text: BindOutcome(error=text, is_gone=True),
            id="finds another pod of its name",
        ),
        pytest.param(
            NOT_FOUND, lambda text: BindOutcome(error=text, is_gone=True), id="finds it gone"
        ),
    ],
)
async def test_in_doubt_the_pod_is_read_again_and(
    writer: Writer,
    server: ApiServer,
    doubt: tuple[int, Any],
    text: str,
    found: tuple[int, Any],
    outcome_of: Callable[[str], BindOutcome],
) -> None:
    server.answers = {"POST": [doubt], "GET": [found]}
    assert await KubeBinder(writer).bind(POD, "node-a") == outcome_of(text)
    assert server.asked == [("POST", f"{POD_PATH}/binding"), ("GET", POD_PATH)]


async def test_a_binding_without_any_answer_is_sent_once_and_looked_up(
    writer: Writer, server: ApiServer
) -> None:
    server.answers = {"POST": [(0, None)], "GET": [stored(on="node-a")]}
    assert await KubeBinder(writer).bind(POD, "node-a") == BindOutcome()
    assert server.asked == [("POST", f"{POD_PATH}/binding"), ("GET", POD_PATH)]


@pytest.mark.parametrize(
    ("on", "is_bound"),
    [
        pytest.param("", False, id="is tried again where a proxy kept it from the server"),
        pytest.param("node-a", True, id="is done where the server had it all the same"),
    ],
)
async def test_a_binding_that_was_redirected(
    writer: Writer, server: ApiServer, on: str, is_bound: bool
) -> None:
    server.answers = {"POST": [REDIRECT], "GET": [REDIRECT, REDIRECT, stored(on=on)]}
    sleeps = Sleeps()
    outcome = await asyncio.wait_for(KubeBinder(writer, sleeps).bind(POD, "node-a"), 10)
    assert (outcome.error is None, outcome.is_gone) == (is_bound, False)
    assert sleeps.seconds == [0.1, 0.5]


async def test_a_pod_that_cannot_be_read_is_asked_for_until_it_can(
    writer: Writer, server: ApiServer
) -> None:
    sleeps = Sleeps()
    server.answers = {"POST": [CONFLICT], "GET": [*[BROKEN] * 7, stored(on="node-a")]}
    assert await KubeBinder(writer, sleeps).bind(POD, "node-a") == BindOutcome()
    assert sleeps.seconds == [0.1, 0.5, 1.0, 2.0, 5.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        pytest.param(FORBIDDEN, "no right (HTTP 403 Forbidden)", id="may not be read"),
        pytest.param(
            (200, {"spec": 7}),
            "The pod default/web cannot be read: Expected `object`, got `int` - at `$.spec`",
            id="is nothing we can read",
        ),
    ],
)
async def test_a_binding_has_failed_when_its_pod(
    writer: Writer, server: ApiServer, found: tuple[int, Any], text: str
) -> None:
    server.answers = {"POST": [CONFLICT], "GET": [found]}
    outcome = await asyncio.wait_for(KubeBinder(writer, Sleeps()).bind(POD, "node-a"), 10)
    error = f"{CONFLICT_TEXT}; what became of it is unknown: {text}"
    assert outcome == BindOutcome(error=error)


async def test_a_server_that_knew_no_rights_yet_is_asked_again_what_became_of_a_binding(
    writer: Writer, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = {"POST": [BROKEN], "GET": [FORBIDDEN, FORBIDDEN, stored(on="node-a")]}
    outcome = await asyncio.wait_for(KubeBinder(writer, Sleeps()).bind(POD, "node-a"), 10)
    assert (outcome, caplog.records) == (BindOutcome(), [])


async def test_a_missing_right_to_read_pods_is_told_once(
    writer: Writer, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = {"POST": [CONFLICT], "GET": [FORBIDDEN]}
    binder = KubeBinder(writer, Sleeps())
    for _ in range(2):
        await asyncio.wait_for(binder.bind(POD, "node-a"), 10)
    assert [record.getMessage() for record in caplog.records if record.name == "scheduler"] == [
        "Doubtful bindings cannot be looked up; the scheduler needs permission to get pods"
    ]


NO_NODE = "the binding to node node-a was answered with success, but the pod has no node"


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        pytest.param([stored(on="node-a")], BindOutcome(), id="finds that it was applied"),
        pytest.param([stored()], BindOutcome(error=NO_NODE), id="finds that it was not applied"),
        pytest.param(
            [stored(on="node-b")],
            BindOutcome(error=NO_NODE, is_gone=True),
            id="finds the pod elsewhere",
        ),
        pytest.param(
            [NOT_FOUND], BindOutcome(error=NO_NODE, is_gone=True), id="finds the pod gone"
        ),
        pytest.param(
            [BROKEN, BROKEN, stored()], BindOutcome(error=NO_NODE), id="waits for an answer"
        ),
        pytest.param([FORBIDDEN], BindOutcome(), id="believes the first answer without permission"),
    ],
)
async def test_a_look_at_a_binding_that_was_answered_with_success(
    writer: Writer, server: ApiServer, answers: list[tuple[int, Any]], outcome: BindOutcome
) -> None:
    server.answers = {"GET": answers}
    assert await KubeBinder(writer, Sleeps()).look_up_again(POD, "node-a") == outcome
    assert {*server.asked} == {("GET", POD_PATH)}


# Conditions.


def writes_of(connection: Connection, writer: Writer, **options: Any) -> KubeWrites:
    clock = ManualClock(NOW)
    events = KubeEvents(connection, host_name="host", is_busy=lambda: False, clock=clock)
    return KubeWrites(writer, events, clock, **{"is_busy": lambda: False, **options})


def rejection(name: str, message: str = "nowhere") -> WriteCondition:
    return WriteCondition(make_pod(name, uid=f"uid-{name}"), "Unschedulable", message)


@pytest.mark.parametrize(
    ("before", "since"),
    [
        pytest.param([], "2026-01-01T00:00:00Z", id="is the present where there was none"),
        pytest.param(
            [{"status": "False", "last_transition_time": "2025-12-31T00:00:00Z"}],
            "2025-12-31T00:00:00Z",
            id="is kept where it said False already",
        ),
        pytest.param(
            [{"status": "True", "last_transition_time": "2025-12-31T00:00:00Z"}],
            "2026-01-01T00:00:00Z",
            id="is the present where it said True",
        ),
        pytest.param(
            [{"status": "False"}], "2026-01-01T00:00:00Z", id="is the present where none was said"
        ),
    ],
)
async def test_the_time_of_a_condition(
    connection: Connection,
    writer: Writer,
    server: ApiServer,
    before: list[dict[str, Any]],
    since: str,
) -> None:
    server.answers = {"PATCH": [(200, {})]}
    conditions = [PodCondition(type="PodScheduled", **fields) for fields in before]
    pod = replace(
        POD,
        metadata=replace(POD.metadata, generation=3),
        status=replace(POD.status, conditions=conditions),
    )
    writes = writes_of(connection, writer)
    writes.write_condition(WriteCondition(pod, "Unschedulable", "0/1 nodes are available"))
    await writes.flush(10)
    assert server.asked == [("PATCH", f"{POD_PATH}/status")]
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available",
        "observedGeneration": 3,
        "lastTransitionTime": since,
    }
    assert server.bodies == [{"metadata": {"uid": "u-1"}, "status": {"conditions": [condition]}}]


@pytest.mark.parametrize(
    ("nominations", "want"),
    [
        pytest.param(["node-a"], {"nominatedNodeName": "node-a"}, id="is written with it"),
        pytest.param([""], {"nominatedNodeName": None}, id="is taken back with it"),
        pytest.param([None], {}, id="is left as it is"),
        pytest.param(
            ["node-a", None], {"nominatedNodeName": "node-a"}, id="outlives a newer condition"
        ),
        pytest.param(["node-a", ""], {"nominatedNodeName": None}, id="gives way to a newer one"),
    ],
)
async def test_the_nomination_that_comes_with_a_condition(
    connection: Connection,
    writer: Writer,
    server: ApiServer,
    nominations: list[str | None],
    want: dict[str, Any],
) -> None:
    server.answers = {"PATCH": [(200, {})]}
    writes = writes_of(connection, writer)
    for name in nominations:
        writes.write_condition(WriteCondition(POD, "Unschedulable", "nowhere", name))
    await writes.flush(10)
    (body,) = server.bodies
    del body["status"]["conditions"]
    assert body["status"] == want


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        pytest.param(
            FORBIDDEN, ["The condition of a pod was not written"], id="is told when it is rejected"
        ),
        pytest.param(NOT_FOUND, [], id="is not missed where the pod is gone"),
    ],
)
async def test_a_condition_that_is_not_written(
    connection: Connection,
    writer: Writer,
    server: ApiServer,
    caplog: pytest.LogCaptureFixture,
    answer: tuple[int, Any],
    lines: list[str],
) -> None:
    server.answers = {"PATCH": [answer]}
    writes = writes_of(connection, writer, sleep=Sleeps())
    writes.write_condition(WriteCondition(POD, "Unschedulable", "nowhere"))
    await writes.flush(10)
    told = [record.getMessage() for record in caplog.records if record.name == "scheduler"]
    assert told == lines


async def test_a_condition_is_written_again_after_a_server_that_knew_no_rights_yet(
    connection: Connection, writer: Writer, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = {"PATCH": [FORBIDDEN, FORBIDDEN, (200, {})]}
    writes = writes_of(connection, writer, sleep=Sleeps())
    writes.write_condition(WriteCondition(POD, "Unschedulable", "nowhere"))
    await writes.flush(10)
    assert (len(server.asked), caplog.records) == (3, [])


@pytest.mark.parametrize(
    "answer",
    [(0, {}), BROKEN, REDIRECT],
    ids=["gives no answer", "breaks down", "is behind a proxy that wants a login"],
)
async def test_a_condition_is_written_again_after_the_server(
    connection: Connection, writer: Writer, server: ApiServer, answer: tuple[int, Any]
) -> None:
    server.answers = {"PATCH": [*[answer] * 8, (200, {})]}  # each try is four
    sleeps = Sleeps()
    writes = writes_of(connection, writer, sleep=sleeps)
    writes.write_condition(WriteCondition(POD, "Unschedulable", "nowhere", "node-a"))
    await writes.flush(10)
    assert len(server.asked) == 9
    assert nominations(server) == ["node-a"] * 9
    assert sleeps.seconds == [0.8, 1.6]


async def test_a_condition_is_not_written_again_when_its_pod_was_bound(
    connection: Connection, writer: Writer, server: ApiServer
) -> None:
    server.answers = {"PATCH": [*[BROKEN] * 4, (200, {})]}
    server.may_answer.clear()
    writes = writes_of(connection, writer)
    under_way = rejection("web", "under way")
    writes.write_condition(under_way)
    async with running(writes):
        await server.asked_times(1)
        binding = asyncio.create_task(writes.before_binding(under_way.pod))
        await breathe()
        server.may_answer.set()
        await asyncio.wait_for(binding, 10)
        writes.write_condition(rejection("other"))
        await server.asked_times(5)
    assert server.messages == [*[("web", "under way")] * 4, ("other", "nowhere")]


async def test_rejections_of_a_condition_that_was_dropped_are_forgotten(
    connection: Connection, writer: Writer, server: ApiServer
) -> None:
    """As for a pod that was bound, and whose binding turned out to be none."""
    server.answers = {"PATCH": [FORBIDDEN]}

    async def drop_before_the_last(_: float) -> None:
        if len(server.asked) == MOST_REJECTIONS - 1:
            writes.drop_condition(POD)

    writes = writes_of(connection, writer, sleep=drop_before_the_last)
    writes.write_condition(WriteCondition(POD, "Unschedulable", "nowhere"))
    await writes.flush(10)
    assert len(server.asked) == MOST_REJECTIONS - 1
    server.asked.clear()
    writes.write_condition(WriteCondition(POD, "Unschedulable", "nowhere again"))
    await writes.flush(10)
    assert len(server.asked) == MOST_REJECTIONS - 1  # dropped again, not given up


@asynccontextmanager
async def running(writes: KubeWrites) -> AsyncIterator[None]:
    task = asyncio.create_task(writes.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def breathe() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_conditions_are_written_a_few_at_once_and_only_the_newest_of_each_pod(
    connection: Connection, writer: Writer, server: ApiServer
) -> None:
    server.answers = {"PATCH": [(200, {})]}
    server.may_answer.clear()
    writes = writes_of(connection, writer)
    for message in ("older", "newest"):
        for number in range(20):
            writes.write_condition(rejection(f"pod-{number}", message))
    async with running(writes):
        await server.asked_times(8)
        await breathe()
        assert len(server.asked) == 8
        server.may_answer.set()
        await server.asked_times(20)
    assert sorted(server.messages) == sorted((f"pod-{number}", "newest") for number in range(20))
    assert server.most_at_once == 8


async def test_while_bindings_are_under_way_conditions_are_written_one_by_one_with_pauses(
    connection: Connection, writer: Writer, server: ApiServer
) -> None:
    server.answers = {"PATCH": [(200, {})]}
    sleeps = Sleeps()
    writes = writes_of(connection, writer, is_busy=lambda: True, sleep=sleeps)
    for number in range(3):
        writes.write_condition(rejection(f"pod-{number}"))
    async with running(writes):
        await server.asked_times(3)
    assert (server.most_at_once, set(sleeps.seconds)) == (1, {0.05})


async def test_two_conditions_of_one_pod_never_swap(
    connection: Connection, writer: Writer, server: ApiServer
) -> None:
    server.answers = {"PATCH": [(200, {})]}
    server.may_answer.clear()
    writes = writes_of(connection, writer)
    writes.write_condition(rejection("web", "older"))
    async with running(writes):
        await server.asked_times(1)
        writes.write_condition(rejection("web", "newer"))
        await breathe()
        assert server.messages == [("web", "older")]
        server.may_answer.set()
        await server.asked_times(2)
    assert (server.messages[1], server.most_at_once) == (("web", "newer"), 1)


async def test_a_binding_drops_the_condition_that_waits_and_waits_for_the_one_under_way(
    connection: Connection, writer: Writer, server: ApiServer
) -> None:
    server.answers = {"PATCH": [(200, {})]}
    server.may_answer.clear()
    writes = writes_of(connection, writer)
    under_way = rejection("web", "under way")
    writes.write_condition(under_way)
    async with running(writes):
        await server.asked_times(1)
        writes.write_condition(rejection("web", "late"))
        binding = asyncio.create_task(writes.before_binding(under_way.pod))
        await breathe()
        assert not binding.done()
        server.may_answer.set()
        await asyncio.wait_for(binding, 10)
        assert server.messages == [("web", "under way")]
        writes.write_condition(rejection("other"))
        await server.asked_times(2)
    assert server.messages == [("web", "under way"), ("other", "nowhere")]


EVICT = Evict(make_pod("big"), "node-a", (make_pod("low", on="node-a"),), (POD,))


def nominations(server: ApiServer) -> list[str | None]:
    """What was written of POD's nomination, in order."""
    asked = zip(server.asked, server.bodies, strict=True)
    return [
        body["status"]["nominatedNodeName"]
        for (_, path), body in asked
        if path == f"{POD_PATH}/status"
    ]


@pytest.mark.parametrize(
    ("waiting", "want"),
    [
        pytest.param("node-a", [None, None], id="does not come back with a condition that waits"),
        pytest.param("node-b", [None, "node-b"], id="gives way to a newer one"),
    ],
)
async def test_a_nomination_that_an_eviction_takes_back(
    connection: Connection,
    writer: Writer,
    server: ApiServer,
    waiting: str,
    want: list[str | None],
) -> None:
    server.answers = {"PATCH": [(200, {})], "DELETE": [(200, {})]}
    writes = writes_of(connection, writer)
    writes.write_condition(WriteCondition(POD, "Unschedulable", "nowhere", waiting))
    await writes.evict(EVICT)
    await writes.flush(10)
    assert nominations(server) == want


async def test_a_nomination_under_way_is_taken_back_after_it(
    connection: Connection, writer: Writer, server: ApiServer
) -> None:
    server.answers = {"PATCH": [(200, {})], "DELETE": [(200, {})]}
    server.may_answer.clear()
    writes = writes_of(connection, writer)
    writes.write_condition(WriteCondition(POD, "Unschedulable", "nowhere", "node-a"))
    async with running(writes):
        await server.asked_times(1)
        eviction = asyncio.create_task(writes.evict(EVICT))
        await breathe()
        server.may_answer.set()
        await asyncio.wait_for(eviction, 10)
    assert (nominations(server), server.most_at_once) == (["node-a", None], 1)


async def test_a_binding_of_a_pod_without_conditions_does_not_wait(
    connection: Connection, writer: Writer
) -> None:
    await asyncio.wait_for(writes_of(connection, writer).before_binding(POD), 10)


async def test_what_was_under_way_or_waiting_at_the_end_is_written_by_flush(
    connection: Connection, writer: Writer, server: ApiServer
) -> None:
    server.answers = {"PATCH": [(200, {})]}
    server.may_answer.clear()
    writes = writes_of(connection, writer, is_busy=lambda: True)
    writes.write_condition(rejection("begun", "older"))
    writes.write_condition(rejection("waits"))
    async with running(writes):
        await server.asked_times(1)
    server.may_answer.set()
    await writes.flush(10)
    assert sorted(server.messages) == [
        ("begun", "older"),
        ("begun", "older"),
        ("waits", "nowhere"),
    ]


async def test_flush_ends_when_its_time_is_up(
    connection: Connection, writer: Writer, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = {"PATCH": [(200, {})]}
    server.may_answer.clear()
    writes = writes_of(connection, writer)
    for number in range(10):
        writes.write_condition(rejection(f"pod-{number}"))
    await asyncio.wait_for(writes.flush(0.2), 10)
    server.may_answer.set()
    (line,) = caplog.records
    assert line.getMessage() == "Some conditions of pods were not written"
    assert line.__dict__["lowtide_fields"] == {"count": 10, "err": "not done within 0.2 seconds"}


async def test_more_conditions_than_may_wait_are_left_out_and_told_once(
    connection: Connection, writer: Writer, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = {"PATCH": [(200, {})]}
    writes = writes_of(connection, writer, most_waiting=2)
    for name in ("a", "b", "c", "d"):
        writes.write_condition(rejection(name))
    writes.write_condition(rejection("a", "newer"))
    await writes.flush(10)
    assert sorted(server.messages) == [("a", "newer"), ("b", "nowhere")]
    told = [record.getMessage() for record in caplog.records if record.name == "scheduler"]
    assert told == ["Conditions of pods are left out"]


# Events.


async def test_an_event_names_the_pod_and_the_scheduler(
    connection: Connection, writer: Writer, server: ApiServer
) -> None:
    server.answers = {"POST": [(201, {})]}
    clock = ManualClock(NOW)
    events = KubeEvents(connection, host_name="host", is_busy=lambda: False, clock=clock)
    pod = replace(POD, metadata=replace(POD.metadata, resource_version="42"))
    KubeWrites(writer, events, clock, is_busy=lambda: False).write_event(
        WriteKubeEvent(pod, "Normal", "Scheduled", "Binding", "Successfully assigned", "lowtide")
    )
    await events.flush(10)
    (body,) = server.bodies
    assert body["regarding"] == {
        "kind": "Pod",
        "namespace": "default",
        "name": "web",
        "uid": "u-1",
        "apiVersion": "v1",
        "resourceVersion": "42",
    }
    fields = ("type", "reason", "action", "note", "reportingController")
    assert [body[field] for field in fields] == [
        "Normal",
        "Scheduled",
        "Binding",
        "Successfully assigned",
        "lowtide",
    ]
