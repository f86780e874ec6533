"""The routes of the extender over HTTP: statuses, what is asked behind them, what goes wrong."""

import asyncio
import io
import json
import logging
import time
from itertools import pairwise
from typing import Any

import aiohttp
import pytest
from tests.server.fake_asking import FakeAsking, FakeMetrics, served
from tests.server.recorded_extender import Recorded, recorded_requests

from lowtide.advisor.advice import Asked, AskedPreemption, PriorityAdvice
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.server.extender import extender_routes
from lowtide.server.health import health_routes
from lowtide.server.http import Server
from lowtide.server.request_limits import MOST_VALUES
from lowtide.testing import ManualClock

POD = Pod(metadata=ObjectMeta(name="web", namespace="default"))
POD_DATA = {"metadata": {"name": "web", "namespace": "default"}}
BY_NAME = {"Pod": POD_DATA, "Nodes": None, "NodeNames": ["one", "two"]}
PREEMPTION = {
    "Pod": POD_DATA,
    "NodeNameToVictims": None,
    "NodeNameToMetaVictims": {
        "one": {"Pods": [{"UID": "u-1"}], "NumPDBViolations": 0},
        "two": {"Pods": [{"UID": "u-2"}], "NumPDBViolations": 1},
    },
}
JSON = {"Content-Type": "application/json"}
BINDING = {"PodName": "web", "PodNamespace": "default", "PodUID": "u", "Node": "one"}
BODIES: dict[str, Any] = {
    "filter": BY_NAME,
    "prioritize": BY_NAME,
    "preempt": PREEMPTION,
    "preemption": PREEMPTION,
    "bind": BINDING,
}


