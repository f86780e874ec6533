"""Fixtures of the embedded cluster's tests: a clock that stands still, a store, a cluster."""

import random
from collections.abc import AsyncIterator

import aiohttp
import pytest

from lowtide.localcluster import LocalCluster, LocalNode, Store
from lowtide.testing.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> Store:
    return Store(clock=clock, chance=random.Random(1))


@pytest.fixture
async def cluster(clock: ManualClock) -> AsyncIterator[LocalCluster]:
    """Without controllers, so that nothing changes but by the test."""
    nodes = [LocalNode("a"), LocalNode("b")]
    async with LocalCluster(clock=clock, nodes=nodes, runs_controllers=False) as running:
        yield running


@pytest.fixture
async def http(cluster: LocalCluster) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(base_url=cluster.url) as session:
        yield session
