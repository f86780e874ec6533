"""Builders: each argument lands where a user would have written it."""

import math

import msgspec
import numpy as np

from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.testing import make_node, make_pod, make_reading, make_state


def test_a_node_by_default() -> None:
    wanted = {
        "metadata": {"name": "a", "labels": {"kubernetes.io/hostname": "a"}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": 110}},
    }
    assert make_node("a") == msgspec.convert(wanted, Node)


def test_a_node_in_full() -> None:
    node = make_node(
        "a",
        cpu=2,
        memory="1Gi",
        pods=5,
        labels={"zone": "x"},
        taints=[{"key": "t", "effect": "NoSchedule"}],
        unschedulable=True,
        addresses=["10.0.0.1"],
        annotations={"speed": "1"},
        example_com__gpu=3,
    )
    wanted = {
        "metadata": {
            "name": "a",
            "labels": {"kubernetes.io/hostname": "a", "zone": "x"},
            "annotations": {"speed": "1"},
        },
        "spec": {"unschedulable": True, "taints": [{"key": "t", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": 2, "memory": "1Gi", "pods": 5, "example.com/gpu": 3},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }
    assert node == msgspec.convert(wanted, Node)


def test_a_pod_by_default() -> None:
    wanted = {
        "metadata": {"name": "p", "namespace": "default", "uid": "default/p"},
        "spec": {"containers": [{"name": "main"}], "schedulerName": "lowtide"},
        "status": {"phase": "Pending"},
    }
    assert make_pod("p") == msgspec.convert(wanted, Pod)


def test_a_pod_in_full() -> None:
    pod = make_pod(
        "p",
        namespace="prod",
        uid="1",
        on="a",
        cpu="1",
        memory="1Gi",
        requests={"example.com/gpu": 1},
        labels={"app": "web"},
        annotations={"note": "x"},
        node_selector={"zone": "x"},
        tolerations=[{"operator": "Exists"}],
        host_ports=[80],
        priority=7,
        scheduler_name="other",
        gates=["g"],
        nominated="b",
        phase="Running",
        deleted=True,
        spec={"hostNetwork": True},
    )
    wanted = {
        "metadata": {
            "name": "p",
            "namespace": "prod",
            "uid": "1",
            "labels": {"app": "web"},
            "annotations": {"note": "x"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "resources": {"requests": {"example.com/gpu": 1, "cpu": "1", "memory": "1Gi"}},
                    "ports": [{"hostPort": 80, "containerPort": 80}],
                }
            ],
            "nodeName": "a",
            "nodeSelector": {"zone": "x"},
            "tolerations": [{"operator": "Exists"}],
            "priority": 7,
            "schedulerName": "other",
            "schedulingGates": [{"name": "g"}],
            "hostNetwork": True,
        },
        "status": {"phase": "Running", "nominatedNodeName": "b"},
    }
    assert pod == msgspec.convert(wanted, Pod)


def test_an_explicit_zero_is_kept() -> None:
    assert make_pod(cpu=0, memory=0).spec.containers[0].resources.requests == {
        "cpu": 0,
        "memory": 0,
    }


def test_a_state_has_its_nodes_and_pods() -> None:
    state = make_state([make_node("a"), make_node("b")], [make_pod("p", on="b")])
    nodes = state.nodes()
    assert (nodes.names, nodes.pod_count.tolist()) == (("a", "b"), [0, 1])


def test_a_reading_of_plain_fields() -> None:
    reading = make_reading({"a": {"x": 1.0}, "b": {"x": 2.0, "y": 3.0}}, {"x": 9.0})
    assert (reading.names, reading.of_others, reading.expects) == (("a", "b"), {"x": 9.0}, None)
    np.testing.assert_equal(
        {name: column.tolist() for name, column in reading.columns.items()},
        {"x": [1.0, 2.0], "y": [math.nan, 3.0]},
    )
