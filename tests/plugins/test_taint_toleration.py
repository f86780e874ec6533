"""TaintToleration: untolerated taints reject, those that only prefer lower the score."""

import pytest

from lowtide.objects.node import Node
from lowtide.plugins.taint_toleration import TaintToleration
from lowtide.testing import make_node, make_pod, make_state, place, rejections, scores


def taint(key: str, effect: str, value: str = "") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def nodes() -> list[Node]:
    return [
        make_node("clean"),
        make_node("no-schedule", taints=[taint("gpu", "NoSchedule", "a100")]),
        make_node("no-execute", taints=[taint("gpu", "NoExecute")]),
        make_node("prefers", taints=[taint("gpu", "PreferNoSchedule")]),
        make_node("both", taints=[taint("gpu", "PreferNoSchedule"), taint("disk", "NoSchedule")]),
    ]


@pytest.mark.parametrize(
    ("tolerations", "rejected"),
    [
        pytest.param(
            [], {"no-schedule", "no-execute", "both"}, id="rejects NoSchedule and NoExecute taints"
        ),
        pytest.param(
            [{"key": "gpu", "operator": "Exists"}], {"both"}, id="accepts tolerated taints"
        ),
        pytest.param(
            [{"key": "gpu", "value": "a100"}],
            {"no-execute", "both"},
            id="compares the value",
        ),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}],
            {"no-execute"},
            id="compares the effect without a key",
        ),
        pytest.param(
            [{"operator": "Exists"}],
            set(),
            id="accepts all nodes for a pod that tolerates everything",
        ),
    ],
)
def test_filter(tolerations: list[dict[str, str]], rejected: set[str]) -> None:
    found = rejections(TaintToleration(), make_pod(tolerations=tolerations), make_state(nodes()))
    assert found == {name: ["node(s) had untolerated taint(s)"] for name in rejected}


def preferring() -> list[Node]:
    return [
        make_node("none"),
        make_node("one", taints=[taint("a", "PreferNoSchedule")]),
        make_node("three", taints=[taint(key, "PreferNoSchedule") for key in ("a", "b", "c")]),
        make_node("hard", taints=[taint("a", "NoSchedule")]),
    ]


@pytest.mark.parametrize(
    ("tolerations", "raw"),
    [
        pytest.param([], [0, 1, 3, 0], id="counts PreferNoSchedule taints"),
        pytest.param(
            [{"key": "a", "operator": "Exists", "effect": "PreferNoSchedule"}],
            [0, 0, 2, 0],
            id="does not count tolerated taints",
        ),
        pytest.param(
            [{"key": "b", "operator": "Exists"}],
            [0, 1, 2, 0],
            id="uses tolerations for any effect",
        ),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}],
            [0, 1, 3, 0],
            id="ignores tolerations for NoSchedule and NoExecute",
        ),
    ],
)
def test_score(tolerations: list[dict[str, str]], raw: list[int]) -> None:
    state = make_state(preferring())
    found = scores(TaintToleration(), make_pod(tolerations=tolerations), state)
    assert found == dict(zip(["none", "one", "three", "hard"], raw, strict=True))


def test_fewer_is_better() -> None:
    decision = place([TaintToleration()], make_pod(), preferring())
    # 100 - 0, 100 - 1*100//3, 100 - 3*100//3; the hard one is rejected
    assert {each.node_name: each.total for each in decision.best} == {
        "none": 100,
        "one": 67,
        "three": 0,
    }


def test_without_such_taints_all_are_equally_good() -> None:
    decision = place([TaintToleration()], make_pod(), [make_node("a"), make_node("b")])
    assert {each.node_name: each.total for each in decision.best} == {"a": 100, "b": 100}


def test_evicting_does_not_help() -> None:
    (found,) = TaintToleration().filter(make_pod(), make_state(nodes()).nodes())
    assert not found.eviction_helps
