"""What the plugins say of pods that others place."""

import numpy as np
import pytest
from tests.scheduler.conftest import all_listed, default_plugins

from lowtide.framework.plugin import Nodes, OneNode, Pod, Rejection, filter_each
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.node import Node
from lowtide.scheduler.shadow import Agreement, Shadow, Shadowed
from lowtide.testing import make_node, make_pod, make_profile


class Breaks:
    name = "Breaks"

    def filter(self, pod: Pod, nodes: object) -> list[Rejection]:
        if pod.labels.get("breaks"):
            raise ValueError("on purpose")
        return []


def shadow_of(*nodes: Node, is_synced: bool = True) -> Shadow:
    shadow = Shadow({"lowtide": make_profile([*default_plugins(), Breaks()])})
    for node in nodes:
        shadow.step(Added(node), 0.0)
    for event in all_listed() if is_synced else ():
        shadow.step(event, 0.0)
    return shadow


def placed_by_another(shadow: Shadow, pod: Pod, node_name: str) -> Shadowed | None:
    assert shadow.step(Added(pod), 1.0) is None
    return shadow.step(Modified(on(pod, node_name)), 2.0)


def on(pod: Pod, node_name: str) -> Pod:
    return make_pod(pod.name, on=node_name, requests=pod.spec.containers[0].resources.requests)


@pytest.mark.parametrize(
    ("pod", "node_name", "agreement", "would_be_on"),
    [
        pytest.param(
            make_pod("web", cpu="1"), "roomy", Agreement.SAME, "roomy", id="on the same node"
        ),
        pytest.param(
            make_pod("web", cpu="1"),
            "small",
            Agreement.DIFFERENT,
            "roomy",
            id="on a node with a lower score",
        ),
        pytest.param(
            make_pod("web", cpu="3"),
            "small",
            Agreement.REJECTED,
            "roomy",
            id="on a node that a plugin rejects",
        ),
        pytest.param(
            make_pod("web", cpu="99"),
            "small",
            Agreement.NOWHERE,
            "small",
            id="though it fits no node",
        ),
        pytest.param(
            make_pod("web", labels={"breaks": "yes"}),
            *("small", Agreement.FAILED, "small"),
            id="while a plugin fails",
        ),
    ],
)
def test_a_pod_that_another_placed(
    pod: Pod, node_name: str, agreement: Agreement, would_be_on: str
) -> None:
    shadow = shadow_of(make_node("roomy", cpu="8"), make_node("small", cpu="2"))
    found = placed_by_another(shadow, pod, node_name)
    assert found is not None
    assert (found.agreement, found.would_be_on) == (agreement, would_be_on)


def test_of_equal_nodes_each_is_as_good() -> None:
    found = [
        placed_by_another(shadow_of(make_node("a"), make_node("b")), make_pod("web"), node_name)
        for node_name in ("a", "b")
    ]
    told = {(each.agreement, each.would_be_on) for each in found if each is not None}
    assert told in (
        {(Agreement.SAME, "a"), (Agreement.AS_GOOD, "b")},
        {(Agreement.AS_GOOD, "a"), (Agreement.SAME, "b")},
    )


def test_a_pod_counts_where_it_is_and_not_where_it_would_be() -> None:
    shadow = shadow_of(make_node("roomy", cpu="8"), make_node("small", cpu="2"))
    found = placed_by_another(shadow, make_pod("first", cpu="1"), "small")
    assert found is not None
    assert (found.total, found.best_total) != (None, None)
    assert list(shadow.state.placed_on("small")) == ["default/first"]
    assert not shadow.state.placed_on("roomy")
    shadow.step(Deleted(make_pod("first", on="small")), 3.0)
    assert not shadow.state.placed_on("small")


def test_what_was_there_before_or_was_never_seen_waiting_is_not_compared() -> None:
    shadow = shadow_of(make_node("a"), is_synced=False)
    assert placed_by_another(shadow, make_pod("early"), "a") is None
    for event in all_listed():
        shadow.step(event, 1.0)
    assert shadow.step(Added(make_pod("static", on="a")), 2.0) is None
    found = placed_by_another(shadow, make_pod("later"), "a")
    assert found is not None
    assert shadow.step(Modified(make_pod("later", on="a", labels={"new": "label"})), 3.0) is None
    assert len(shadow.queue) == 0


def test_a_promise_of_the_other_scheduler_does_not_count() -> None:
    shadow = shadow_of(make_node("roomy", cpu="8"), make_node("small", cpu="2"))
    promised = make_pod("web", cpu="1", nominated="small")
    found = placed_by_another(shadow, promised, "small")
    assert found is not None
    assert found.agreement is Agreement.DIFFERENT


def test_with_several_profiles_each_pod_is_judged_by_its_own() -> None:
    class Only:
        def __init__(self, name: str, node_name: str) -> None:
            self.name = name
            self._node_name = node_name

        @filter_each
        def filter(self, pod: Pod, node: OneNode) -> str | None:
            return None if node.name == self._node_name else "node(s) are another's"

    shadow = Shadow(
        {name: make_profile([*default_plugins(), Only("Only", name)], name=name) for name in "ab"}
    )
    for node_name in "ab":
        shadow.step(Added(make_node(node_name)), 0.0)
    for event in all_listed():
        shadow.step(event, 0.0)
    for scheduler_name, chosen in (("a", "a"), ("b", "b"), ("unknown", "a")):
        pod = make_pod(f"of-{scheduler_name}", scheduler_name=scheduler_name)
        found = placed_by_another(shadow, pod, chosen)
        assert found is not None
        assert found.agreement is Agreement.SAME


def test_a_rejection_gives_way_to_a_pod_that_has_waited() -> None:
    class Patient:
        name = "Patient"

        def filter(self, pod: Pod, nodes: Nodes) -> list[Rejection]:
            everywhere = np.ones(len(nodes), np.bool_)
            return [Rejection(everywhere, "node(s) are hot", gives_way_after=30.0)]

    def placed_after(seconds: float) -> Agreement:
        shadow = Shadow({"lowtide": make_profile([*default_plugins(), Patient()])})
        for event in (Added(make_node("a")), *all_listed()):
            shadow.step(event, 0.0)
        shadow.step(Added(make_pod("web")), 100.0)
        found = shadow.step(Modified(make_pod("web", on="a")), 100.0 + seconds)
        assert found is not None
        return found.agreement

    assert placed_after(60.0) is Agreement.SAME
    assert placed_after(1.0) is Agreement.NOWHERE


def test_who_looks_at_a_pod_is_told_what_would_be_and_changes_nothing() -> None:
    shadow = shadow_of(make_node("roomy", cpu="8"), make_node("small", cpu="2"))
    placed_by_another(shadow, make_pod("web", cpu="1"), "small")
    found = shadow.decided_now(make_pod("web", cpu="1"), 3.0)
    assert (found.node_name, len(found.best)) == ("roomy", 2)
    assert [each.pod.name for each in shadow.state.placed_on("small").values()] == ["web"]
    rejection = shadow.rejection_of(make_pod("big", cpu="3"), "small")
    assert rejection is not None
    assert (rejection.plugin, rejection.reasons) == ("NodeResourcesFit", ("Insufficient cpu",))
    held = shadow.gate_of(make_pod("held", gates=["example.com/wait"]))
    assert held is not None
    assert (held[0], shadow.binding_count) == ("SchedulingGates", None)
