"""What `lowtide scheduler --record` recorded comes out of `lowtide replay` again, all of it: on the
embedded and on the real API server, in another process with another seed of Python's hashes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from realparts.process import Process

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]
LOWTIDE = Path(sys.executable).parent / "lowtide"
ZONE = "topology.kubernetes.io/zone"
SECRET = "hunter2"
BYTES_PER_SECOND = {"one": "9e7", "two": "2e7", "three": "6e7"}


def answer(query: str) -> tuple[str, str]:
    """Prometheus's, to every query about traffic."""
    rows = [
        {"metric": {"node": name, "device": "eth0"}, "value": [time.time(), value]}
        for name, value in BYTES_PER_SECOND.items()
        if "bytes_total" in query and "container" not in query
    ]
    data = {"resultType": "vector", "result": rows}
    return "application/json", json.dumps({"status": "success", "data": data})


@pytest.fixture
def traffic_configuration(configuration: Configuration, fake_prometheus: Any) -> dict[str, Any]:
    capacity = {"matchLabels": {"pool": "tenth"}, "capacity": "1G"}
    args = {
        "prometheusAddress": fake_prometheus(answer).url,
        "prometheus": {"headers": {"X-Token": SECRET}},
        "pollInterval": "1s",
        "linkCapacities": [capacity],
    }
    profile = {
        "schedulerName": "lowtide",
        "plugins": {"score": {"enabled": [{"name": "NetworkTraffic", "weight": 3}]}},
        "pluginConfig": [{"name": "NetworkTraffic", "args": args}],
    }
    return configuration(profiles=[profile], podMaxBackoffSeconds=2)


def replayed(file: Path, *flags: str) -> tuple[dict[str, Any], str]:
    done = subprocess.run(
        [LOWTIDE, "replay", file, "--output=json", *flags],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    return json.loads(done.stdout), done.stderr


def crowd(cluster: Any) -> None:
    """Pods that are placed, that wait for room, that are spread, that evict others."""
    spread = {
        "maxSkew": 3,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    environment = [{"name": "PASSWORD", "value": SECRET}]
    for number in range(12):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"web-{number}",
                "labels": {"app": "web"},
                "annotations": {"example.com/note": SECRET},
            },
            "spec": {
                "schedulerName": "lowtide",
                "containers": [
                    {
                        "name": "main",
                        "image": "example/none",
                        "env": environment,
                        "resources": {"requests": {"cpu": "600m"}},
                    }
                ],
                "topologySpreadConstraints": [spread],
            },
        }
        cluster.send("POST", cluster.pods_path, pod)
    cluster.wait_for(
        lambda: sum(node is not None for node in cluster.placements().values()) == 9,
        what="nine pods have a place",
    )
    cluster.wait_for(
        lambda: all(
            cluster.scheduled_condition(name) for name, node in cluster.placements().items()
        ),
        what="the others are told that there is none",
    )
    cluster.create_pod("anywhere", nodeSelector={ZONE: "east"}, cpu="10m")
    cluster.wait_for_placement("anywhere")
    for number in range(80):
        cluster.create_pod(f"small-{number}", cpu="1m")
    cluster.wait_for(
        lambda: all(
            node for name, node in cluster.placements().items() if name.startswith("small-")
        ),
        what="the small ones have a place",
    )
    placed = [name for name, node in cluster.placements().items() if node and "web" in name]
    for name in sorted(placed)[:3]:
        cluster.delete_pod(name)
    cluster.wait_for(
        lambda: sum(node is not None for node in cluster.placements().values()) >= 80 + 1 + 7,
        what="others have taken the places",
    )


@pytest.mark.parametrize(
    "flags",
    [pytest.param((), id="plain"), pytest.param(("--record-hash-names",), id="hashed")],
)
def test_every_decision_comes_out_the_same(
    cluster: Any,
    traffic_configuration: dict[str, Any],
    lowtide_scheduler: Start,
    tmp_path: Path,
    flags: tuple[str, ...],
) -> None:
    for name, zone in (("one", "east"), ("two", "west"), ("three", "west")):
        cpu = "2" if zone == "east" else "1900m"
        cluster.create_node(name, cpu=cpu, labels={ZONE: zone, "pool": "tenth"})
    file = tmp_path / "run.lowtide"
    scheduler = lowtide_scheduler(
        traffic_configuration, cluster.kubeconfig, f"--record={file}", *flags
    )
    crowd(cluster)
    assert scheduler.stop() == 0
    told, warnings = replayed(file)
    assert (told["differences"], warnings) == ([], "")
    assert told["decisions"] >= 12 + 1 + 80 + 1
    lines = subprocess.run(["zcat", file], capture_output=True, text=True, check=True).stdout
    assert SECRET not in lines
    assert '"event":"ReadingPublished"' in lines
    assert ("web-3" in lines) == (not flags)


def test_recording_of_a_killed_scheduler_is_replayed_as_far_as_it_goes(
    cluster: Any,
    traffic_configuration: dict[str, Any],
    lowtide_scheduler: Start,
    tmp_path: Path,
) -> None:
    cluster.create_node("one")
    file = tmp_path / "run.lowtide"
    scheduler = lowtide_scheduler(traffic_configuration, cluster.kubeconfig, f"--record={file}")
    cluster.create_pod("web")
    cluster.wait_for_placement("web")
    cluster.wait_for(lambda: replayed(file)[0]["decisions"] == 1, what="the decision is recorded")
    scheduler.send(signal.SIGKILL)
    scheduler.wait(10)
    told, warnings = replayed(file)
    assert (told["decisions"], told["differences"]) == (1, [])
    assert warnings.startswith("warning: run.lowtide: has no end: whoever recorded it was killed")
