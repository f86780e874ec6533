"""What /metrics says of answers that were rejected for their size."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.hostile import announced, hostile_server

from lowtide.app.known_cluster import WatchedCluster
from lowtide.app.measuring import Measuring
from lowtide.app.rejected_answers import RejectedAnswers, rejected_by
from lowtide.kube.connection import Connection
from lowtide.kube.errors import Unreadable
from lowtide.kube.kubeconfig import plain_access
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import NetworkTrafficArgs
from lowtide.testing import ManualClock, make_profile


async def test_each_rejection_is_counted_by_who_answered() -> None:
    clock = ManualClock()
    async with (
        hostile_server(announced) as url,
        Connection(plain_access(url), clock) as connection,
    ):
        has_polled = asyncio.Event()

        async def sleep(seconds: float) -> None:
            has_polled.set()
            await asyncio.Event().wait()

        plugin = NetworkTraffic(NetworkTrafficArgs(prometheus_address=url))
        measuring = Measuring(
            {"lowtide": make_profile([plugin])},
            connection=connection,
            known=WatchedCluster(),
            publish=lambda source, reading: None,
            clock=clock,
            wall_clock=clock,
            sleep=sleep,
        )
        registry = CollectorRegistry()
        registry.register(
            RejectedAnswers(lambda: rejected_by(connection, measuring=measuring, extenders=3))
        )
        for _ in range(2):
            with pytest.raises(Unreadable):
                await connection.request("GET", "/x")
        running = asyncio.create_task(measuring.run())
        await has_polled.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        said = generate_latest(registry).decode()
    assert 'lowtide_rejected_answers_total{source="api-server"} 2.0' in said
    assert 'lowtide_rejected_answers_total{source="extender"} 3.0' in said
    polled = measuring.rejected_answers
    assert polled > 0
    assert f'lowtide_rejected_answers_total{{source="prometheus"}} {polled}.0' in said
