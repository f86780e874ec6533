"""What the tests of app share: the whole scheduler on the embedded cluster."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from lowtide.app.clocks import steady_clock
from lowtide.app.registry import make_registry
from lowtide.app.scheduler import SchedulerApp, SchedulerParts
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.kube.kubeconfig import plain_access
from lowtide.localcluster import LocalCluster
from lowtide.server.serving import NOT_SERVING
from lowtide.testing import ManualClock

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def app_on(
    cluster: LocalCluster, config: Mapping[str, Any], *plugins: type[Any], **parts: Any
) -> SchedulerApp:
    """With these plugins besides the built-in ones, and of these parts."""
    loaded = load_config(json.dumps(dict(config)), file="test")

    def make_profiles(binder: Binder) -> dict[str, Profile]:
        registry = make_registry({plugin.name: plugin for plugin in plugins})
        return registry.build(loaded, {Binder: binder}).profiles

    usual: dict[str, Any] = {
        "access": plain_access(cluster.url),
        "config": loaded.config,
        "make_profiles": make_profiles,
        "clock": steady_clock(),
        "wall_clock": ManualClock(NOW),
        "serving": NOT_SERVING,
    }
    return SchedulerApp(SchedulerParts(**{**usual, **parts}))


@asynccontextmanager
async def running(app: SchedulerApp) -> AsyncIterator[None]:
    """Until the end of the block, and then until it has stopped."""
    task = asyncio.create_task(app.run())
    try:
        yield
    finally:
        app.stop()
        await task


async def until(cluster: LocalCluster, is_so: Callable[[], bool]) -> None:
    """Looks again at each change of the cluster."""
    changed = asyncio.Event()
    unsubscribe = cluster.store.subscribe(lambda _: changed.set())
    try:
        async with asyncio.timeout(20):
            while not is_so():
                changed.clear()
                await changed.wait()
    finally:
        unsubscribe()
