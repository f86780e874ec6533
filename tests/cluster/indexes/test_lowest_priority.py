"""The lowest priority on each row, as pods and nodes come and go."""

from lowtide.cluster.indexes.pod_totals import NO_PODS
from lowtide.testing import make_node, make_pod, make_state


def test_it_is_that_of_the_pod_that_matters_least() -> None:
    pods = [make_pod("a", on="n", priority=7), make_pod("b", on="n", priority=-3)]
    state = make_state([make_node("n"), make_node("empty")], pods)
    assert state.nodes().lowest_priority.tolist() == [-3, NO_PODS]


def test_it_rises_when_that_pod_goes() -> None:
    pods = [make_pod("a", on="n", priority=7), make_pod("b", on="n", priority=-3)]
    state = make_state([make_node("n")], pods)
    state.remove_pod("default/b")
    assert state.nodes().lowest_priority.tolist() == [7]
    state.remove_pod("default/a")
    assert state.nodes().lowest_priority.tolist() == [NO_PODS]


def test_it_stays_when_another_goes() -> None:
    pods = [make_pod("a", on="n", priority=7), make_pod("b", on="n", priority=-3)]
    state = make_state([make_node("n")], pods)
    state.remove_pod("default/a")
    assert state.nodes().lowest_priority.tolist() == [-3]


def test_a_node_that_comes_late_has_that_of_the_pods_known_before() -> None:
    state = make_state([make_node("n")], [make_pod("a", on="late", priority=7)])
    state.add_node(make_node("late"))
    assert state.nodes().lowest_priority.tolist() == [NO_PODS, 7]


def test_it_moves_with_its_row() -> None:
    state = make_state([make_node("n"), make_node("last")], [make_pod("a", on="last", priority=7)])
    state.remove_node("n")
    assert (state.names, state.nodes().lowest_priority.tolist()) == (["last"], [7])


def test_in_thought_too() -> None:
    state = make_state([make_node("n"), make_node("m")], [make_pod("a", on="n", priority=7)])
    nodes = state.nodes().without({0: ["default/a"]}).with_pods({1: [make_pod(priority=2)]})
    assert nodes.lowest_priority.tolist() == [NO_PODS, 2]


def test_a_priority_is_no_larger_than_the_api_allows() -> None:
    pods = [make_pod("a", on="n", priority=10**30), make_pod("b", on="m", priority=-(10**30))]
    state = make_state([make_node("n"), make_node("m"), make_node("empty")], pods)
    assert state.nodes().lowest_priority.tolist() == [2**31 - 1, -(2**31), NO_PODS]
