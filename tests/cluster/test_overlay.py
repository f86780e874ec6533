"""Pods that are gone in thought, and come back one by one."""

import pytest

from lowtide.cluster.nodes import Nodes
from lowtide.cluster.pods_matching import PodSelection, labels_required
from lowtide.testing import make_node, make_pod, make_state

WEB = PodSelection.of(labels_required({"app": "web"}), namespaces=None, counts_terminating=True)


def emptied() -> Nodes:
    pods = [
        make_pod("a", on="n", cpu="1", memory="1Gi", labels={"app": "web"}, host_ports=[80]),
        make_pod("b", on="n", cpu="2"),
        make_pod("c", on="m", cpu="500m"),
    ]
    nodes = make_state([make_node("n"), make_node("m")], pods).nodes()
    return nodes.without({0: ["default/a", "default/b"]})


def seen(nodes: Nodes) -> list[list[int]]:
    """cpu, memory, pods, and what `imagined_matching` says of each node."""
    matching = nodes.imagined_matching(WEB)
    assert matching is not None
    columns = (nodes.requested("cpu"), nodes.requested("memory"), nodes.pod_count, matching)
    return [column.tolist() for column in columns]


@pytest.mark.parametrize(
    "is_asked_before",
    [
        pytest.param(False, id="nobody has asked before"),
        pytest.param(True, id="somebody has asked before, and it is remembered"),
    ],
)
def test_a_pod_that_returns_counts_again_where(is_asked_before: bool) -> None:
    nodes = emptied()
    if is_asked_before:
        assert seen(nodes) == [[0, 500], [0, 0], [0, 1], [-1, 0]]
    returned = nodes.returning({0: "default/a"})
    assert seen(returned) == [[1000, 500], [2**30, 0], [1, 1], [0, 0]]
    assert seen(returned.returning({0: "default/b"})) == [[3000, 500], [2**30, 0], [2, 1], [0, 0]]
    assert seen(nodes) == [[0, 500], [0, 0], [0, 1], [-1, 0]]


def test_it_is_there_again() -> None:
    returned = emptied().returning({0: "default/b"})
    assert [pod.name for pod in returned.pods(0)] == ["b"]
