"""An HTTP server on loopback that meets the faults it was told to: under both of our servers."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from lowtide.localcluster.failures import StatusError
from lowtide.localcluster.faults import Drop, Fault, Faults
from lowtide.localcluster.presentation import encoded

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def json_response(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json")


class FaultyServer:
    def __init__(self, handler: Handler, faults: Faults) -> None:
        self._handler = handler
        self._faults = faults
        self._runner: web.ServerRunner | None = None
        self._host = ""
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self._port}"

    async def start(self, host: str, port: int) -> None:
        # A watch whose client left is cancelled at once; writes are over before anything awaits.
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, backlog=1024)
        await site.start()
        self._host, self._port = self._runner.addresses[0][:2]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        fault = self._faults.take(request.method, request.path)
        if fault is None:
            return await self._handler(request)
        await asyncio.sleep(fault.delay_seconds)
        if fault.status is not None:
            await request.read()
            return _wrong_answer(fault)
        if fault.drop is Drop.BEFORE_APPLYING:
            return _hung_up(request)
        response = await self._handler(request)
        return _hung_up(request) if fault.drop is Drop.AFTER_APPLYING else response


def _wrong_answer(fault: Fault) -> web.Response:
    assert fault.status is not None
    if fault.status < 400:
        done = {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": fault.status}
        return json_response(fault.status, encoded(done))
    details = None
    if fault.retry_after_seconds is not None:
        details = {"retryAfterSeconds": fault.retry_after_seconds}
    reason = _REASONS.get(fault.status, "Unknown")
    failure = StatusError(fault.status, reason, fault.message, details)
    response = json_response(fault.status, encoded(failure.status()))
    if fault.retry_after_seconds is not None:
        response.headers["Retry-After"] = str(fault.retry_after_seconds)
    return response


def _hung_up(request: web.BaseRequest) -> web.Response:
    """Closes the connection; the response that aiohttp wants is written to nobody."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
