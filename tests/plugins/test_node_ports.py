"""NodePorts: a host port can be held once per protocol and address on a node."""

from typing import Any

import pytest

from lowtide.objects.pod import Pod
from lowtide.plugins.node_ports import NodePorts
from lowtide.testing import make_node, make_pod, make_state, rejections

REJECTED = {"a": ["node(s) didn't have free ports for the requested pod ports"]}


def with_ports(name: str, *ports: dict[str, Any], on: str = "") -> Pod:
    return make_pod(name, on=on, spec={"containers": [{"name": "c", "ports": list(ports)}]})


def port(number: int, protocol: str = "TCP", ip: str = "") -> dict[str, Any]:
    return {"hostPort": number, "protocol": protocol, "hostIP": ip}


@pytest.mark.parametrize(
    ("wanted", "rejected"),
    [
        pytest.param([], {}, id="accepts a pod without ports"),
        pytest.param([{"containerPort": 80}], {}, id="accepts a port that is not a host port"),
        pytest.param([port(80)], REJECTED, id="rejects a used port"),
        pytest.param([port(81)], {}, id="accepts another port"),
        pytest.param([port(80, "UDP")], {}, id="accepts another protocol"),
        pytest.param(
            [port(80, ip="10.0.0.1")],
            REJECTED,
            id="rejects one address if the port is used on all addresses",
        ),
        pytest.param(
            [port(53, "UDP")], REJECTED, id="rejects all addresses if the port is used on one"
        ),
        pytest.param([port(53, "UDP", "10.0.0.1")], REJECTED, id="rejects the same address"),
        pytest.param([port(53, "UDP", "10.0.0.2")], {}, id="accepts another address"),
        pytest.param([port(81), port(80)], REJECTED, id="rejects if one of two ports is used"),
    ],
)
def test_filter(wanted: list[dict[str, Any]], rejected: dict[str, list[str]]) -> None:
    held = with_ports("held", port(80), port(53, "UDP", "10.0.0.1"), on="a")
    state = make_state([make_node("a"), make_node("b")], [held])
    assert rejections(NodePorts(), with_ports("p", *wanted), state) == rejected


def test_a_sidecar_holds_and_wants_ports() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [port(80)]}
    initial = {"name": "i", "ports": [port(80)]}
    holds = make_pod("holds", on="a", spec={"initContainers": [sidecar]})
    held_before = make_pod("before", on="b", spec={"initContainers": [initial]})
    state = make_state([make_node("a"), make_node("b")], [holds, held_before])
    wants = make_pod("p", spec={"initContainers": [sidecar]})
    assert rejections(NodePorts(), wants, state) == REJECTED


def test_evicting_who_holds_the_port_helps() -> None:
    state = make_state([make_node("a")], [with_ports("held", port(80), on="a")])
    (found,) = NodePorts().filter(with_ports("p", port(80)), state.nodes())
    assert found.eviction_helps
