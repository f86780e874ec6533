"""Which affinity terms placed pods carry, and where: true after every change."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from lowtide.cluster.affinity_terms import Purpose
from lowtide.cluster.state import ClusterState
from lowtide.objects.pod import Pod
from lowtide.testing import make_node, make_pod, make_state

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"
MANY = [f"node-{number}" for number in range(40)]  # enough for a column

Found = dict[tuple[Purpose, int, str], dict[str, int]]


def away(name: str, on: str, app: str = "web", key: str = HOSTNAME) -> Pod:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    affinity = {"podAntiAffinity": {REQUIRED: [term]}}
    return make_pod(name, on=on, labels={"app": app}, spec={"affinity": affinity})


def found(state: ClusterState, **labels: str) -> Found:
    """By purpose, weight and topology key: on which nodes how many pods carry the term."""
    nodes = state.nodes()
    return {
        (each.purpose, each.weight, each.term.topology_key): {
            name: count
            for name, count in zip(nodes.names, nodes.pods_carrying(each).tolist(), strict=True)
            if count
        }
        for each in nodes.terms_about(make_pod(labels=labels))
    }


def away_from_web(**counts: int) -> Found:
    return {(Purpose.REJECTS, 0, HOSTNAME): counts}


def cluster() -> ClusterState:
    nodes = [make_node("a"), make_node("b"), make_node("c")]
    pods = [away("one", "a"), away("two", "a"), away("three", "c"), away("lost", "unknown")]
    return make_state(nodes, pods)


def test_pods_with_the_same_term_are_counted_together() -> None:
    assert found(cluster(), app="web") == away_from_web(a=2, c=1)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param(lambda s: s.place(away("four", "b")), {"a": 2, "b": 1, "c": 1}, id="is added"),
        pytest.param(lambda s: s.assume(away("four", ""), "c"), {"a": 2, "c": 2}, id="is assumed"),
        pytest.param(lambda s: s.remove_pod("default/one"), {"a": 1, "c": 1}, id="is removed"),
        pytest.param(
            lambda s: s.place(away("one", "b")),
            {"a": 1, "b": 1, "c": 1},
            id="moves to another node",
        ),
        pytest.param(lambda s: s.remove_node("a"), {"c": 1}, id="loses its node"),
        pytest.param(
            lambda s: s.add_node(make_node("unknown")),
            {"a": 2, "c": 1, "unknown": 1},
            id="is placed before its node is added",
        ),
    ],
)
def test_a_pod(change: Callable[[ClusterState], Any], left: dict[str, int]) -> None:
    state = cluster()
    change(state)
    assert found(state, app="web") == away_from_web(**left)


def test_a_term_that_nobody_carries_any_more_is_forgotten() -> None:
    state = cluster()
    for name in ("one", "two", "three", "lost"):
        state.remove_pod(f"default/{name}")
    assert found(state, app="web") == {}


def test_a_term_on_many_nodes_is_kept_as_a_column_through_changes() -> None:
    state = make_state(map(make_node, MANY), [away(name, name) for name in MANY])
    assert len(found(state, app="web")[Purpose.REJECTS, 0, HOSTNAME]) == len(MANY)
    assert len(list(state.existing_terms.columns)) == 1
    state.remove_node("node-3")  # node-39 moves into its row
    state.remove_pod("default/node-5")
    state.place(away("more", "node-39"))
    state.add_node(make_node("node-3"))
    want = dict.fromkeys(MANY, 1) | {"node-39": 2}
    del want["node-5"]
    assert found(state, app="web") == {(Purpose.REJECTS, 0, HOSTNAME): want}


@pytest.mark.parametrize("seed", range(5))
def test_a_column_is_true_after_any_changes(seed: int) -> None:
    chance = random.Random(seed)
    state = make_state(map(make_node, MANY), [away(f"{name}-0", name) for name in MANY])
    found(state, app="web")
    for number in range(400):
        name = chance.choice(MANY)
        match chance.choice(["pod comes", "pod goes", "node comes", "node goes"]):
            case "pod comes":
                state.place(away(f"pod-{number}", name))
            case "pod goes":
                state.remove_pod(f"default/{name}-0")
                state.remove_pod(f"default/pod-{number // 2}")
            case "node comes":
                state.add_node(make_node(name))
            case "node goes":
                state.remove_node(name)
        table = state.nodes()
        pods_on = {each: len(table.pods(at)) for at, each in enumerate(table.names)}
        want = {each: count for each, count in pods_on.items() if count}
        assert found(state, app="web") == {(Purpose.REJECTS, 0, HOSTNAME): want}
    assert len(list(state.existing_terms.columns)) == 1


def test_a_column_grows_with_the_table() -> None:
    state = make_state(map(make_node, MANY), [away(name, name) for name in MANY])
    found(state, app="web")
    for number in range(200):
        state.add_node(make_node(f"late-{number}"))
    state.place(away("more", "late-199"))
    want = dict.fromkeys([*MANY, "late-199"], 1)
    assert found(state, app="web") == {(Purpose.REJECTS, 0, HOSTNAME): want}


def test_terms_differ_by_purpose_weight_and_key() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {
        "podAffinity": {
            REQUIRED: [term],
            PREFERRED: [
                {"weight": 5, "podAffinityTerm": term},
                {"weight": 5, "podAffinityTerm": term},
                {"weight": 5, "podAffinityTerm": {**term, "topologyKey": HOSTNAME}},
            ],
        },
        "podAntiAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": term}]},
    }
    state = make_state([make_node("a")], [make_pod(on="a", spec={"affinity": affinity})])
    assert found(state, app="web") == {
        (Purpose.ATTRACTS, 0, "zone"): {"a": 1},
        (Purpose.WEIGHS, 5, "zone"): {"a": 2},
        (Purpose.WEIGHS, 5, HOSTNAME): {"a": 1},
        (Purpose.WEIGHS, -5, "zone"): {"a": 1},
    }
    state.remove_pod("default/pod")
    assert found(state, app="web") == {}


@pytest.mark.parametrize(
    ("selector", "labels", "is_found"),
    [
        pytest.param(
            {"matchLabels": {"app": "web"}}, {"app": "web"}, True, id="is found by its label"
        ),
        pytest.param(
            {"matchLabels": {"app": "web"}},
            {"app": "db"},
            False,
            id="is not found by another label",
        ),
        pytest.param({"matchLabels": {"app": "web"}}, {}, False, id="is not found without a label"),
        pytest.param({}, {}, True, id="with an empty selector is found without a label"),
        pytest.param(
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b", "b"]}]},
            {"app": "b"},
            True,
            id="is found by one of several values",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]},
            {"app": "a"},
            True,
            id="that requires no value is found by any label",
        ),
        pytest.param(None, {"app": "web"}, False, id="without a selector is not found"),
    ],
)
def test_a_term(selector: Any, labels: dict[str, str], is_found: bool) -> None:
    term = {"topologyKey": "zone", "labelSelector": selector}
    if selector is None:
        del term["labelSelector"]
    spec = {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
    state = make_state([make_node("a")], [make_pod(on="a", spec=spec)])
    assert bool(found(state, **labels)) is is_found


def test_what_is_imagined_is_told_by_position() -> None:
    state = cluster()
    new = away("new", "")
    face = state.nodes().with_pods({1: [new]}).without({0: ["default/one", "default/three"]})
    assert [(at, pod.name, times) for at, pod, times in face.hypothetical_pods()] == [
        (1, "new", 1),
        (0, "one", -1),
    ]
    assert list(state.nodes().hypothetical_pods()) == []
