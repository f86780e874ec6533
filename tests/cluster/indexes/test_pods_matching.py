"""How many pods on each row match a selector: true when first asked for, and after every change."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from lowtide.cluster.indexes.pods_matching import PodsMatching
from lowtide.cluster.pod_selection import (
    PodSelection,
    labels_required,
    requirements_of,
)
from lowtide.cluster.state import ClusterState
from lowtide.cluster.table import Table
from lowtide.objects.meta import LabelRequirement, LabelSelector
from lowtide.objects.pod import Pod
from lowtide.testing import make_node, make_pod, make_state


def selecting(
    *requirements: LabelRequirement,
    namespaces: Iterable[str] | None = ("default",),
    counts_terminating: bool = False,
    **labels: str,
) -> PodSelection:
    return PodSelection.from_requirements(
        [*requirements, *labels_required(labels)],
        namespaces=namespaces,
        counts_terminating=counts_terminating,
    )


def web(name: str, on: str, app: str = "web", *, deleted: bool = False) -> Pod:
    return make_pod(name, on=on, labels={"app": app, "tier": "front"}, deleted=deleted)


def cluster() -> ClusterState:
    nodes = [make_node("a"), make_node("b"), make_node("c")]
    pods = [
        web("web-1", "a"),
        web("web-2", "a"),
        web("web-3", "c"),
        web("old", "b", deleted=True),
        web("db", "b", "db"),
        make_pod("plain", on="c"),
        make_pod("abroad", namespace="other", on="c", labels={"app": "web"}),
        web("nowhere", "unknown"),
    ]
    return make_state(nodes, pods)


def counts(state: ClusterState, selection: PodSelection) -> dict[str, int]:
    nodes = state.nodes()
    return dict(zip(nodes.names, nodes.pods_matching(selection).tolist(), strict=True))


@pytest.mark.parametrize(
    ("selection", "counted"),
    [
        pytest.param(selecting(app="web"), "aac", id="counts pods with the label"),
        pytest.param(selecting(app="web", tier="front"), "aac", id="requires every label"),
        pytest.param(selecting(app="db"), "b", id="requires the value"),
        pytest.param(selecting(app="no"), "", id="is 0 without a match"),
        pytest.param(
            selecting(LabelRequirement("app", "In", ["web", "db"])), "aabc", id="reads In"
        ),
        pytest.param(selecting(LabelRequirement("app", "NotIn", ["web"])), "bc", id="reads NotIn"),
        pytest.param(
            selecting(LabelRequirement("app", "DoesNotExist")), "c", id="reads DoesNotExist"
        ),
        pytest.param(
            selecting(LabelRequirement("app", "Exists"), tier="front"),
            "aabc",
            id="requires both labels and expressions",
        ),
        pytest.param(selecting(), "aabcc", id="counts every pod for an empty selector"),
        pytest.param(
            selecting(app="web", namespaces=["other"]), "c", id="counts in one namespace only"
        ),
        pytest.param(
            selecting(app="web", namespaces=["other", "default"]),
            "aacc",
            id="counts in several namespaces",
        ),
        pytest.param(selecting(app="web", namespaces=None), "aacc", id="counts in all namespaces"),
        pytest.param(
            selecting(app="web", namespaces=[]), "", id="is 0 for an empty list of namespaces"
        ),
        pytest.param(
            selecting(app="web", counts_terminating=True), "aabc", id="counts terminating pods too"
        ),
    ],
)
def test_a_column(selection: PodSelection, counted: str) -> None:
    state = cluster()
    expected = {name: counted.count(name) for name in "abc"}
    assert counts(state, selection) == expected
    assert counts(state, selection) == expected  # kept, not counted twice


WEB = selecting(app="web")


def another_comes(state: ClusterState) -> None:
    state.place(web("web-4", "b"))


def one_is_assumed(state: ClusterState) -> None:
    state.assume(web("web-4", ""), "b")


def an_assumption_is_taken_back(state: ClusterState) -> None:
    state.assume(web("web-4", ""), "b")
    state.forget("default/web-4")


def one_goes(state: ClusterState) -> None:
    state.remove_pod("default/web-1")


def one_is_being_deleted(state: ClusterState) -> None:
    state.place(web("web-1", "a", deleted=True))


def one_gets_another_label(state: ClusterState) -> None:
    state.place(web("web-1", "a", "db"))


def one_gets_the_label(state: ClusterState) -> None:
    state.place(web("db", "b"))


def one_elsewhere_comes(state: ClusterState) -> None:
    state.place(make_pod("more", namespace="other", on="b", labels={"app": "web"}))


def the_unknown_node_comes(state: ClusterState) -> None:
    state.add_node(make_node("unknown"))


def a_node_goes(state: ClusterState) -> None:
    state.remove_node("a")


def a_node_goes_and_comes_back(state: ClusterState) -> None:
    state.remove_node("a")
    state.remove_pod("default/web-1")
    state.add_node(make_node("a"))


def many_nodes_come(state: ClusterState) -> None:
    for number in range(100):
        state.add_node(make_node(f"more-{number}"))
    for number in range(100):
        state.remove_node(f"more-{number}")


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        pytest.param(another_comes, {"a": 2, "b": 1, "c": 1}, id="a pod is added"),
        pytest.param(one_is_assumed, {"a": 2, "b": 1, "c": 1}, id="a pod is assumed"),
        pytest.param(
            an_assumption_is_taken_back, {"a": 2, "b": 0, "c": 1}, id="an assumed pod is forgotten"
        ),
        pytest.param(one_goes, {"a": 1, "b": 0, "c": 1}, id="a pod is removed"),
        pytest.param(
            one_is_being_deleted, {"a": 1, "b": 0, "c": 1}, id="a pod starts to terminate"
        ),
        pytest.param(one_gets_another_label, {"a": 1, "b": 0, "c": 1}, id="a pod loses the label"),
        pytest.param(one_gets_the_label, {"a": 2, "b": 1, "c": 1}, id="a pod gets the label"),
        pytest.param(
            one_elsewhere_comes, {"a": 2, "b": 0, "c": 1}, id="a pod is added in another namespace"
        ),
        pytest.param(
            the_unknown_node_comes,
            {"a": 2, "b": 0, "c": 1, "unknown": 1},
            id="the node of a known pod is added",
        ),
        pytest.param(
            a_node_goes, {"c": 1, "b": 0}, id="a node is removed and another takes its row"
        ),
        pytest.param(
            a_node_goes_and_comes_back,
            {"c": 1, "b": 0, "a": 1},
            id="a node comes back with fewer pods",
        ),
        pytest.param(many_nodes_come, {"a": 2, "b": 0, "c": 1}, id="the table grows"),
    ],
)
def test_a_column_follows_when(
    happens: Callable[[ClusterState], None], expected: dict[str, int]
) -> None:
    state = cluster()
    counts(state, WEB)
    happens(state)
    assert counts(state, WEB) == expected
    fresh = cluster()
    happens(fresh)
    assert counts(fresh, WEB) == expected


def test_columns_that_share_a_label_are_told_apart() -> None:
    state = cluster()
    selections = [
        selecting(app="web"),
        selecting(app="db"),
        selecting(tier="front"),
        selecting(app="web", tier="front"),
        selecting(LabelRequirement("tier", "Exists")),
        selecting(app="web", namespaces=None),
    ]
    for selection in selections:
        counts(state, selection)
    state.place(web("new", "b"))
    assert [counts(state, selection)["b"] for selection in selections] == [1, 1, 2, 1, 2, 1]


def test_the_least_recently_used_column_is_dropped() -> None:
    matching = PodsMatching(Table())
    first, second = matching[WEB], matching[selecting(app="db")]
    for number in range(510):
        matching[selecting(app=f"app-{number}")]
    assert matching[WEB] is first
    matching[selecting(app="one too many")]
    assert len(list(matching.columns)) == 512
    assert matching[WEB] is first
    assert matching[selecting(app="db")] is not second


def test_a_column_that_was_dropped_is_kept_true_no_more() -> None:
    state = cluster()
    before = state.pods_matching[WEB].array
    for number in range(512):
        counts(state, selecting(app="web", number=str(number)))
    another_comes(state)
    assert before.tolist()[:3] == [2, 0, 1]
    assert counts(state, WEB) == {"a": 2, "b": 1, "c": 1}


def test_in_whatever_order_requirements_come_they_share_a_column() -> None:
    first = selecting(LabelRequirement("x", "Exists"), app="web", tier="front")
    second = PodSelection.from_requirements(
        requirements_of(
            LabelSelector({"tier": "front", "app": "web"}, [LabelRequirement("x", "Exists")])
        ),
        namespaces={"default"},
        counts_terminating=False,
    )
    assert (first, hash(first)) == (second, hash(second))
    assert first != selecting(LabelRequirement("x", "Exists"), app="web")


def test_a_face_with_pods_added_and_removed_counts_them() -> None:
    nodes = cluster().nodes().take(np.array([2, 0, 1], np.intp))  # c, a, b
    thought = nodes.with_pods({0: [web("new", ""), web("db-2", "", "db")]}).without(
        {1: ["default/web-1", "default/not-here"], 2: ["default/old"]}
    )
    assert nodes.pods_matching(WEB).tolist() == [1, 2, 0]
    assert thought.pods_matching(WEB).tolist() == [2, 1, 0]
    hypothetical = thought.hypothetical_matching(WEB)
    assert hypothetical is not None
    assert hypothetical.tolist() == [1, -1, -1]  # the terminating pod on b too
    assert nodes.hypothetical_matching(WEB) is None
    assert thought.everything.pods_matching(WEB).tolist() == [2, 0, 1]
