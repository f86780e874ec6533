"""Scheduling goes on whatever Prometheus does, one log line says so, and recovery is logged."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from realparts.process import Process, free_port, wait_until

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]
POLL_SECONDS = 15.0
HTML = ("text/html", "<html><body>Sign in</body></html>")
SILENT = "Prometheus gives no traffic"
UNUSABLE = "Nodes without a usable traffic reading"
LATE = "Scheduling starts without a traffic reading"


def vector(**bytes_per_second: str) -> Callable[[str], tuple[str, str]]:
    """Prometheus's answer to every query about traffic; to the others an empty one."""

    def answer(query: str) -> tuple[str, str]:
        rows = [
            {"metric": {"node": name, "device": "eth0"}, "value": [time.time(), value]}
            for name, value in bytes_per_second.items()
            if "bytes_total" in query
        ]
        data = {"resultType": "vector", "result": rows}
        return "application/json", json.dumps({"status": "success", "data": data})

    return answer


def slow(query: str) -> tuple[str, str]:
    time.sleep(6.0)  # longer than scheduling waits for its first reading
    return vector()(query)


@pytest.fixture
def traffic_configuration(configuration: Configuration) -> Configuration:
    def make(prometheus_address: str) -> dict[str, Any]:
        args = {"prometheusAddress": prometheus_address, "scoring": "relative"}
        profile = {
            "schedulerName": "lowtide",
            "plugins": {
                "score": {"enabled": [{"name": "NetworkTraffic"}], "disabled": [{"name": "*"}]}
            },
            "pluginConfig": [{"name": "NetworkTraffic", "args": args}],
        }
        return configuration(profiles=[profile])

    return make


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        pytest.param(None, SILENT, id="goes on while Prometheus is unreachable"),
        pytest.param(slow, LATE, id="goes on while Prometheus is slow"),
        pytest.param(lambda query: HTML, SILENT, id="goes on while something else answers"),
        pytest.param(vector(left="NaN", right="NaN"), UNUSABLE, id="goes on with NaN"),
        pytest.param(vector(left="5000"), UNUSABLE, id="goes on with a node left out"),
    ],
)
def test_prometheus_fault(
    embedded_cluster: Any,
    fake_prometheus: Callable[..., Any],
    traffic_configuration: Configuration,
    lowtide_scheduler: Start,
    answer: Callable[[str], tuple[str, str]] | None,
    line: str,
) -> None:
    url = f"http://127.0.0.1:{free_port()}" if answer is None else fake_prometheus(answer).url
    for name in ("left", "right"):
        embedded_cluster.create_node(name)
    scheduler = lowtide_scheduler(traffic_configuration(url), embedded_cluster.kubeconfig)
    names = [f"pod-{number}" for number in range(6)]
    for name in names:
        embedded_cluster.create_pod(name)
    for name in names:
        embedded_cluster.wait_for_placement(name)
    # Neutral where nothing is known: the nodes are equal and take turns.
    assert set(embedded_cluster.placements().values()) == {"left", "right"}
    wait_until(lambda: line in scheduler.log(), timeout_seconds=10, what="a line tells of it")
    assert scheduler.log().count(line) == 1


def test_recovery_is_logged_and_used(
    embedded_cluster: Any,
    fake_prometheus: Callable[..., Any],
    traffic_configuration: Configuration,
    lowtide_scheduler: Start,
) -> None:
    prometheus = fake_prometheus(lambda query: HTML)
    for name in ("quiet", "busy"):
        embedded_cluster.create_node(name)
    scheduler = lowtide_scheduler(
        traffic_configuration(prometheus.url), embedded_cluster.kubeconfig
    )
    wait_until(lambda: SILENT in scheduler.log(), timeout_seconds=10, what="the fault is told")
    prometheus.answer = vector(quiet="1000", busy="5000000")
    wait_until(
        lambda: "Prometheus answers again" in scheduler.log(),
        timeout_seconds=POLL_SECONDS + 10,
        what="the recovery is told",
    )
    assert scheduler.log().count(SILENT) == 1
    names = [f"pod-{number}" for number in range(4)]
    for name in names:
        embedded_cluster.create_pod(name)
    assert [embedded_cluster.wait_for_placement(name) for name in names] == ["quiet"] * 4


def test_first_pods_are_placed_by_a_reading_of_every_node(
    embedded: Any,
    embedded_cluster: Any,
    fake_prometheus: Callable[..., Any],
    traffic_configuration: Configuration,
    lowtide_scheduler: Start,
) -> None:
    """Also when the nodes are listed later than Prometheus answers."""
    prometheus = fake_prometheus(vector(quiet="1000", busy="5000000"))
    for name in ("quiet", "busy"):
        embedded_cluster.create_node(name)
    names = [f"pod-{number}" for number in range(4)]
    for name in names:
        embedded_cluster.create_pod(name)
    embedded.call(lambda cluster: cluster.faults.delay("GET", "/api/v1/nodes", seconds=1.0))
    lowtide_scheduler(traffic_configuration(prometheus.url), embedded_cluster.kubeconfig)
    assert [embedded_cluster.wait_for_placement(name) for name in names] == ["quiet"] * 4
