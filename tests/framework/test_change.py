"""A Change: what the machine says happened, what plugins are asked of it, and whom it wakes."""

import pytest

from lowtide.cluster.changes import (
    ANY_ROW,
    FIRST_KIND,
    LABELS,
    NODE,
    NODES,
    OTHERS,
    PODS,
    READING,
    ROW,
    TAKEN,
    TERMS,
)
from lowtide.cluster.placed import PlacedPod, footprint_of
from lowtide.framework.change import (
    NEW_NODE,
    OBJECTS,
    READING_PUBLISHED,
    Change,
    changes_by_binding,
    node_change,
    nomination_dropped,
    object_change,
    pod_change,
    wakes_on,
)
from lowtide.objects.kinds import Namespace
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.testing import make_node, make_pod

PLAIN = make_node()
TAINTED = make_node(taints=[{"key": "k", "effect": "NoSchedule"}])
CORDONED = make_node(unschedulable=True)


@pytest.mark.parametrize(
    ("before", "after", "what", "event", "is_of_taints"),
    [
        pytest.param(None, PLAIN, NEW_NODE | ROW | NODES | OTHERS, "NodeAdd", False, id="comes"),
        pytest.param(PLAIN, None, NODES | OTHERS, "NodeDelete", False, id="goes"),
        pytest.param(
            TAINTED, PLAIN, ROW | NODES | OTHERS, "NodeUpdateNodeTaint", True, id="loses a taint"
        ),
        pytest.param(
            CORDONED, PLAIN, ROW | NODES | OTHERS, "NodeUpdateNodeTaint", True, id="is uncordoned"
        ),
        pytest.param(PLAIN, CORDONED, NODE | NODES | OTHERS, "NodeUpdate", False, id="is cordoned"),
        pytest.param(
            PLAIN,
            make_node(cpu="8"),
            NODE | NODES | OTHERS,
            "NodeUpdateNodeAllocatable",
            False,
            id="grows",
        ),
        pytest.param(
            PLAIN,
            make_node(labels={"a": "b"}),
            NODE | NODES | OTHERS,
            "NodeUpdateNodeLabel",
            False,
            id="gets a label",
        ),
        pytest.param(
            PLAIN,
            make_node(annotations={"a": "b"}),
            NODE | NODES | OTHERS,
            "NodeUpdateNodeAnnotation",
            False,
            id="gets an annotation",
        ),
        pytest.param(
            PLAIN,
            make_node(declared_features=["A"]),
            NODE | NODES | OTHERS,
            "NodeUpdateNodeDeclaredFeature",
            False,
            id="declares a feature",
        ),
    ],
)
def test_what_is_said_of_a_node_that(
    before: Node | None, after: Node | None, what: int, event: str, is_of_taints: bool
) -> None:
    assert node_change(before, after) == Change(what, event, before, after, is_of_taints)


def placed(pod: Pod, *, is_assumed: bool = False) -> PlacedPod:
    return PlacedPod(pod, pod.spec.node_name or "node-a", footprint_of(pod), is_assumed)


PENDING, POD = make_pod(cpu="1"), make_pod(cpu="1", on="node-a")
ELSEWHERE = make_pod(cpu="1", on="node-b")
SMALLER, LABELLED = make_pod(on="node-a"), make_pod(cpu="1", on="node-a", labels={"a": "b"})
COMES = Change(OTHERS, "AssignedPodAdd", None, POD)


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        pytest.param(None, POD, [COMES], id="comes"),
        pytest.param(placed(PENDING, is_assumed=True), POD, [COMES], id="was assumed there"),
        pytest.param(placed(POD), POD, [], id="was there"),
        pytest.param(
            placed(POD),
            SMALLER,
            [Change(PODS | OTHERS | READING, "AssignedPodUpdate", POD, SMALLER)],
            id="has shrunk",
        ),
        pytest.param(
            placed(POD),
            LABELLED,
            [Change(PODS | OTHERS | READING, "AssignedPodUpdatePodLabel", POD, LABELLED)],
            id="has another label",
        ),
        pytest.param(
            placed(ELSEWHERE, is_assumed=True),
            POD,
            [Change(PODS | OTHERS | READING, "AssignedPodDelete", ELSEWHERE), COMES],
            id="was assumed elsewhere",
        ),
        pytest.param(
            placed(LABELLED, is_assumed=True),
            POD,
            [
                COMES,
                Change(PODS | OTHERS | READING, "AssignedPodUpdatePodLabel", LABELLED, POD),
            ],
            id="was assumed to be another",
        ),
    ],
)
def test_what_is_said_of_a_bound_pod_that(
    before: PlacedPod | None, after: Pod, want: list[Change]
) -> None:
    assert list(changes_by_binding(before, placed(after))) == want