async def sent(
    url: str, body: Any, method: str = "POST", headers: dict[str, str] | None = None
) -> tuple[int, str, Any]:
    """Status, content type and what the JSON of the answer says."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with (
        aiohttp.ClientSession(headers=JSON) as session,
        session.request(method, url, data=data, headers=headers) as response,
    ):
        said = await response.read()
        return response.status, response.headers["Content-Type"], json.loads(said)


async def answered(asking: FakeAsking, verb: str, body: Any) -> tuple[int, Any]:
    async with served(asking, FakeMetrics()) as url:
        status, content_type, said = await sent(f"{url}/scheduler/{verb}", body)
    assert content_type == "application/json"
    return status, said


async def test_filter() -> None:
    asking = FakeAsking(rejected={"two": "busy"})
    assert await answered(asking, "filter", BY_NAME) == (
        200,
        {
            "Nodes": None,
            "NodeNames": ["one"],
            "FailedNodes": {"two": "busy"},
            "FailedAndUnresolvableNodes": None,
            "Error": "",
        },
    )
    assert asking.questions == [Asked(POD, ["one", "two"])]


async def test_prioritize() -> None:
    asking = FakeAsking()
    assert await answered(asking, "prioritize", BY_NAME) == (
        200,
        [{"Host": "one", "Score": 0}, {"Host": "two", "Score": 1}],
    )
    assert asking.questions == [Asked(POD, ["one", "two"])]


@pytest.mark.parametrize("verb", ["preempt", "preemption"])
async def test_preempt(verb: str) -> None:
    asking = FakeAsking(rejected={"two": "busy"})
    assert await answered(asking, verb, PREEMPTION) == (
        200,
        {"NodeNameToMetaVictims": {"one": {"Pods": [{"UID": "u-1"}], "NumPDBViolations": 0}}},
    )
    assert asking.questions == [AskedPreemption(POD, {"one": ("u-1",), "two": ("u-2",)})]


async def test_bind() -> None:
    asking = FakeAsking()
    assert await answered(asking, "bind", BINDING) == (200, {"Error": ""})
    pod = Pod(metadata=ObjectMeta(name="web", namespace="default", uid="u"))
    assert asking.questions == [(pod, "one")]
    asking.bind_error = "pods web is already assigned"
    assert await answered(asking, "bind", BINDING) == (200, {"Error": asking.bind_error})


@pytest.mark.parametrize("recorded", recorded_requests(), ids=lambda each: each.name)
async def test_recorded_requests_are_answered(recorded: Recorded) -> None:
    data = recorded.data
    status, said = await answered(FakeAsking(), recorded.verb, recorded.body)
    want: Any = {"Error": ""}
    if recorded.verb == "filter":
        want = {
            "Nodes": data["Nodes"],
            "NodeNames": data["NodeNames"],
            "FailedNodes": None,
            "FailedAndUnresolvableNodes": None,
            "Error": "",
        }
    elif recorded.verb == "prioritize":
        nodes = (data["Nodes"] or {}).get("items", ())
        names = data["NodeNames"] or [node["metadata"]["name"] for node in nodes]
        want = [{"Host": name, "Score": at} for at, name in enumerate(names)]
    elif recorded.verb == "preempt":
        victims = data["NodeNameToMetaVictims"] or {
            name: {**given, "Pods": [{"UID": pod["metadata"]["uid"]} for pod in given["Pods"]]}
            for name, given in data["NodeNameToVictims"].items()
        }
        want = {"NodeNameToMetaVictims": victims}
    assert (status, said) == (200, want)


@pytest.mark.parametrize("verb", BODIES)
async def test_a_bad_request_is_told_why(verb: str) -> None:
    asking, metrics = FakeAsking(), FakeMetrics()
    async with served(asking, metrics) as url:
        status, content_type, said = await sent(f"{url}/scheduler/{verb}", b"[]")
    assert (status, content_type) == (400, "application/json")
    assert said["error"].startswith("the body is []; expected an object with Pod")
    assert asking.questions == []
    assert metrics.observed == [(verb.replace("preemption", "preempt"), "400")]


async def test_amounts_that_cannot_be_read_are_a_bad_request() -> None:
    asking = FakeAsking(failure=QuantityError("'a lot' is not a quantity"))
    assert await answered(asking, "filter", BY_NAME) == (
        400,
        {"error": "an amount in the request cannot be read: 'a lot' is not a quantity"},
    )


@pytest.mark.parametrize("verb", BODIES)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
async def test_other_methods_are_rejected(verb: str, method: str) -> None:
    async with served(FakeAsking(), FakeMetrics()) as url:
        assert await sent(f"{url}/scheduler/{verb}", b"", method) == (
            405,
            "application/json",
            {"error": f"/scheduler/{verb} is asked by POST, not by {method}"},
        )


@pytest.mark.parametrize(
    "path", ["/filter", "/scheduler", "/scheduler/", "/scheduler/score", "/scheduler/a/b"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_other_paths_are_told_the_right_ones(path: str, method: str) -> None:
    async with served(FakeAsking(), FakeMetrics()) as url:
        assert await sent(url + path, BY_NAME, method) == (
            404,
            "application/json",
            {
                "error": f"{path} is no path of this extender; expected /scheduler/filter, "
                "/scheduler/prioritize, /scheduler/preempt, /scheduler/bind, /scheduler/preemption"
            },
        )


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("prefix", ["", "/scheduler"])
async def test_other_routes_of_the_server_are_left_alone(is_first: bool, prefix: str) -> None:
    health = health_routes(healthz=[], livez=[], readyz=[])
    routes = extender_routes(
        FakeAsking(),
        metrics=FakeMetrics(),
        clock=ManualClock(),
        most_body_bytes=1024,
        prefix=prefix,
        serves_bind=True,
    )
    server = Server([*routes, *health] if is_first else [*health, *routes], port=0)
    await server.start()
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{server.address.url}/healthz/ping") as response,
        ):
            assert (response.status, await response.text()) == (200, "ok")
    finally:
        await server.stop()


@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        pytest.param("", "/filter", id="may be empty"),
        pytest.param("/", "/filter", id="may be a slash"),
        pytest.param("lowtide/v1/", "/lowtide/v1/filter", id="may have slashes anywhere"),
    ],
)
async def test_the_prefix(prefix: str, path: str) -> None:
    async with served(FakeAsking(), FakeMetrics(), prefix=prefix) as url:
        status, _, said = await sent(url + path, BY_NAME)
        assert (status, said["NodeNames"]) == (200, ["one", "two"])


async def test_a_body_beyond_the_limit_is_rejected() -> None:
    metrics = FakeMetrics()
    async with served(FakeAsking(), metrics, most_body_bytes=1024) as url:
        status, _, said = await sent(f"{url}/scheduler/filter", b" " * 1025)
        assert (status, list(said)) == (413, ["error"])
        assert (await sent(f"{url}/scheduler/filter", BY_NAME))[0] == 200
    assert metrics.observed == [("filter", "413"), ("filter", "200")]
    assert metrics.reasons == ["too-large"]


async def test_too_many_nodes_are_rejected() -> None:
    body = {**BY_NAME, "NodeNames": [""] * 150_001}
    assert await answered(FakeAsking(), "filter", body) == (
        413,
        {"error": "NodeNames has more than 150000 entries"},
    )


async def test_health_is_answered_while_a_large_request_is_read() -> None:
    """Nodes of as many values as one may have, in a body that is mostly space."""
    labels = {f"{at}": "" for at in range(MOST_VALUES - 10)}
    nodes = [{"metadata": {"name": f"n{at}", "labels": labels}} for at in range(20)]
    body = json.dumps({"Pod": POD_DATA, "Nodes": {"items": nodes}}, separators=(",", ":")).encode()
    body += b" " * (32 * 1024 * 1024 - len(body))
    probes: list[float] = []

    async def probe(url: str, session: aiohttp.ClientSession) -> None:
        while True:
            async with session.get(f"{url}/healthz") as response:
                assert response.status == 200
            probes.append(time.monotonic())

    async with (
        served(FakeAsking(), FakeMetrics(), most_body_bytes=len(body)) as url,
        aiohttp.ClientSession(headers=JSON) as session,
    ):
        probing = asyncio.create_task(probe(url, session))
        sent = SentAt(body)
        async with session.post(f"{url}/scheduler/prioritize", data=sent) as response:
            status, answered_at = response.status, time.monotonic()
        probing.cancel()
    meanwhile = [at for at in probes if sent.ended_at < at < answered_at]
    assert (status, len(meanwhile) >= 10) == (200, True)
    gaps = [after - before for before, after in pairwise([sent.ended_at, *meanwhile, answered_at])]
    assert max(gaps) < (answered_at - sent.ended_at) / 2


class SentAt(io.BytesIO):
    """A body that knows when the last of it was handed out."""

    ended_at = 0.0

    def read(self, size: int | None = -1) -> bytes:
        self.ended_at = time.monotonic()
        return super().read(size)


async def test_answers_that_are_not_read_yet_count_as_bodies() -> None:
    size_bytes = 32 * 1024 * 1024  # more than sockets hold
    images = ["x" * (size_bytes // 16)]
    nodes = [{"metadata": {"name": f"n{at}"}, "status": {"images": images}} for at in range(16)]
    body = json.dumps({"Pod": POD_DATA, "Nodes": {"items": nodes}}).encode()
    async with served(FakeAsking(), FakeMetrics(), most_body_bytes=len(body)) as url:
        filter_url = f"{url}/scheduler/filter"
        async with aiohttp.ClientSession(headers=JSON) as session:
            async with session.post(filter_url, data=io.BytesIO(body)) as unread:
                async with session.post(filter_url, data=io.BytesIO(body)) as rejected:
                    problem = await rejected.json()
                assert len(await unread.read()) > size_bytes
            async with session.post(filter_url, data=io.BytesIO(body)) as after:
                assert len(await after.read()) > size_bytes
    assert [each.status for each in (unread, rejected, after)] == [200, 503, 200]
    assert problem == {
        "error": f"requests under way hold {len(body)} bytes already, the limit that "
        "--max-body-mib sets for all of them at once; ask again"
    }


@pytest.mark.parametrize(
    ("is_hung", "want"),
    [
        pytest.param(True, "close", id="sends away who asks while the plugins hang"),
        pytest.param(False, None, id="keeps connections otherwise"),
    ],
)
async def test_the_extender(is_hung: bool, want: str | None) -> None:
    async with (
        served(FakeAsking(hung=is_hung), FakeMetrics()) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/scheduler/filter", json=BY_NAME) as response,
    ):
        assert (response.status, response.headers.get("Connection")) == (200, want)


@pytest.mark.parametrize("verb", BODIES)
async def test_nothing_is_answered_before_the_cluster_is_known(verb: str) -> None:
    asking = FakeAsking(not_ready="not listed yet: nodes")
    assert await answered(asking, verb, BODIES[verb]) == (
        503,
        {"error": "Lowtide cannot answer yet: not listed yet: nodes"},
    )
    assert asking.questions == []


@pytest.mark.parametrize(
    ("headers", "status", "reason"),
    [
        pytest.param({"Content-Type": "text/plain"}, 415, "content-type", id="posts text"),
        pytest.param({"Origin": "http://evil.example"}, 403, "origin", id="posts as a web page"),
        pytest.param({"Host": "rebound.example"}, 403, "host", id="names our address anew"),
    ],
)
@pytest.mark.parametrize("verb", BODIES)
async def test_no_verb_answers_who(
    verb: str, headers: dict[str, str], status: int, reason: str
) -> None:
    asking, metrics = FakeAsking(), FakeMetrics()
    async with served(asking, metrics) as url:
        got, _, said = await sent(f"{url}/scheduler/{verb}", BODIES[verb], headers=headers)
    assert (got, list(said), metrics.reasons) == (status, ["error"], [reason])
    assert asking.questions == []


async def test_bind_is_not_served_where_nobody_wants_it(caplog: pytest.LogCaptureFixture) -> None:
    asking, metrics = FakeAsking(), FakeMetrics()
    with caplog.at_level(logging.WARNING):
        async with served(asking, metrics, serves_bind=False) as url:
            status, _, said = await sent(f"{url}/scheduler/bind", BINDING)
            assert (await sent(f"{url}/scheduler/filter", BY_NAME))[0] == 200
    assert (status, said, metrics.reasons) == (
        404,
        {
            "error": "this extender does not bind pods: leave bindVerb out of kube-scheduler's "
            "configuration, or set bind: true in the pluginConfig entry Extender of a profile of "
            "Lowtide's"
        },
        ["no-bind"],
    )
    assert len(asking.questions) == 1
    assert [record.message for record in caplog.records] == ["A request is not answered"]


@pytest.mark.parametrize(
    ("verb", "want"),
    [
        pytest.param(
            "filter",
            {
                "Nodes": None,
                "NodeNames": ["one", "two"],
                "FailedNodes": None,
                "FailedAndUnresolvableNodes": None,
                "Error": "",
            },
            id="filter keeps everything",
        ),
        pytest.param(
            "prioritize",
            [{"Host": "one", "Score": 0}, {"Host": "two", "Score": 0}],
            id="prioritize gives nothing to all",
        ),
        pytest.param(
            "preempt",
            {"NodeNameToMetaVictims": PREEMPTION["NodeNameToMetaVictims"]},
            id="preempt agrees to everything",
        ),
    ],
)
async def test_a_bug_of_ours_is_a_neutral_answer(
    verb: str, want: Any, caplog: pytest.LogCaptureFixture
) -> None:
    asking, metrics = FakeAsking(failure=KeyError("row 7")), FakeMetrics()
    with caplog.at_level(logging.ERROR):
        async with served(asking, metrics) as url:
            got = await sent(f"{url}/scheduler/{verb}", BODIES[verb])
    assert got == (200, "application/json", want)
    assert (metrics.observed, metrics.neutral) == ([(verb, "200")], [(verb, "failed")])
    (record,) = caplog.records
    assert record.message == "A request cannot be answered; the answer is neutral"
    assert record.exc_info is not None


class Unsure(FakeAsking):
    def why_not_ready(self) -> str | None:
        raise KeyError("nodes")


async def test_a_bug_elsewhere_is_told_as_our_problem() -> None:
    assert await answered(Unsure(), "filter", BY_NAME) == (
        503,
        {"error": "Lowtide has a problem with this request: KeyError: 'nodes'"},
    )


class TooManyPoints(FakeAsking):
    async def prioritize(self, asked: Asked) -> PriorityAdvice:
        return PriorityAdvice([11] * len(asked.names))


async def test_priorities_above_ten_never_go_out() -> None:
    assert await answered(TooManyPoints(), "prioritize", BY_NAME) == (
        200,
        [{"Host": "one", "Score": 0}, {"Host": "two", "Score": 0}],
    )


async def test_a_binding_that_goes_wrong_by_a_bug_is_an_error() -> None:
    asking = FakeAsking(failure=KeyError("row 7"))
    assert await answered(asking, "bind", BINDING) == (
        200,
        {"Error": "Lowtide cannot bind the pod: KeyError: 'row 7'"},
    )


async def test_each_request_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    asking = FakeAsking(rejected={"two": "busy"})
    with caplog.at_level(logging.INFO - 4):
        async with served(asking, FakeMetrics()) as url:
            for verb, body in BODIES.items():
                await sent(f"{url}/scheduler/{verb}", body)
    told = [
        record.__dict__["lowtide_fields"]
        for record in caplog.records
        if "Answered" in record.message
    ]
    assert [
        (fields["verb"], fields["pod"], fields["nodes"], fields["outcome"]) for fields in told
    ] == [
        ("filter", "default/web", 2, "1 left"),
        ("prioritize", "default/web", 2, "up to 1"),
        ("preempt", "default/web", 2, "1 left"),
        ("preempt", "default/web", 2, "1 left"),
        ("bind", "default/web", 1, "bound to one"),
    ]


async def test_rejections_are_warned_of_but_not_each(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with served(FakeAsking(), FakeMetrics()) as url:
            for _ in range(3):
                await sent(f"{url}/scheduler/bind", {})
    assert [record.message for record in caplog.records] == ["A request is not answered"]
