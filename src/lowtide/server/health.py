"""/healthz, /livez and /readyz with kube-scheduler's bodies; app hands in the checks."""

from collections.abc import Callable, Sequence

from aiohttp import web

from lowtide.logs import Log, quote

# A name, and a question: None means fine, a text says why not.
Check = tuple[str, Callable[[], str | None]]

HEALTH_PATHS = ("/healthz", "/readyz", "/livez")

_LOG = Log(__name__)
_HEADERS = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}


def health_routes(
    *, healthz: Sequence[Check], livez: Sequence[Check], readyz: Sequence[Check]
) -> list[web.RouteDef]:
    """The routes of the three endpoints and of each check; no checks means `ping`, always fine."""
    endpoints = {"healthz": healthz, "livez": livez, "readyz": readyz}
    return [
        route
        for endpoint, checks in endpoints.items()
        for route in _endpoint_routes(endpoint, tuple(checks) or (("ping", _fine),))
    ]


def _fine() -> None:
    return None


def _endpoint_routes(endpoint: str, checks: Sequence[Check]) -> list[web.RouteDef]:
    async def answer_all(request: web.Request) -> web.Response:
        return _all_checks(endpoint, checks, request)

    def answer_one(check: Check) -> web.RouteDef:
        async def answer(_: web.Request) -> web.Response:
            return _one_check(check)

        return web.get(f"/{endpoint}/{check[0]}", answer)

    return [web.get(f"/{endpoint}", answer_all), *map(answer_one, checks)]


def _all_checks(endpoint: str, checks: Sequence[Check], request: web.Request) -> web.Response:
    excluded = set(request.query.getall("exclude", []))
    lines = []
    has_failed = False
    for check in checks:
        name = check[0]
        reason = None if name in excluded else _why_not(check)
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
        elif reason is None:
            lines.append(f"[+]{name} ok")
        else:
            has_failed = True
            # Anyone may ask; the reason is in the log and behind the check's own path.
            lines.append(f"[-]{name} failed: reason withheld")
            _LOG.v(2, "Health check failed", endpoint=endpoint, check=name, reason=reason)
    unknown = sorted(excluded - {name for name, _ in checks})
    if unknown:
        names = ",".join(map(quote, unknown))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    if has_failed:
        return _response([*lines, f"{endpoint} check failed"], status=500)
    if "verbose" in request.query:
        return _response([*lines, f"{endpoint} check passed"], status=200)
    return web.Response(text="ok", headers=_HEADERS)


def _one_check(check: Check) -> web.Response:
    reason = _why_not(check)
    if reason is None:
        return web.Response(text="ok", headers=_HEADERS)
    return _response([f"internal server error: {reason}"], status=500)


def _why_not(check: Check) -> str | None:
    name, question = check
    try:
        return question()
    except Exception as failure:
        _LOG.exception("Health check has a bug", check=name)
        return f"{type(failure).__name__}: {failure}"


def _response(lines: Sequence[str], *, status: int) -> web.Response:
    return web.Response(text="\n".join(lines) + "\n", status=status, headers=_HEADERS)