def test_a_pod_that_goes_makes_room() -> None:
    gone = Change(PODS | OTHERS | READING, "AssignedPodDelete", POD)
    assert pod_change(POD, None) == gone


def test_a_dropped_promise_helps_only_those_that_matter_no_more() -> None:
    pod = make_pod(priority=7)
    want = Change(PODS | READING, "AssignedPodDelete", pod, highest_priority=7)
    assert nomination_dropped(pod) == want


def test_other_objects_are_called_by_their_kind() -> None:
    one, other = Namespace(ObjectMeta(name="a")), Namespace(ObjectMeta(name="a", labels={"b": "c"}))
    assert [object_change(None, one), object_change(one, other), object_change(one, None)] == [
        Change(OBJECTS, "NamespaceAdd", None, one),
        Change(OBJECTS, "NamespaceUpdate", one, other),
        Change(OBJECTS, "NamespaceDelete", one),
    ]


@pytest.mark.parametrize(
    ("before", "after", "is_new", "is_over"),
    [
        pytest.param(None, 1, True, False, id="is added and meets the condition"),
        pytest.param(None, 0, False, False, id="is added and does not meet it"),
        pytest.param(0, 1, True, False, id="starts to meet it"),
        pytest.param(1, 1, False, False, id="met it and still does"),
        pytest.param(1, 0, False, True, id="stops meeting it"),
        pytest.param(1, None, False, True, id="met it and is removed"),
        pytest.param(0, None, False, False, id="did not meet it and is removed"),
    ],
)
def test_what_is_new_and_what_is_over_where_a_thing(
    before: int | None, after: int | None, is_new: bool, is_over: bool
) -> None:
    change = Change(NODE, "", before, after)
    assert (change.is_new(bool), change.is_over(bool)) == (is_new, is_over)


NAMESPACE = Namespace(ObjectMeta(name="a"))
HAPPENS = {
    "a node comes": node_change(None, PLAIN),
    "a node goes": node_change(PLAIN, None),
    "a node changes": node_change(PLAIN, make_node(labels={"a": "b"})),
    "a pod comes": pod_change(None, POD),
    "a pod goes": pod_change(POD, None),
    "a promise is dropped": nomination_dropped(POD),
    "an object comes": object_change(None, NAMESPACE),
    "a reading is published": READING_PUBLISHED,
}
PODS_GO = {"a pod goes", "a promise is dropped"}


@pytest.mark.parametrize(
    ("touched", "wakes"),
    [
        pytest.param(0, {"a node comes"}, id="touched nothing: only by a new node"),
        pytest.param(NODE, {"a node comes", "a node changes"}, id="touched the node"),
        pytest.param(
            TAKEN,
            {*HAPPENS} - {"an object comes", "a reading is published"},
            id="touched what the pods on a node take",
        ),
        pytest.param(
            LABELS,
            {*HAPPENS} - {"an object comes", "a reading is published"},
            id="touched the labels of a node's pods",
        ),
        pytest.param(
            READING,
            {"a node comes", *PODS_GO, "a reading is published"},
            id="touched the reading of a node",
        ),
        pytest.param(
            NODES, {"a node comes", "a node goes", "a node changes"}, id="touched all nodes"
        ),
        pytest.param(
            OTHERS,
            {"a node comes", "a node goes", "a node changes", "a pod comes", "a pod goes"},
            id="touched the pods of all nodes",
        ),
        pytest.param(
            TERMS << ANY_ROW,
            {"a node comes", "a node goes", "a node changes", "a pod comes", "a pod goes"},
            id="touched the terms of all pods",
        ),
        pytest.param(
            READING << ANY_ROW,
            {*HAPPENS} - {"an object comes"},
            id="touched the readings of all nodes",
        ),
        pytest.param(
            FIRST_KIND, {"a node comes", "an object comes"}, id="touched objects of the first kind"
        ),
        pytest.param(
            FIRST_KIND << 9,
            {"a node comes", "an object comes"},
            id="touched objects of another kind",
        ),
    ],
)
def test_a_pod_is_woken_where_the_plugin_that_rejected_it(touched: int, wakes: set[str]) -> None:
    occasions = wakes_on(touched)
    assert {name for name, change in HAPPENS.items() if occasions & change.what} == wakes
