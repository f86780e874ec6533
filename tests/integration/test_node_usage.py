"""NodeUsage and NodeLabel as clusters and users see them; tests/real has metrics-server itself."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from realparts.process import Process, wait_until

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]
LOWTIDE = Path(sys.executable).parent / "lowtide"
SEED = {"k8s-master": "264m", "k8s-node1": "87m", "k8s-node2": "67m"}
NO_USAGE = "metrics-server gives no usage"


def example_config(examples: Path) -> dict[str, Any]:
    text = (examples / "03-node-usage" / "scheduler-config.yaml").read_text()
    config: dict[str, Any] = yaml.safe_load(text)
    return config


def test_no_node_has_the_label_until_one_gets_it(
    cluster: Any, lowtide_scheduler: Start, examples: Path
) -> None:
    for name in SEED:
        cluster.create_node(name)
    lowtide_scheduler(example_config(examples), cluster.kubeconfig)
    cluster.create_pod("web", schedulerName="usage-scheduler")
    event = cluster.wait_for_event("web", "FailedScheduling")
    told = (
        "0/3 nodes are available: all node do not have label filter.xy.com. "
        "no new claims to deallocate, preemption: "
        "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    assert event["note"] == told
    cluster.wait_for(
        lambda: cluster.scheduled_condition("web") is not None, what="the condition is written"
    )
    assert cluster.scheduled_condition("web") == {
        "status": "False",
        "reason": "Unschedulable",
        "message": told,
    }
    labelled = {"metadata": {"labels": {"filter.xy.com": "true"}}}
    cluster.send("PATCH", "/api/v1/nodes/k8s-node1", labelled)
    assert cluster.wait_for_placement("web") == "k8s-node1"


def test_lowest_usage_of_the_labelled_nodes_is_chosen(
    embedded: Any, embedded_cluster: Any, lowtide_scheduler: Start, examples: Path
) -> None:
    for name, cpu in {**SEED, "k8s-node3": "5m"}.items():
        labels = {"filter.xy.com": "true"} if name in SEED else {}
        embedded_cluster.create_node(name, labels=labels)
        embedded.call(lambda cluster, name=name, cpu=cpu: cluster.usage.set(name, cpu=cpu))
    scheduler = lowtide_scheduler(example_config(examples), embedded_cluster.kubeconfig)
    embedded_cluster.create_pod("web", schedulerName="usage-scheduler")
    assert embedded_cluster.wait_for_placement("web") == "k8s-node2"
    for told in (
        "] Node [ k8s-master ] Cpu Usage Value: 264, Score: -196\n",
        "] Node [ k8s-node1 ] Cpu Usage Value: 87, Score: -19\n",
        "] Node [ k8s-node2 ] Cpu Usage Value: 67, Score: 1\n",
    ):
        assert told in scheduler.log()
    assert NO_USAGE not in scheduler.log()


def test_metrics_server_that_is_away_is_told_once(
    embedded: Any, embedded_cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    path = "/apis/metrics.k8s.io/v1beta1/nodes"
    embedded.call(lambda cluster: cluster.faults.answer("GET", path, status=404, times=99))
    for name in ("left", "right"):
        embedded_cluster.create_node(name)
    score = {"enabled": [{"name": "NodeUsage"}], "disabled": [{"name": "*"}]}
    profile = {
        "schedulerName": "lowtide",
        "plugins": {"score": score},
        "pluginConfig": [{"name": "NodeUsage", "args": {"pollInterval": "1s"}}],
    }
    scheduler = lowtide_scheduler(configuration(profiles=[profile]), embedded_cluster.kubeconfig)
    for name in ("one", "two"):
        embedded_cluster.create_pod(name)
        embedded_cluster.wait_for_placement(name)
    assert set(embedded_cluster.placements().values()) == {"left", "right"}

    def rejected_polls() -> int:
        met: int = embedded.call(lambda cluster: len(cluster.faults.met))
        return met

    wait_until(lambda: rejected_polls() >= 3, timeout_seconds=20, what="it is asked again")
    assert scheduler.log().count(NO_USAGE) == 1


def test_example_prints_the_table_of_its_readme(examples: Path) -> None:
    folder = examples / "03-node-usage"
    readme = (folder / "README.md").read_text()
    command = readme.partition("```\nlowtide ")[2].partition("\n```")[0]
    printed = readme.partition("```text\n")[2].partition("```")[0]
    done = subprocess.run(
        [LOWTIDE, *command.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stdout == printed
