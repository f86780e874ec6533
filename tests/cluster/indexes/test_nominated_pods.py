"""Which of the nominated pods take precedence over a pod, as nominations come and go."""

from typing import Any

import pytest

from lowtide.cluster.state import ClusterState
from lowtide.testing import make_node, make_pod, make_state


def cluster(**nominated: Any) -> ClusterState:
    """Nodes a, b and c, and pods with a priority and a node."""
    state = make_state([make_node(name) for name in "abc"])
    for name, (priority, node_name) in nominated.items():
        state.nominate(make_pod(name, cpu="1", priority=priority), node_name)
    return state


def preceding(state: ClusterState, **pod: Any) -> dict[str, list[str]]:
    """By node, of a pod of priority 5."""
    found = state.nominated_pods.preceding(make_pod(**{"priority": 5, **pod}))
    if found is None:
        return {}
    nodes = found.with_them(state.nodes())
    assert nodes.rows.tolist() == found.rows.tolist()
    by_node = {
        name: [pod.name for pod in nodes.pods(position)]
        for position, name in enumerate(nodes.names)
    }
    assert by_node == {
        state.names[row]: [placed.pod.name for placed in pods] for row, pods in found.by_row.items()
    }
    assert nodes.requested("cpu").tolist() == [1000 * len(pods) for pods in by_node.values()]
    return by_node


@pytest.mark.parametrize(
    ("state", "want"),
    [
        pytest.param(cluster(), {}, id="no pods if none is nominated"),
        pytest.param(cluster(x=(4, "a")), {}, id="no pods of lower priority"),
        pytest.param(
            cluster(x=(5, "a"), y=(9, "c")),
            {"a": ["x"], "c": ["y"]},
            id="pods of equal and higher priority",
        ),
        pytest.param(
            cluster(x=(9, "b"), y=(1, "b"), z=(5, "b")),
            {"b": ["x", "z"]},
            id="only some pods of a node",
        ),
        pytest.param(
            cluster(pod=(5, "a"), y=(5, "a")), {"a": ["y"]}, id="other pods, but not the pod itself"
        ),
        pytest.param(cluster(pod=(5, "a")), {}, id="no pods if only the pod itself is nominated"),
        pytest.param(
            cluster(x=(5, "unknown"), y=(5, "c")), {"c": ["y"]}, id="only pods on known nodes"
        ),
    ],
)
def test_precedence_over_a_pod_have(state: ClusterState, want: dict[str, list[str]]) -> None:
    assert preceding(state) == want


def test_changes_are_seen() -> None:
    state = cluster(x=(5, "a"), y=(5, "a"))
    assert preceding(state) == {"a": ["x", "y"]}
    state.nominate(make_pod("y", cpu="1", priority=5), "b")
    assert preceding(state) == {"a": ["x"], "b": ["y"]}
    state.nominate(make_pod("y", cpu="1", priority=1), "b")
    assert preceding(state) == {"a": ["x"]}
    state.drop_nomination("default/x")
    assert preceding(state) == {}
    state.add_node(make_node("late"))
    state.nominate(make_pod("z", cpu="1", priority=5), "late")
    assert preceding(state) == {"late": ["z"]}
    state.remove_node("a")
    assert preceding(state) == {"late": ["z"]}
    assert preceding(state, priority=6) == {}


def test_a_pod_that_moves_between_nodes_with_others_is_seen() -> None:
    state = cluster(x=(5, "a"), y=(5, "a"), z=(5, "b"))
    assert preceding(state) == {"a": ["x", "y"], "b": ["z"]}
    for name, node_name in (("y", "b"), ("z", "b")):
        state.nominate(make_pod(name, cpu="1", priority=5), node_name)
    assert preceding(state) == {"a": ["x"], "b": ["y", "z"]}


def test_what_a_pod_takes_is_worked_out_once() -> None:
    state = cluster(x=(5, "a"))
    pod = make_pod(priority=5)
    before = state.nominated_pods.preceding(pod)
    state.nominate(make_pod("y", priority=5), "b")
    after = state.nominated_pods.preceding(pod)
    assert before is not None
    assert after is not None
    assert after.by_row[0][0] is before.by_row[0][0]
