"""HostPorts: which ports pods hold on each node, kept as pods and nodes come and go."""

import pytest

from lowtide.cluster.placed import HostPort
from lowtide.cluster.state import ClusterState
from lowtide.objects.pod import Pod
from lowtide.testing import make_node, make_pod, make_state

ANYWHERE, HERE, THERE = "0.0.0.0", "10.0.0.1", "10.0.0.2"


def holder(name: str, *, on: str, ip: str = ANYWHERE, port: int = 80) -> Pod:
    ports = [{"hostPort": port, "hostIP": ip}]
    return make_pod(name, on=on, spec={"containers": [{"name": "c", "ports": ports}]})


def used(state: ClusterState, ip: str = ANYWHERE) -> list[str]:
    nodes = state.nodes()
    uses = nodes.uses_port(HostPort("TCP", 80, ip))
    return [name for name, is_used in zip(nodes.names, uses, strict=True) if is_used]


@pytest.mark.parametrize(
    ("wanted", "nodes"),
    [
        pytest.param(ANYWHERE, ["a", "b", "c"], id="on 0.0.0.0 conflict with every address"),
        pytest.param(HERE, ["a", "b"], id="on one address conflict with it and with 0.0.0.0"),
        pytest.param("10.0.0.3", ["a"], id="on one address do not conflict with another"),
    ],
)
def test_host_ports(wanted: str, nodes: list[str]) -> None:
    held = {"a": ANYWHERE, "b": HERE, "c": THERE}
    pods = [holder(f"p-{name}", on=name, ip=ip) for name, ip in held.items()]
    state = make_state([make_node(name) for name in "abcd"], pods)
    assert used(state, wanted) == nodes


def test_a_column_is_kept_true_after_its_first_use() -> None:
    state = make_state([make_node(name) for name in "abc"])
    assert used(state) == []
    state.place(holder("p", on="a"))
    state.place(holder("q", on="a"))
    state.place(holder("r", on="c"))
    assert used(state) == ["a", "c"]
    state.remove_pod("default/p")
    assert used(state) == ["a", "c"]
    state.remove_pod("default/q")
    assert used(state) == ["c"]
    state.remove_node("a")
    assert used(state) == ["c"]


def test_pods_that_were_known_before_their_node_count_when_it_comes() -> None:
    state = make_state([make_node("a")], [holder("p", on="a"), holder("q", on="late")])
    assert used(state) == ["a"]
    state.add_node(make_node("late"))
    assert used(state) == ["a", "late"]
    state.remove_node("late")
    state.remove_pod("default/q")
    state.add_node(make_node("late"))
    assert used(state) == ["a"]


def test_a_table_that_grows_keeps_it() -> None:
    state = make_state([make_node("a")], [holder("p", on="a")])
    assert used(state) == ["a"]
    for number in range(3000):
        state.add_node(make_node(f"n{number}"))
    assert used(state) == ["a"]


def test_a_column_that_was_let_go_is_made_anew() -> None:
    pods = [holder(f"p{port}", on="a", port=port) for port in range(1, 601)]
    state = make_state([make_node("a")], pods)
    for port in (*range(1, 601), 1):
        assert state.nodes().uses_port(HostPort("TCP", port, ANYWHERE)).tolist() == [True]
    assert len(list(state.host_ports.columns)) == 512
