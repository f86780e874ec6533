"""The recorder's parts as they are joined, on the embedded cluster."""

import asyncio
import json
import logging
from pathlib import Path

import pytest
from tests.app.conftest import NOW

from lowtide.app.beside import BesideParts
from lowtide.app.clocks import steady_clock
from lowtide.app.no_binder import NoBinder
from lowtide.app.record import RecordApp
from lowtide.app.recording import recorder_maker
from lowtide.app.registry import make_registry
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.kube.kubeconfig import plain_access
from lowtide.localcluster import LocalCluster
from lowtide.records.recording import Recording
from lowtide.records.recording_options import RecordingOptions
from lowtide.testing import ManualClock

pytestmark = pytest.mark.timeout(60)

CONFIG = json.dumps(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "tried"}],
    }
)


def record_app(cluster: LocalCluster, file: Path) -> RecordApp:
    loaded, clock = load_config(CONFIG, file="test"), steady_clock()
    built = make_registry({}).build(loaded, {Binder: NoBinder()})
    parts = BesideParts(plain_access(cluster.url), clock, ManualClock(NOW))
    make = recorder_maker(RecordingOptions(file), loaded, clock=clock, wall_clock=parts.wall_clock)
    return RecordApp(parts, built.profiles, make)


async def test_it_tells_that_it_has_begun_and_that_the_cluster_is_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("one", cpu="8")
        app = record_app(cluster, tmp_path / "run.lowtide")
        task = asyncio.create_task(app.run())
        async with asyncio.timeout(30):
            while "Nodes and pods are listed" not in caplog.messages:
                await asyncio.sleep(0)
        app.stop()
        await task
    told = [record.message for record in caplog.records if record.levelno == logging.INFO]
    assert told == ["Recording", "Nodes and pods are listed"]
    with Recording(tmp_path / "run.lowtide") as recording:
        assert len(list(recording.steps([]))) == app.event_count
