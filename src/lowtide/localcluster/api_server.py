"""The HTTP face of the embedded cluster: Kubernetes' REST protocol and watches on loopback.

Started and stopped by LocalCluster; what requests do is in operations.py."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from aiohttp import web

from lowtide.localcluster.api_path import ApiPath, integer, is_true, parse_path, selection, version
from lowtide.localcluster.discovery import discovery_documents
from lowtide.localcluster.failures import StatusError, bad_request, unknown_resource
from lowtide.localcluster.faults import Faults
from lowtide.localcluster.faulty_http import FaultyServer, json_response
from lowtide.localcluster.kinds import served_kinds
from lowtide.localcluster.metrics_api import METRICS_API, UsageModel
from lowtide.localcluster.operations import Call, Operations
from lowtide.localcluster.presentation import encoded, presentation
from lowtide.localcluster.store import Store
from lowtide.localcluster.watches import Watch, Watches

_HEALTH_PATHS = frozenset(["/healthz", "/livez", "/readyz"])


class ApiServer:
    def __init__(
        self,
        *,
        store: Store,
        usage: UsageModel,
        faults: Faults,
        clock: Callable[[], float],
        bookmark_seconds: float = 10.0,
    ) -> None:
        self.watches = Watches()
        self._store = store
        self._usage = usage
        self._faults = faults
        self._clock = clock
        self._bookmark_seconds = bookmark_seconds
        self._operations = Operations(store, clock)
        self._served = served_kinds()
        self._documents = {
            path: encoded(document) for path, document in discovery_documents().items()
        }
        self._server = FaultyServer(self._handle, faults)
        self._stop_following: Callable[[], None] | None = None

    @property
    def url(self) -> str:
        return self._server.url

    async def start(self, host: str, port: int) -> None:
        self._stop_following = self.watches.follow(self._store)
        await self._server.start(host, port)

    async def stop(self) -> None:
        self.watches.end_all()
        if self._stop_following:
            self._stop_following()
            self._stop_following = None
        await self._server.stop()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except StatusError as failure:
            return json_response(failure.code, encoded(failure.status()))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            logging.getLogger(__name__).exception("%s %s", request.method, request.path)
            ours = StatusError(500, "InternalError", f"Internal error occurred: {error!r}")
            return json_response(500, encoded(ours.status()))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if document := self._documents.get(path.rstrip("/")):
            return json_response(200, document)
        if path in _HEALTH_PATHS:
            return web.Response(text="ok")
        if not path.startswith(("/api/", "/apis/")):
            raise unknown_resource()
        if path.startswith(f"{METRICS_API}/"):
            usage = self._usage.answer(request.method, path.removeprefix(METRICS_API))
            return json_response(200, encoded(usage))
        target = parse_path(path, self._served)
        query = request.query
        if request.method == "GET" and is_true(query, "watch"):
            return await self._watch(request, target, query)
        call = Call(
            method=request.method,
            path=target,
            query=query,
            body=await request.read(),
            content_type=request.content_type,
            accept=request.headers.get("Accept", ""),
        )
        answer = self._operations.run(call)
        return json_response(answer.status, answer.body)

    async def _watch(
        self, request: web.BaseRequest, target: ApiPath, query: Mapping[str, str]
    ) -> web.StreamResponse:
        asked, timeout_seconds = version(query), integer(query, "timeoutSeconds")
        sends_initial_events = is_true(query, "sendInitialEvents")
        allows_bookmarks = is_true(query, "allowWatchBookmarks")
        if sends_initial_events and query.get("resourceVersionMatch") != "NotOlderThan":
            raise bad_request(
                "resourceVersionMatch must be NotOlderThan when sendInitialEvents is true"
            )
        accept = request.headers.get("Accept", "")
        include_object = query.get("includeObject", "Metadata")
        form = presentation(target.kind, accept, include_object, self._clock)
        watch = Watch(selection(target, query), form)
        plural = target.kind.plural
        since = None if sends_initial_events or not asked else asked
        watch.start(self._store, plural, since)
        if sends_initial_events and allows_bookmarks:
            watch.end_initial_events(self._store.version)
        self.watches.open(plural, watch)
        forget = self._faults.on_cut(lambda: _abort(request))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        try:
            await response.prepare(request)
            await self._stream(response, watch, timeout_seconds, allows_bookmarks)
        except ConnectionError:
            pass  # the client left, or a fault cut the watch: nobody is there to be told
        finally:
            self.watches.close(plural, watch)
            forget()
        return response

    async def _stream(
        self,
        response: web.StreamResponse,
        watch: Watch,
        timeout_seconds: int | None,
        allows_bookmarks: bool,
    ) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout_seconds if timeout_seconds else None
        next_bookmark = loop.time() + self._bookmark_seconds
        while not watch.is_ended:
            until = next_bookmark if end is None else min(end, next_bookmark)
            await _write(response, await watch.lines(max(0.0, until - loop.time())))
            if end is not None and loop.time() >= end:
                watch.end()
            if allows_bookmarks and (watch.is_ended or loop.time() >= next_bookmark):
                watch.bookmark(self._store.version)
            if loop.time() >= next_bookmark:
                next_bookmark = loop.time() + self._bookmark_seconds
        await _write(response, await watch.lines(0))
        await response.write_eof()


async def _write(response: web.StreamResponse, lines: bytes) -> None:
    if lines:
        await response.write(lines)


def _abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
