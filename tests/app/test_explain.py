"""`lowtide explain` through the API server: which pods and ports it asks, and what it is told; and
out of a file."""

import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from aiohttp import web
from tests.hostile import Pieces, gzip_bomb, hostile_server, nested
from tests.records.test_flips import QUIET, ROOMY, record
from tests.server.conftest import running

from lowtide.app.explain import (
    ExplainError,
    explanation_by_address,
    explanation_from_file,
    explanation_through_api_server,
)
from lowtide.kube.kubeconfig import plain_access
from lowtide.records.explaining import Explanation
from lowtide.records.journal import Journal
from lowtide.records.record import PreemptionRecord
from lowtide.server.http import Server
from lowtide.testing import ManualClock

T = TypeVar("T")

PODS = "/api/v1/namespaces/{namespace}/pods/{pod}/proxy/api/explain/{of}/{name}"
REJECTED = {"kind": "Status", "message": "error trying to reach service: connection refused"}
CUT = 299  # not a status: the connection is cut


class FakeApiServer:
    """Stands before pods of Lowtide; `answers` has what each says, by its name in the proxy."""

    def __init__(self, answers: dict[str, tuple[int, dict[str, object]]]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def pods(self, request: web.Request) -> web.Response:
        assert request.query["labelSelector"] == "app.kubernetes.io/name=lowtide"
        names = dict.fromkeys(each.split(":")[-2] for each in self._answers)
        metadata = [{"metadata": {"namespace": "kube-system", "name": name}} for name in names]
        return web.json_response({"items": metadata})

    async def proxy(self, request: web.Request) -> web.Response:
        pod = request.match_info["pod"]
        self.asked.append(pod)
        status, body = self._answers.get(pod, (503, REJECTED))
        if status == CUT:
            assert request.transport is not None
            request.transport.close()
        return web.json_response(body, status=status)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        routes = [web.get("/api/v1/pods", self.pods), web.get(PODS, self.proxy)]
        server = Server(routes, port=0)
        async with running(server):
            yield server.address.url


async def explanation(server: FakeApiServer, port: int | None = None) -> Explanation:
    async with server.serving() as url:
        return await explanation_through_api_server(
            plain_access(url),
            "default/web",
            None,
            through=None,
            port=port,
            wall_clock=ManualClock(),
        )


async def explained(server: FakeApiServer, port: int | None = None) -> str:
    return (await explanation(server, port)).pod


RECORDS = [msgspec.to_builtins(record(QUIET, ROOMY))]
FOUND: tuple[int, dict[str, object]] = (200, {"pod": "default/web", "records": RECORDS})
WITHOUT_RECORDS: tuple[int, dict[str, object]] = (
    200,
    {"pod": "default/web", "records": [], "waiting_for": "standby"},
)
UNKNOWN: tuple[int, dict[str, object]] = (404, {"error": "nothing is known of pod default/web"})


async def test_an_extender_is_found_at_its_own_port() -> None:
    server = FakeApiServer({"lowtide-extender-0:8001": FOUND})
    assert await explained(server) == "default/web"
    assert server.asked == [
        "https:lowtide-extender-0:10259",
        "lowtide-extender-0:10259",
        "https:lowtide-extender-0:8001",
        "lowtide-extender-0:8001",
    ]


async def test_a_port_that_is_named_is_the_only_one_asked() -> None:
    server = FakeApiServer({"https:lowtide-0:7000": FOUND})
    assert await explained(server, port=7000) == "default/web"
    assert server.asked == ["https:lowtide-0:7000"]


async def test_the_first_pod_that_knows_tells() -> None:
    server = FakeApiServer({"https:lowtide-0:10259": UNKNOWN, "https:lowtide-1:10259": FOUND})
    assert await explained(server) == "default/web"
    assert server.asked == ["https:lowtide-0:10259", "https:lowtide-1:10259"]


async def test_a_standby_that_has_not_decided_is_believed_only_where_nobody_has() -> None:
    answers = {"https:lowtide-0:10259": WITHOUT_RECORDS, "https:lowtide-1:10259": FOUND}
    found = await explanation(FakeApiServer(answers))
    assert (len(found.records), found.waiting_for) == (1, None)
    answers["https:lowtide-1:10259"] = UNKNOWN
    found = await explanation(FakeApiServer(answers))
    assert (len(found.records), found.waiting_for) == (0, "standby")


async def test_a_pod_that_cannot_be_reached_is_passed_over() -> None:
    cut: tuple[int, dict[str, object]] = (CUT, {})
    server = FakeApiServer({"https:lowtide-0:10259": cut, "https:lowtide-1:10259": FOUND})
    assert await explained(server) == "default/web"
    server = FakeApiServer({"https:lowtide-0:7": cut})
    with pytest.raises(ExplainError, match=r"^pod kube-system/lowtide-0: .*$"):
        await explained(server, port=7)
    assert set(server.asked) == {"https:lowtide-0:7"}  # by HTTP it would take as long


async def serving_tls(says: dict[str, object], ask: Callable[[str], Awaitable[T]]) -> T:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(says)

    routes = [web.get("/api/explain/{of}/{name}", answer)]
    server = Server(routes, port=0, is_self_signed=True)
    async with running(server):
        return await ask(f"127.0.0.1:{server.address.port}")


async def test_on_loopback_any_certificate_will_do() -> None:
    async def ask(address: str) -> Explanation:
        return await explanation_by_address(f"https://{address}", "default/web", None)

    assert (await serving_tls(FOUND[1], ask)).pod == "default/web"


async def test_who_forgets_https_is_told_so() -> None:
    async def ask(address: str) -> str:
        with pytest.raises(ExplainError) as raised:
            await explanation_by_address(f"http://{address}", "default/web", None)
        return str(raised.value)

    assert (await serving_tls(FOUND[1], ask)).endswith(
        " ends the connection, as one does that serves HTTPS: use https://"
    )


@asynccontextmanager
async def api_server_without_tls() -> AsyncIterator[str]:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"kind": "Status", "code": 404}, status=404)

    server = Server([web.get("/api/explain/{of}/{name}", answer)], port=0)
    async with running(server):
        yield f"127.0.0.1:{server.address.port}"


