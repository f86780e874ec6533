"""Small servers for what the doctor asks: a page of an API server, and a Prometheus that answers by
query."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from tests.doctor.conftest import NAMES, NOW, WELL, Exporter, answers_of

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import config_with_traffic, make_registry
from lowtide.doctor.questions import CLOCK_QUERY, probes
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.readings.meter import POD_WINDOW_SECONDS
from lowtide.readings.request import TrafficRequest, link_queries, pod_queries, traffic_queries
from lowtide.readings.series import Series

SCRAPES = [(NOW - 45, "1"), (NOW - 30, "2"), (NOW - 15, "3"), (NOW, "4")]


@dataclass
class Servers:
    """Both of them; what a test does not set is as in a cluster where all is well."""

    exporters: Sequence[Exporter] = WELL
    ahead_seconds: float = 0.0
    scrapes: Sequence[tuple[float, str]] = tuple(SCRAPES)
    nodes_status: int = 200
    pods_status: int = 200
    rejected: str = ""  # queries that begin so are not understood
    prometheus_url: str = ""
    api_url: str = ""
    asked: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    request: TrafficRequest | None = None

    async def query(self, request: web.Request) -> web.Response:
        promql = str((await request.post())["query"])
        self.asked.append(promql)
        if self.rejected and promql.startswith(self.rejected):
            error = {"status": "error", "errorType": "bad_data", "error": "not understood"}
            return web.json_response(error, status=400)
        if promql == CLOCK_QUERY:
            now = NOW + self.ahead_seconds
            return _answer("vector", [{"metric": {}, "value": [now, str(now)]}])
        if promql.endswith("[15m]"):
            return _answer("matrix", [{"metric": {}, "values": list(self.scrapes)}])
        return _answer("vector", [_row(one) for one in self._known().get(promql, ())])

    def _known(self) -> dict[str, Sequence[Series]]:
        assert self.request is not None
        answers = answers_of(self.exporters, self.request)
        queries = probes(self.request)
        for window_seconds in (self.request.window_seconds, 120):
            asked = {
                **queries,
                **link_queries(self.request),
                **traffic_queries(self.request, window_seconds, has_all_labels=True),
                **pod_queries(self.request, POD_WINDOW_SECONDS),
            }
            queries |= {f"{name} {window_seconds}": promql for name, promql in asked.items()}
        return {
            promql: answers[name.partition(" ")[0]]
            for name, promql in queries.items()
            if name.partition(" ")[0] in answers
        }

    async def list(self, request: web.Request) -> web.Response:
        self.listed.append(request.path)
        is_nodes = request.path == "/api/v1/nodes"
        status = self.nodes_status if is_nodes else self.pods_status
        if status != 200:
            return web.json_response({"message": "is forbidden"}, status=status)
        items = [_node(number, name) for number, name in enumerate(NAMES, start=1)]
        return web.json_response({"metadata": {}, "items": items if is_nodes else []})


def _answer(kind: str, result: Any) -> web.Response:
    text = json.dumps({"status": "success", "data": {"resultType": kind, "result": result}})
    return web.Response(text=text, content_type="application/json")


def _row(one: Series) -> dict[str, Any]:
    return {"metric": one.labels, "value": [one.at, str(one.value)]}


def _node(number: int, name: str) -> dict[str, Any]:
    addresses = [{"type": "InternalIP", "address": f"10.0.0.{number}"}]
    return {"metadata": {"name": name}, "status": {"addresses": addresses}}


@asynccontextmanager
async def serving() -> AsyncIterator[Servers]:
    made = Servers()
    application = web.Application()
    application.router.add_post("/api/v1/query", made.query)
    application.router.add_get("/{path:.*}", made.list)
    async with AsyncExitStack() as stack:
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.api_url = made.prometheus_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made


def profiles_with(args: Mapping[str, Any]) -> dict[str, Profile]:
    loaded = config_with_traffic(
        args, scheduler_name="lowtide", weight=3, leader_elect=False, source="test"
    )
    return make_registry({}).build(loaded, {Binder: NoBinder()}).profiles
