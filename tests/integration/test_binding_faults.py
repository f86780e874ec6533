"""Bindings that go wrong on the embedded cluster: nothing is lost, nothing is bound twice."""

import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from lowtide.localcluster import Drop, LocalCluster
from lowtide.scheduler.binding_cycle import CONFIRMED_WITHIN_SECONDS
from realparts.process import Process

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]
PATIENCE_SECONDS = 20.0
NAMES = ["one", "two", "three"]


@pytest.fixture
def binding_counts(embedded: Any) -> Counter[tuple[str, str]]:
    """How often each pod's node name was set, and to what."""
    counts: Counter[tuple[str, str]] = Counter()

    def notice(change: Any) -> None:
        node_name = change.item.get("spec", {}).get("nodeName")
        before = change.previous.item["spec"].get("nodeName") if change.previous else None
        if change.plural == "pods" and node_name != before:
            counts[change.item["metadata"]["name"], str(node_name)] += 1

    embedded.call(lambda cluster: cluster.store.subscribe(notice))
    return counts


def answered(status: int, times: int = 3, **fields: Any) -> Callable[[LocalCluster], None]:
    return lambda cluster: cluster.faults.answer(
        "POST", "/binding", status=status, times=times, **fields
    )


def dropped(when: Drop) -> Callable[[LocalCluster], None]:
    return lambda cluster: cluster.faults.drop("POST", "/binding", when=when, times=3)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(answered(409), id="survives a conflict"),
        pytest.param(answered(404), id="survives a not found though the pods are there"),
        pytest.param(answered(429, retry_after_seconds=1), id="waits when asked to"),
        pytest.param(answered(500), id="survives an error of the server"),
        pytest.param(dropped(Drop.BEFORE_APPLYING), id="survives a lost request"),
        pytest.param(dropped(Drop.AFTER_APPLYING), id="survives a lost answer"),
    ],
)
def test_binding_fault(
    embedded: Any,
    embedded_cluster: Any,
    binding_counts: Counter[tuple[str, str]],
    configuration: Configuration,
    lowtide_scheduler: Start,
    fault: Callable[[LocalCluster], None],
) -> None:
    embedded_cluster.create_node("tight", cpu="300m")  # room for the three pods and no more
    embedded.call(fault)
    lowtide_scheduler(configuration(), embedded_cluster.kubeconfig)
    for name in NAMES:
        embedded_cluster.create_pod(name, cpu="100m")
    for name in NAMES:
        embedded_cluster.wait_for_event(name, "Scheduled")
    assert binding_counts == dict.fromkeys([(name, "tight") for name in NAMES], 1)
    assert len(embedded.call(lambda cluster: cluster.faults.met)) == 3


def test_bindings_that_were_answered_but_not_applied_are_sent_again(
    embedded: Any,
    embedded_cluster: Any,
    binding_counts: Counter[tuple[str, str]],
    configuration: Configuration,
    lowtide_scheduler: Start,
) -> None:
    embedded_cluster.create_node("tight", cpu="300m")
    embedded.call(answered(201))
    lowtide_scheduler(configuration(), embedded_cluster.kubeconfig)
    for name in NAMES:
        embedded_cluster.create_pod(name, cpu="100m")
    for name in NAMES:
        embedded_cluster.wait_for_placement(name, CONFIRMED_WITHIN_SECONDS + PATIENCE_SECONDS)
    assert binding_counts == dict.fromkeys([(name, "tight") for name in NAMES], 1)
    for name in NAMES:
        (event,) = embedded_cluster.events(name, "FailedScheduling")
        assert event["note"].endswith("was answered with success, but the pod has no node")


def test_pod_deleted_while_it_is_bound_leaves_its_room_to_others(
    embedded: Any,
    embedded_cluster: Any,
    binding_counts: Counter[tuple[str, str]],
    configuration: Configuration,
    lowtide_scheduler: Start,
) -> None:
    embedded_cluster.create_node("tight", cpu="100m")
    embedded.call(lambda cluster: cluster.faults.delay("POST", "/binding", seconds=0.5))
    lowtide_scheduler(configuration(), embedded_cluster.kubeconfig)
    embedded_cluster.create_pod("doomed", cpu="100m")
    embedded_cluster.wait_for(
        lambda: bool(embedded.call(lambda cluster: cluster.faults.met)), what="the binding is sent"
    )
    embedded_cluster.delete_pod("doomed")
    embedded_cluster.create_pod("heir", cpu="100m")
    assert embedded_cluster.wait_for_placement("heir") == "tight"
    assert binding_counts == {("heir", "tight"): 1}


def test_open_bindings_are_finished_before_the_end(
    embedded: Any, embedded_cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    embedded_cluster.create_node("alone")
    embedded.call(lambda cluster: cluster.faults.delay("POST", "/binding", seconds=1.0))
    scheduler = lowtide_scheduler(configuration(), embedded_cluster.kubeconfig)
    embedded_cluster.create_pod("last")
    embedded_cluster.wait_for(
        lambda: bool(embedded.call(lambda cluster: cluster.faults.met)), what="the binding is sent"
    )
    assert embedded_cluster.node_of("last") is None
    scheduler.send(signal.SIGTERM)
    assert scheduler.wait(timeout_seconds=10) == 0
    assert embedded_cluster.node_of("last") == "alone"
    assert len(embedded_cluster.events("last", "Scheduled")) == 1
