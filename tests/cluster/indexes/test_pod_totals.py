"""Columns of resources: made when asked for, kept true, none for what nobody has."""

import numpy as np
import pytest

from lowtide.cluster.state import ClusterState
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import LARGEST
from lowtide.testing import make_node, make_pod, make_state

GPU = "example.com/gpu"


def with_gpus(name: str, on: str, count: int = 1) -> Pod:
    return make_pod(name, on=on, cpu="1", requests={GPU: count})


def cluster() -> ClusterState:
    nodes = [make_node("a", example_com__gpu=4), make_node("b"), make_node("c", example_com__gpu=2)]
    return make_state(nodes, [with_gpus("one", "a"), with_gpus("lost", "unknown", 3)])


def gpus(state: ClusterState) -> dict[str, tuple[int, int]]:
    """By node: how many there are, and how many are asked for."""
    nodes = state.nodes()
    columns = zip(nodes.allocatable(GPU).tolist(), nodes.requested(GPU).tolist(), strict=True)
    return dict(zip(nodes.names, columns, strict=True))


def test_columns_are_made_of_what_there_is() -> None:
    assert gpus(cluster()) == {"a": (4, 1), "b": (0, 0), "c": (2, 0)}


def test_columns_are_kept_true() -> None:
    state = cluster()
    gpus(state)
    state.update_node(make_node("a"))
    state.update_node(make_node("b", example_com__gpu=8))
    state.place(with_gpus("two", "b", 2))
    state.assume(with_gpus("three", ""), "c")
    assert gpus(state) == {"a": (0, 1), "b": (8, 2), "c": (2, 1)}
    state.add_node(make_node("unknown", example_com__gpu=5))
    state.remove_node("a")
    state.forget("default/three")
    assert gpus(state) == {"unknown": (5, 3), "b": (8, 2), "c": (2, 0)}
    state.remove_pod("default/one")
    state.add_node(make_node("a", example_com__gpu=1))
    assert gpus(state) == {"unknown": (5, 3), "b": (8, 2), "c": (2, 0), "a": (1, 0)}


def test_what_pods_request_stays_true_while_the_table_grows_and_shrinks() -> None:
    state = make_state([], [make_pod("huge", on="0", cpu=str(LARGEST)), make_pod("more", on="0")])
    for number in range(200):  # more than the first columns have room for
        state.add_node(make_node(str(number)))
        state.place(make_pod(f"pod-{number}", on=str(number), cpu=f"{number + 1}m"))
    assert state.nodes().requested("cpu").tolist() == [LARGEST, *range(2, 201)]
    state.remove_pod("default/huge")
    for number in range(150, 200):
        state.remove_node(str(number))
    assert state.nodes().requested("cpu").tolist() == list(range(1, 151))
    assert state.nodes().nonzero_requested("cpu").tolist()[:2] == [101, 2]


def columns_of(state: ClusterState) -> int:
    return len(list(state.pod_totals.requested)) + len(list(state.allocatable_amounts.amounts))


def test_what_no_pod_asks_for_needs_no_column() -> None:
    state = cluster()
    for number in range(1000):
        assert state.nodes().requested(f"example.com/{number}").tolist() == [0, 0, 0]
    assert columns_of(state) == 0


def test_a_column_goes_with_the_last_pod_that_asks() -> None:
    state = cluster()
    state.nodes().requested(GPU)
    assert columns_of(state) == 1
    state.remove_pod("default/one")
    assert columns_of(state) == 1
    state.remove_pod("default/lost")
    assert columns_of(state) == 0
    assert state.nodes().requested(GPU).tolist() == [0, 0, 0]


def test_no_more_columns_are_kept_than_there_is_room_for() -> None:
    amounts = {f"example_com__{number}": number for number in range(600)}
    state = make_state([make_node("a", **amounts)])
    found = [int(state.nodes().allocatable(f"example.com/{n}")[0]) for n in range(600)]
    assert (found, columns_of(state)) == (list(range(600)), 512)
    state.update_node(make_node("a", example_com__0=7, example_com__599=8))
    table = state.nodes()
    assert [int(table.allocatable(f"example.com/{n}")[0]) for n in (0, 1, 599)] == [7, 0, 8]


def test_whether_all_nodes_have_a_resource_follows_the_nodes() -> None:
    state = make_state([make_node("a", example_com__gpu=4), make_node("b", example_com__gpu=1)])
    assert state.nodes().all_have(GPU)
    state.update_node(make_node("b"))
    assert not state.nodes().all_have(GPU)
    state.remove_node("b")
    assert state.nodes().all_have(GPU)
    state.add_node(make_node("c"))
    assert not state.nodes().take(np.array([0])).all_have(GPU)  # it is about the whole table


@pytest.mark.parametrize(
    "gpus",
    [
        pytest.param("-1", id="is below zero"),
        pytest.param("many", id="cannot be parsed"),
    ],
)
def test_a_node_stays_usable_if_one_allocatable_amount(gpus: str) -> None:
    state = make_state([make_node("a", cpu="2", example_com__gpu=gpus), make_node("b")])
    nodes = state.nodes()
    assert nodes.allocatable(GPU).tolist() == [0, 0]
    assert nodes.allocatable("cpu").tolist() == [2000, 4000]
    assert state.clamped_counts == {"node": 1, "pod": 0}
    state.update_node(make_node("a"))
    assert state.clamped_counts == {"node": 0, "pod": 0}


def test_pods_that_ask_for_more_than_64_bits_hold() -> None:
    pods = [make_pod(f"p{number}", on="a", memory=LARGEST) for number in range(3)]
    state = make_state([make_node("a"), make_node("b")], [*pods, make_pod("small", on="a")])
    nodes = state.nodes()
    assert nodes.requested("memory").tolist() == [LARGEST, 0]
    assert nodes.nonzero_requested("memory").tolist() == [LARGEST, 0]
    assert state.clamped_counts == {"node": 0, "pod": 3}
    state.remove_node("b")
    for pod in pods:
        state.remove_pod(pod.uid)
    assert state.nodes().requested("memory").tolist() == [0]
    assert state.nodes().nonzero_requested("memory").tolist() == [200 * 2**20]
    assert state.clamped_counts == {"node": 0, "pod": 0}
