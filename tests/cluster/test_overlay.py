"""Pods that are gone hypothetically, and come back one by one."""

import numpy as np
import pytest

from lowtide.cluster.nodes import Nodes
from lowtide.cluster.overlay import Overlays, hypothetical_pod
from lowtide.cluster.placed import PlacedPod
from lowtide.cluster.pod_selection import PodSelection, labels_required
from lowtide.objects.quantity import LARGEST
from lowtide.testing import make_node, make_pod, make_state

WEB = PodSelection.from_requirements(
    labels_required({"app": "web"}), namespaces=None, counts_terminating=True
)


def emptied() -> Nodes:
    pods = [
        make_pod("a", on="n", cpu="1", memory="1Gi", labels={"app": "web"}, host_ports=[80]),
        make_pod("b", on="n", cpu="2"),
        make_pod("c", on="m", cpu="500m"),
    ]
    nodes = make_state([make_node("n"), make_node("m")], pods).nodes()
    return nodes.without({0: ["default/a", "default/b"]})


def seen(nodes: Nodes) -> list[list[int]]:
    """cpu, memory, pods, and what `hypothetical_matching` says of each node."""
    matching = nodes.hypothetical_matching(WEB)
    assert matching is not None
    columns = (nodes.requested("cpu"), nodes.requested("memory"), nodes.pod_count, matching)
    return [column.tolist() for column in columns]


@pytest.mark.parametrize(
    "is_asked_before",
    [
        pytest.param(False, id="no amounts are cached"),
        pytest.param(True, id="amounts are cached"),
    ],
)
def test_a_pod_that_returns_counts_again_where(is_asked_before: bool) -> None:
    nodes = emptied()
    if is_asked_before:
        assert seen(nodes) == [[0, 500], [0, 0], [0, 1], [-1, 0]]
    returned = nodes.restoring(np.array([0]))
    assert seen(returned) == [[1000, 500], [2**30, 0], [1, 1], [0, 0]]
    assert seen(returned.restoring(np.array([1]))) == [[3000, 500], [2**30, 0], [2, 1], [0, 0]]
    assert seen(nodes) == [[0, 500], [0, 0], [0, 1], [-1, 0]]


def test_it_is_there_again() -> None:
    returned = emptied().restoring(np.array([1]))
    assert [pod.name for pod in returned.pods(0)] == ["b"]


def test_it_can_go_once_more() -> None:
    nodes = emptied()
    returned = nodes.restoring(np.array([0, 1]))
    assert seen(returned.without({0: ["default/b", "default/a"]})) == seen(nodes)


def test_pods_of_several_rows_are_counted_in_the_order_in_which_they_were_taken_away() -> None:
    nodes = emptied().restoring(np.array([0, 1])).without({1: ["default/c"]})
    taken = nodes.take(np.array([1, 0]))
    assert seen(taken) == [[0, 3000], [0, 2**30], [0, 2], [0, 0]]
    assert seen(taken.restoring(np.array([2]))) == [[500, 3000], [0, 2**30], [1, 2], [0, 0]]


def test_a_pod_that_comes_beside_those_that_went_is_counted_with_what_is_remembered() -> None:
    nodes = emptied()
    assert seen(nodes) == [[0, 500], [0, 0], [0, 1], [-1, 0]]
    more = nodes.with_pods({1: [make_pod("new", cpu="7", labels={"app": "web"})]})
    assert seen(more) == [[0, 7500], [0, 0], [0, 2], [-1, 1]]
    assert seen(more.restoring(np.array([0]))) == [[1000, 7500], [2**30, 0], [1, 2], [0, 1]]


def test_a_pod_is_asked_only_once_what_it_counts_for() -> None:
    asked: list[str] = []

    def amount(placed: PlacedPod) -> int:
        asked.append(placed.pod.name)
        return 1

    nothing = Overlays.none(2)
    overlays = nothing.adding({0: [hypothetical_pod(make_pod("a"))]})
    more = overlays.adding({1: [hypothetical_pod(make_pod("b"))]})
    assert overlays.change("column", amount).tolist() == [1, 0]
    assert more.change("column", amount).tolist() == [1, 1]
    assert more.restoring(np.array([0])).change("column", amount).tolist() == [0, 1]
    assert asked == ["a", "b"]


def test_copies_of_a_pod_count_like_as_many_pods() -> None:
    state = make_state([make_node("a"), make_node("b"), make_node("c")])
    state.place(make_pod("here", on="b", cpu="250m"))
    pod, nodes = make_pod("new", cpu="2", labels={"app": "web"}), state.nodes()
    copies = nodes.with_copies(hypothetical_pod(pod), np.array([0, 1, 3]))
    one_by_one = nodes.with_pods({1: [pod], 2: [pod, pod, pod]})
    assert seen(copies) == seen(one_by_one)
    assert [len(copies.pods(at)) for at in range(3)] == [0, 2, 3]
    assert [len(copies.take(np.array([2, 0])).pods(at)) for at in range(2)] == [3, 0]
    assert list(copies.hypothetical_pods()) == [(1, pod, 1), (2, pod, 3)]


def test_pods_whose_amounts_add_up_to_more_than_64_bits_hold() -> None:
    pods = [make_pod(name, on="n", memory=LARGEST) for name in "abc"]
    pods.append(make_pod("small", on="n", memory=5))
    nodes = make_state([make_node("n"), make_node("m")], pods).nodes()

    def memory(nodes: Nodes) -> list[int]:
        return nodes.requested("memory").tolist()

    assert memory(nodes.without({0: ["default/a", "default/b"]})) == [LARGEST, 0]
    emptied = nodes.without({0: ["default/a", "default/b", "default/c"]})
    assert memory(emptied) == [5, 0]
    assert memory(emptied.restoring(np.array([0]))) == [LARGEST, 0]
    assert memory(nodes.with_pods({1: [make_pod(memory=LARGEST)] * 3})) == [LARGEST, LARGEST]
    copies = nodes.with_copies(hypothetical_pod(make_pod(memory=2**62)), np.array([0, 3]))
    assert memory(copies) == [LARGEST, LARGEST]
