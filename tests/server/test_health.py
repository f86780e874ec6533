import io
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from lowtide.logs import configure_logs
from lowtide.server.health import Check, health_routes
from lowtide.server.http import Server


def answers(reason: str | None) -> Callable[[], str | None]:
    return lambda: reason


def has_a_bug() -> str | None:
    raise KeyError("lease")


READY: list[Check] = [("leaderElection", answers(None)), ("shutdown", answers(None))]
NOT_READY: list[Check] = [
    ("leaderElection", answers(None)),
    ("sched-handler-sync", answers("handlers are not fully synchronized")),
]


@pytest.fixture(autouse=True)
def log_lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    configure_logs(verbosity=2, format="text", stream=stream, clock=lambda: 0.0)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


@asynccontextmanager
async def serving(readyz: list[Check]) -> AsyncIterator[str]:
    server = Server(health_routes(healthz=[], livez=[], readyz=readyz), port=0)
    await server.start()
    try:
        yield server.address.url
    finally:
        await server.stop()


async def get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


@pytest.mark.parametrize(
    ("readyz", "path", "want"),
    [
        pytest.param(READY, "/readyz", (200, "ok"), id="answers ok"),
        pytest.param(READY, "/healthz", (200, "ok"), id="answers healthz"),
        pytest.param(READY, "/livez", (200, "ok"), id="answers livez"),
        pytest.param(
            [],
            "/livez?verbose",
            (200, "[+]ping ok\nlivez check passed\n"),
            id="has ping where no check is given",
        ),
        pytest.param(
            READY,
            "/readyz?verbose",
            (200, "[+]leaderElection ok\n[+]shutdown ok\nreadyz check passed\n"),
            id="lists each check when verbose",
        ),
        pytest.param(
            NOT_READY,
            "/readyz",
            (
                500,
                "[+]leaderElection ok\n"
                "[-]sched-handler-sync failed: reason withheld\n"
                "readyz check failed\n",
            ),
            id="is verbose on failure and withholds the reason",
        ),
        pytest.param(
            NOT_READY,
            "/readyz?exclude=sched-handler-sync",
            (200, "ok"),
            id="passes over an excluded check",
        ),
        pytest.param(
            NOT_READY,
            "/readyz?exclude=sched-handler-sync&exclude=no%0Asuch&exclude=c&exclude=b&exclude=a&verbose",
            (
                200,
                "[+]leaderElection ok\n"
                "[+]sched-handler-sync excluded: ok\n"
                "warn: some health checks cannot be excluded: "
                'no matches for "a","b","c","no\\nsuch"\n'
                "readyz check passed\n",
            ),
            id="warns about excluded checks that it does not have",
        ),
        pytest.param(READY, "/readyz/shutdown", (200, "ok"), id="answers for one check"),
        pytest.param(
            NOT_READY,
            "/readyz/sched-handler-sync",
            (500, "internal server error: handlers are not fully synchronized\n"),
            id="tells the reason behind the check's own path",
        ),
        pytest.param(READY, "/readyz/nothing", (404, "404: Not Found"), id="knows no other check"),
        pytest.param(
            [("leaderElection", has_a_bug)],
            "/readyz/leaderElection",
            (500, "internal server error: KeyError: 'lease'\n"),
            id="takes a check with a bug for a failed one",
        ),
    ],
)
async def test_endpoint(readyz: list[Check], path: str, want: tuple[int, str]) -> None:
    async with serving(readyz) as url:
        assert await get(url + path) == want


async def test_a_check_is_asked_each_time() -> None:
    reasons: list[str | None] = ["not yet", None]
    async with serving([("sync", lambda: reasons.pop(0))]) as url:
        assert [(await get(f"{url}/readyz"))[0] for _ in range(2)] == [500, 200]


async def test_the_reason_is_logged(log_lines: io.StringIO) -> None:
    async with serving(NOT_READY) as url:
        await get(f"{url}/readyz")
    assert [line.partition("] ")[2] for line in log_lines.getvalue().splitlines()] == [
        '"Health check failed" endpoint="readyz" check="sched-handler-sync" '
        'reason="handlers are not fully synchronized"'
    ]


async def test_no_answer_is_kept_by_anyone() -> None:
    async with (
        serving(READY) as url,
        aiohttp.ClientSession() as session,
        session.get(f"{url}/readyz") as response,
    ):
        kept = {"Cache-Control", "Content-Type", "X-Content-Type-Options"}
        assert {name: response.headers[name] for name in kept} == {
            "Cache-Control": "no-cache, private",
            "Content-Type": "text/plain; charset=utf-8",
            "X-Content-Type-Options": "nosniff",
        }
