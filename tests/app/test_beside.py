"""What runs beside a scheduler while the cluster is not there, or may not be seen."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.app.conftest import NOW

from lowtide.app.beside import Beside, BesideParts
from lowtide.app.clocks import steady_clock
from lowtide.kube.errors import KubeError
from lowtide.kube.kubeconfig import plain_access
from lowtide.localcluster import LocalCluster
from lowtide.objects.events import Listed, Unavailable
from lowtide.scheduler.events import Event
from lowtide.testing import ManualClock
from realparts.process import free_port

pytestmark = pytest.mark.timeout(60)

NO_NODES = Unavailable("Node", 403, "nodes are not for you (HTTP 403 Forbidden)")


@asynccontextmanager
async def beside(port: int) -> AsyncIterator[tuple[Beside, list[Event]]]:
    """Runs it while the block does; hands out what it was told of."""
    told: list[Event] = []
    access = plain_access(f"http://127.0.0.1:{port}")
    found = Beside(BesideParts(access, steady_clock(), ManualClock(NOW)), {}, {}, told.append)
    task = asyncio.create_task(found.run())
    try:
        yield found, told
    finally:
        found.stop()
        await task


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():
            await asyncio.sleep(0.01)


async def test_it_goes_on_when_the_cluster_comes_and_has_seen_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="kube")
    port = free_port()
    async with beside(port) as (found, told):
        await until(lambda: "Cannot reach the cluster, trying again" in caplog.messages)
        async with LocalCluster(clock=ManualClock(NOW), port=port) as cluster:
            cluster.add_node("one", cpu="8")
            await until(lambda: Listed("Node") in told and Listed("Pod") in told)
    assert [each for each in caplog.messages if "cluster" in each] == [
        "Cannot reach the cluster, trying again",
        "The cluster answers again",
    ]
    found.check_seen()


async def test_what_may_not_be_listed_is_the_reason_that_it_was_never_seen() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.faults.answer(
            "GET", "/api/v1/nodes", status=403, message="nodes are not for you", times=99
        )
        port = int(cluster.url.rpartition(":")[2])
        async with beside(port) as (found, told):
            await until(lambda: Listed("Pod") in told and NO_NODES in told)
    with pytest.raises(KubeError) as caught:
        found.check_seen()
    assert str(caught.value) == f"nodes of the cluster were never seen: {NO_NODES.message}"


async def test_the_reason_why_others_are_not_followed_is_none_for_what_was_never_seen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="kube")
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.faults.answer(
            "GET", "/api/v1/nodes", status=403, message="nodes are not for you", times=99
        )
        port = int(cluster.url.rpartition(":")[2])
        async with beside(port) as (found, told):
            await until(lambda: Listed("Pod") in told and NO_NODES in told)
            cluster.faults.answer(
                "GET", "/api/v1/pods", status=500, message="pods are broken", times=99
            )
            cluster.faults.cut_watches()
            await until(lambda: any("Cannot follow" in each for each in caplog.messages))
    with pytest.raises(KubeError) as caught:
        found.check_seen()
    assert str(caught.value) == f"nodes of the cluster were never seen: {NO_NODES.message}"


async def test_an_end_before_any_answer() -> None:
    port = free_port()
    async with beside(port) as (found, _):
        pass
    with pytest.raises(KubeError) as caught:
        found.check_seen()
    want = f"nodes and pods of the cluster were never seen: http://127.0.0.1:{port} has not "
    assert str(caught.value) == f"{want}answered yet"
