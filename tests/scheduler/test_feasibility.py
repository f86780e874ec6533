"""What is left of the nodes for a pod when others are promised some of them."""

from typing import Any

import pytest

from lowtide.framework.verdict_cache import VerdictCache
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.scheduler.feasibility import feasibility
from lowtide.testing import make_node, make_pod, make_profile, make_state

FULL = make_pod("full", on="a", cpu="1")


@pytest.mark.parametrize(
    ("nominated", "feasible", "promised", "is_narrowed"),
    [
        pytest.param({}, ["b", "c"], [], False, id="no pod is nominated"),
        pytest.param(
            {"cpu": "1"}, ["b", "c"], ["a"], False, id="the node is full without the nominated pod"
        ),
        pytest.param(
            {"at": "b", "cpu": "1"},
            ["c"],
            ["b"],
            True,
            id="the node would be full with the nominated pod",
        ),
        pytest.param(
            {"at": "b", "cpu": "500m"}, ["b", "c"], [], False, id="the node has room for both pods"
        ),
        pytest.param(
            {"at": "b", "cpu": "1", "priority": -1},
            ["b", "c"],
            [],
            False,
            id="the nominated pod has lower priority",
        ),
    ],
)
def test_a_promise_takes_a_node_away_where(
    nominated: dict[str, Any], feasible: list[str], promised: list[str], is_narrowed: bool
) -> None:
    state = make_state([make_node(name, cpu="1") for name in "abc"], [FULL])
    if nominated:
        more = dict(nominated)
        state.nominate(
            make_pod("other", **{k: more[k] for k in more if k != "at"}), more.get("at", "a")
        )
    pod = make_pod(cpu="500m")
    verdict = VerdictCache(
        make_profile([NodeResourcesFit(NodeResourcesFitArgs())]), state
    ).verdict_on(pod)
    fit = feasibility(pod, verdict, waited_seconds=0.0)
    assert [state.names[row] for row in fit.feasible.nonzero()[0]] == feasible
    assert [state.names[row] for row in fit.rejected] == promised
    assert fit.is_narrowed is is_narrowed
