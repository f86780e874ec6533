import asyncio
import re

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge

from lowtide.server.http import Server
from lowtide.server.metrics import metrics_routes


async def scrape(registry: CollectorRegistry, accept: str) -> tuple[str, str]:
    """Content type and body of /metrics."""
    server = Server(metrics_routes(registry), port=0)
    await server.start()
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{server.address.url}/metrics", headers={"Accept": accept}) as response,
        ):
            return response.headers["Content-Type"], await response.text()
    finally:
        await server.stop()


@pytest.mark.parametrize(
    ("accept", "content_type", "want"),
    [
        pytest.param(
            "text/plain",
            "text/plain; version=0.0.4; charset=utf-8",
            [
                "# HELP things_total Things",
                "# TYPE things_total counter",
                'things_total{kind="a"} 3.0',
                "# HELP node_created When",
                "# TYPE node_created gauge",
                "node_created 5.0",
            ],
            id="answers in Prometheus's text form",
        ),
        pytest.param(
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
            [
                "# HELP things Things",
                "# TYPE things counter",
                'things_total{kind="a"} 3.0',
                "# HELP node_created When",
                "# TYPE node_created gauge",
                "node_created 5.0",
            ],
            id="answers in OpenMetrics where it is asked for",
        ),
    ],
)
async def test_metrics(accept: str, content_type: str, want: list[str]) -> None:
    registry = CollectorRegistry()
    Counter("things_total", "Things", ("kind",), registry=registry).labels("a").inc(3)
    Gauge("node_created", "When", registry=registry).set(5)
    got_type, body = await scrape(registry, accept)
    ours = [
        line
        for line in body.splitlines()
        if "process_" not in line and "lowtide_tasks" not in line and line != "# EOF"
    ]
    assert (got_type, ours) == (content_type, want)


async def test_metrics_tell_about_the_process() -> None:
    _, body = await scrape(CollectorRegistry(), "text/plain")
    names = {line.split()[0] for line in body.splitlines() if not line.startswith("#")}
    assert names == {
        "process_virtual_memory_bytes",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_cpu_seconds_total",
        "process_open_fds",
        "process_max_fds",
        "lowtide_tasks",
    }


async def test_tasks_are_counted_until_they_have_ended() -> None:
    never = asyncio.Event()
    counts = []
    for waiting in (0, 7, 0):
        tasks = [asyncio.create_task(never.wait()) for _ in range(waiting)]
        _, body = await scrape(CollectorRegistry(), "text/plain")
        counts.append(float(re.search(r"^lowtide_tasks (.*)$", body, re.MULTILINE)[1]))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert (counts[1] - counts[0], counts[2] - counts[0]) == (7, 0)
