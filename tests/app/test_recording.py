"""What a scheduler on the embedded cluster records, and the header it begins with."""

import json
from pathlib import Path
from typing import Any

from tests.app.conftest import NOW, running, until

from lowtide.app.recording import recorder_maker
from lowtide.app.registry import make_registry
from lowtide.app.replay import replay
from lowtide.app.scheduler import SchedulerApp, SchedulerParts
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.kube.kubeconfig import plain_access
from lowtide.localcluster import LocalCluster
from lowtide.records.recording import Recording
from lowtide.records.recording_header import VERSION, Header, Source
from lowtide.records.recording_options import RecordingOptions
from lowtide.server.serving import NOT_SERVING
from lowtide.testing import ManualClock

CONFIG: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [
        {
            "schedulerName": "lowtide",
            "plugins": {"score": {"enabled": [{"name": "NodeUsage"}]}},
        }
    ],
}


def pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": "lowtide", "containers": [container]},
    }


def node_of(cluster: LocalCluster, name: str) -> str | None:
    found: str | None = cluster.store.get("pods", "default", name)["spec"].get("nodeName")
    return found


def test_header(tmp_path: Path) -> None:
    loaded = load_config(json.dumps(CONFIG), file="test")
    profiles = make_registry({}).build(loaded, {Binder: None}).profiles
    options = RecordingOptions(tmp_path / "run", annotations=("example.com/group",))
    make = recorder_maker(
        options,
        loaded,
        clock=ManualClock(12.5),
        wall_clock=ManualClock(NOW),
        keeps_every_score=True,
    )
    with make(profiles):
        pass
    with Recording(options.file) as recording:
        header = recording.header
    assert header == Header(
        format="lowtide recording",
        version=VERSION,
        lowtide=header.lowtide,
        time="2026-01-01T00:00:00+00:00",
        now=12.5,
        keeps_every_score=True,
        scheduler_names=["lowtide"],
        sources=[
            Source("UsageRequest", "UsageRequest(every_seconds=15.0, stale_after_seconds=300.0)")
        ],
        annotations=["example.com/group"],
        config=CONFIG,
    )


async def test_whole_scheduler_is_recorded_and_replayed(tmp_path: Path) -> None:
    loaded = load_config(json.dumps(CONFIG), file="test")
    registry, clock = make_registry({}), ManualClock(NOW)
    options = RecordingOptions(tmp_path / "run")
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        app = SchedulerApp(
            SchedulerParts(
                access=plain_access(cluster.url),
                config=loaded.config,
                make_profiles=lambda binder: registry.build(loaded, {Binder: binder}).profiles,
                clock=clock,
                wall_clock=clock,
                serving=NOT_SERVING,
                make_recorder=recorder_maker(options, loaded, clock=clock, wall_clock=clock),
            )
        )
        for name in ("one", "two"):
            cluster.add_node(name)
        async with running(app):
            for number in range(5):
                cluster.store.create("pods", pod(f"pod-{number}"), namespace="default")
            await until(cluster, lambda: all(node_of(cluster, f"pod-{each}") for each in range(5)))
    told: list[tuple[int, int]] = []
    made = replay(options.file, registry, None, lambda done, total: told.append((done, total)))
    assert (made.differences, made.decision_count, made.warnings) == ((), 5, ())
    size = options.file.stat().st_size
    assert told == [(size, size)]
