"""`lowtide explain` on the embedded and on the real API server: the numbers that `lowtide decide`
computes for the same state."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import LOWTIDE
from tests.integration.test_preemption import CRITICAL

from realparts.process import Process

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]
Json = dict[str, Any]


def lowtide(*words: str) -> str:
    ended = subprocess.run(
        [str(LOWTIDE), *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def explained(scheduler: Process, cluster: Any, name: str, *flags: str) -> Json:
    pod = f"{cluster.namespace}/{name}"
    found: Json = json.loads(
        lowtide("explain", pod, f"--address={scheduler.url}", "--output=json", *flags)
    )
    return found


def state_of(cluster: Any) -> Json:
    """As `lowtide decide` reads it."""
    nodes = [cluster.send("GET", f"/api/v1/nodes/{name}", None) for name in cluster.node_names]
    pods = cluster.send("GET", cluster.pods_path, None)["items"]
    return {"nodes": nodes, "pods": [pod for pod in pods if pod["spec"].get("nodeName")]}


def decided(folder: Path, state: Json, pod: Json, config: Json) -> Json:
    file = folder / f"{pod['metadata']['name']}.jsonl"
    scenario = {"id": "state", "pod": pod, "config": config, **state}
    file.write_text(json.dumps(scenario))
    found: Json = json.loads(lowtide("decide", str(file), "--output=json"))
    return found


def scores(record: Json) -> Json:
    """By plugin and node, as `decide` tells them."""
    by_plugin: Json = {}
    for node in record["best"]:
        for plugin, score in node["scores"].items():
            by_plugin.setdefault(plugin, {})[node["node"]] = score
    return by_plugin


def test_a_placed_pod_has_the_scores_that_decide_computes(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start, tmp_path: Path
) -> None:
    config = configuration()
    for name, cpu in (("large", "8"), ("medium", "4"), ("small", "2")):
        cluster.create_node(name, cpu=cpu)
    scheduler = lowtide_scheduler(config, cluster.kubeconfig)
    for name in ("first", "second"):
        before = state_of(cluster)
        pod = cluster.create_pod(name, cpu="700m")
        node_name = cluster.wait_for_placement(name)
        cluster.wait_for_event(name, "Scheduled")
        (record,) = explained(scheduler, cluster, name)["records"]
        answer = decided(tmp_path, before, pod, config)
        assert record["node"] == node_name
        assert node_name in answer["best"]
        assert scores(record) == answer["scores"]
        assert {each["node"]: each["total"] for each in record["best"]} == answer["total"]
    why_not = explained(scheduler, cluster, "second", "--why-not=small")["why_not"]
    by_plugin = {each["plugin"]: each["other"] for each in why_not["comparison"]}
    assert by_plugin == {
        plugin: each["small"]["weighted"] for plugin, each in answer["scores"].items()
    }
    table = lowtide("explain", f"{cluster.namespace}/second", f"--address={scheduler.url}")
    assert table.startswith(f"{cluster.namespace}/second -> {node_name} (attempt 1, ")


def test_a_pending_pod_is_told_what_would_make_it_fit(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start, tmp_path: Path
) -> None:
    config = configuration()
    cluster.create_node("a", cpu="2")
    cluster.create_node("b", cpu="1")
    scheduler = lowtide_scheduler(config, cluster.kubeconfig)
    pod = cluster.create_pod("big", cpu="3")
    cluster.wait_for_event("big", "FailedScheduling")
    found = explained(scheduler, cluster, "big", "--why-not=b")
    answer = decided(tmp_path, state_of(cluster), pod, config)
    assert found["records"][0]["message"] == answer["fit_error_final"]
    assert found["records"][0]["reasons"] == {"Insufficient cpu": 2}
    assert found["why_not"]["rejections"] == ["NodeResourcesFit: Insufficient cpu"]
    (remedy,) = found["remedies"]
    assert remedy["message"] == (
        "2 nodes reject it only by NodeResourcesFit (Insufficient cpu), such as a, b; "
        "none has more than 2 cpu in all, and the pod asks for 3: "
        "ask for less, or add a larger node"
    )


def test_a_preempted_pod_and_the_one_it_made_room_for(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start, tmp_path: Path
) -> None:
    config = configuration()
    cluster.create_node("only", cpu="1")
    scheduler = lowtide_scheduler(config, cluster.kubeconfig)
    cluster.create_pod("low", cpu="800m")
    cluster.wait_for_placement("low")
    before = state_of(cluster)
    pod = cluster.create_pod("critical", cpu="800m", **CRITICAL)
    assert cluster.wait_for_placement("critical") == "only"
    low = f"{cluster.namespace}/low"
    answer = decided(tmp_path, before, pod, config)
    first = explained(scheduler, cluster, "critical")["records"][-1]
    assert first["preemption"] == {"node": "only", "victims": [low]}
    assert answer["postfilter"]["victims"] == [low]
    assert first["message"] == answer["fit_error_final"]
    preempted_by = explained(scheduler, cluster, "low")["preempted_by"]
    assert (preempted_by["pod"], preempted_by["uid"]) == (first["pod"], first["uid"])


def test_decisions_are_written_to_a_file_and_events_say_more(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        cluster.create_node(name)
    file = tmp_path / "decisions.jsonl"
    flags = (f"--decisions-file={file}", "--explain-events")
    scheduler = lowtide_scheduler(configuration(), cluster.kubeconfig, *flags)
    cluster.create_pod("web", cpu="700m")
    node_name = cluster.wait_for_placement("web")
    event = cluster.wait_for_event("web", "Scheduled")
    (live,) = explained(scheduler, cluster, "web")["records"]
    total = live["best"][0]["total"]
    other = "b" if node_name == "a" else "a"
    assert event["note"] == (
        f"Successfully assigned {cluster.namespace}/web to {node_name}; "
        f"{node_name}: score {total}, as {other} has: equal nodes take turns"
    )
    assert scheduler.stop() == 0
    pod = f"{cluster.namespace}/web"
    words = ("explain", pod, f"--decisions-file={file}", "--output=json")
    assert json.loads(lowtide(*words))["records"] == [live]