async def test_who_says_https_where_there_is_no_tls_is_told_so() -> None:
    async with api_server_without_tls() as address:
        with pytest.raises(ExplainError) as raised:
            await explanation_by_address(f"https://{address}", "default/web", None)
    assert str(raised.value) == (f"https://{address} speaks HTTP without TLS: use http://{address}")


async def test_an_api_server_is_told_as_one() -> None:
    async with api_server_without_tls() as address:
        with pytest.raises(
            ExplainError, match=f"^http://{address} is an API server, not Lowtide: "
        ):
            await explanation_by_address(f"http://{address}", "default/web", None)


async def test_what_each_says_is_told_once() -> None:
    server = FakeApiServer({"https:lowtide-0:10259": UNKNOWN, "lowtide-1:1": FOUND})
    with pytest.raises(ExplainError) as raised:
        await explained(server)
    assert str(raised.value).splitlines() == [
        "pod kube-system/lowtide-0: nothing is known of pod default/web",
        "pod kube-system/lowtide-1: error trying to reach service: connection refused",
    ]


def test_of_a_file_only_what_is_about_the_pod_is_held_in_memory(tmp_path: Path) -> None:
    made = record(QUIET, ROOMY)
    others = [msgspec.structs.replace(made, seq=seq, pod=f"default/{seq}") for seq in range(2000)]
    preempts = PreemptionRecord("a", ["default/web"])
    evicting = msgspec.structs.replace(others[-1], preemption=preempts)
    own = [msgspec.structs.replace(made, seq=seq, pod="default/web") for seq in (5000, 5001)]
    path = tmp_path / "decisions.jsonl"
    Journal(path).write([own[0], evicting, own[1], *others])
    tracemalloc.start()
    try:
        found = explanation_from_file(path, "default/web", None)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [each.seq for each in found.records] == [5001, 5000]
    assert found.preempted_by == evicting
    assert most_bytes < path.stat().st_size / 5
    with pytest.raises(ExplainError, match="no decision about pod default/none is in it"):
        explanation_from_file(path, "default/none", None)


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(
            gzip_bomb,
            "{url} answers with more than 256 MiB, the limit; --address is where Lowtide serves, "
            "such as https://127.0.0.1:10259",
            id="without an end",
        ),
        pytest.param(
            nested,
            "{url} answers with no explanation: maximum recursion depth exceeded while "
            "deserializing an object",
            id="nested too deep",
        ),
    ],
)
async def test_a_hostile_answer(answer: Pieces, want: str) -> None:
    async with hostile_server(answer) as url:
        with pytest.raises(ExplainError) as raised:
            await explanation_by_address(url, "default/web", None)
    assert str(raised.value) == want.format(url=url)
