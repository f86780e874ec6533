"""What the auditor of the fault suite objects to: each fault is planted once."""

from collections.abc import Mapping
from typing import Any

import pytest

from faults.auditor import (
    BOUND,
    EXPECTED,
    MOST_EVENTS_TAKEN,
    MOST_ON_THE_WIRE,
    WAITS,
    Auditor,
    Binding,
    Leadership,
    Life,
    Missing,
)
from faults.following import take_request
from faults.workload import POOL, make_node, make_pod
from lowtide.kube.kube_events import MOST_GIVING_WAY, TAKEN_AT_ONCE
from lowtide.scheduler.live import MOST_BINDINGS_IN_FLIGHT

NOW = 1000.0
COMMON, KEPT = "node-1", "node-0"
PLAIN, SELECTING, TOLERATING, ALIKE = 0, 1, 3, 5  # numbers of pods, which say their kind
UNSCHEDULABLE = 99


@pytest.fixture
def auditor() -> Auditor:
    auditor = Auditor()
    for number in range(3):
        auditor.saw_node({"spec": {}, **make_node(number)})
    return auditor


def pod(number: int, *, on: str = "", uid: str = "", **status: Any) -> dict[str, Any]:
    made = make_pod("web", number)
    made["metadata"] |= {"namespace": "default", "uid": uid or f"u-{number}"}
    if on:
        made["spec"]["nodeName"] = on
    return made | {"status": status}


def alike(number: int, on: str) -> dict[str, Any]:
    """Another pod of the same group."""
    return pod(ALIKE, on=on, uid=f"alike-{number}")


def test_what_is_right_is_not_objected_to(auditor: Auditor) -> None:
    auditor.saw_pods([pod(PLAIN), pod(SELECTING), pod(TOLERATING), pod(ALIKE)], NOW)
    auditor.saw_pod(pod(PLAIN, on=COMMON), NOW + 1)
    auditor.saw_pod(pod(PLAIN, on=COMMON), NOW + 2)
    auditor.saw_pod(pod(SELECTING, on=COMMON), NOW + 3)
    auditor.saw_pod(pod(TOLERATING, on=KEPT), NOW + 4)
    auditor.saw_pod(pod(ALIKE, on=COMMON), NOW + 5)
    auditor.saw_binding(Binding("u-0", COMMON, "one", NOW + 1))
    assert (auditor.violations, auditor.double_bindings, auditor.overcommitted_nodes) == (
        [],
        set(),
        set(),
    )
    assert (auditor.pod_count, auditor.bound_count, auditor.unbound()) == (4, 4, set())
    assert auditor.first_bound_after(NOW + 1) == NOW + 3


def test_a_pod_that_moves_is_a_double_binding(auditor: Auditor) -> None:
    auditor.saw_pod(pod(PLAIN, on="node-1"), NOW)
    auditor.saw_pod(pod(PLAIN, on="node-2"), NOW + 1)
    assert auditor.double_bindings == {"u-0"}
    assert auditor.violations == ["pod default/web-0: it was on node-1 and is on node-2"]


def test_two_accepted_bindings_of_one_pod_are_a_double_binding(auditor: Auditor) -> None:
    auditor.saw_binding(Binding("u-0", "node-1", "one", NOW))
    auditor.saw_binding(Binding("u-0", "node-2", "two", NOW + 1, was_accepted=False))
    assert auditor.double_bindings == set()
    auditor.saw_binding(Binding("u-0", "node-2", "two", NOW + 2))
    assert auditor.double_bindings == {"u-0"}


def test_a_node_with_one_pod_too_many_is_overcommitted(auditor: Auditor) -> None:
    for number in range(8):  # of 500m each, on 4 cores
        auditor.saw_pod(pod(PLAIN, on=COMMON, uid=f"u-{number}"), NOW)
    assert auditor.overcommitted_nodes == set()
    auditor.saw_pod(pod(PLAIN, on=COMMON, uid="u-8"), NOW)
    assert auditor.overcommitted_nodes == {COMMON}
    assert auditor.violations == ["the pods on node-1 ask for 4.5 of its 4 cpu"]


def test_room_of_a_pod_that_went_is_free_again(auditor: Auditor) -> None:
    for number in range(8):
        auditor.saw_pod(pod(PLAIN, on=COMMON, uid=f"u-{number}"), NOW)
    auditor.pod_gone("u-0")
    auditor.saw_pod(pod(PLAIN, on=COMMON, uid="u-8"), NOW)
    assert auditor.overcommitted_nodes == set()


@pytest.mark.parametrize(
    ("pods", "sentence"),
    [
        pytest.param(
            [pod(SELECTING, on=KEPT)],
            f"it is on {KEPT}, but it selects {POOL}=common, the node has kept",
            id="a pod on a node without the label that it selects",
        ),
        pytest.param(
            [pod(PLAIN, on=KEPT)],
            f"it is on {KEPT}, but it does not tolerate {POOL}=kept",
            id="a pod on a node whose taint it does not tolerate",
        ),
        pytest.param(
            [alike(1, COMMON), alike(2, COMMON)],
            f"it is on {COMMON}, but it and web-5 keep away from each other",
            id="two pods on one node that keep away from each other",
        ),
        pytest.param(
            [pod(PLAIN, on="node-9")], "it is on node-9, which is no node", id="a pod on no node"
        ),
    ],
)
def test_the_auditor_objects_to(
    auditor: Auditor, pods: list[Mapping[str, Any]], sentence: str
) -> None:
    for each in pods:
        auditor.saw_pod(each, NOW)
    assert any(violation.endswith(sentence) for violation in auditor.violations)


def test_a_pod_that_is_never_bound_is_told(auditor: Auditor) -> None:
    auditor.saw_pod(pod(PLAIN), NOW)
    assert (auditor.unbound(), auditor.has_seen(["u-0"])) == ({"u-0"}, True)
    assert not auditor.has_seen(["u-0", "u-1"])
    auditor.saw_pods([], NOW)
    assert auditor.unbound() == set()


def test_an_unschedulable_pod_needs_its_condition(auditor: Auditor) -> None:
    auditor.saw_pod(pod(UNSCHEDULABLE), NOW)
    assert (auditor.unbound(), auditor.without_condition()) == (set(), {"u-99"})
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    auditor.saw_pod(pod(UNSCHEDULABLE, conditions=[condition]), NOW)
    assert auditor.without_condition() == set()


def test_only_a_killed_process_is_excused_for_an_event(auditor: Auditor) -> None:
    for number in range(4):
        auditor.saw_pod(pod(PLAIN, on=COMMON, uid=f"u-{number}"), NOW)
    auditor.saw_pod(pod(UNSCHEDULABLE), NOW)
    auditor.saw_binding(Binding("u-0", COMMON, "one", NOW))
    auditor.saw_binding(Binding("u-1", COMMON, "one", NOW + 10, was_accepted=False))
    auditor.saw_binding(Binding("u-2", COMMON, "one", NOW + 20))
    auditor.saw_binding(Binding("u-3", COMMON, "two", NOW + 10))
    auditor.saw_event({"reason": "Scheduled", "involvedObject": {"uid": "u-0"}})
    lives = [
        Life("one", NOW - 1, NOW + 11, ended_abruptly=True),
        Life("one", NOW + 12, NOW + 30, ended_abruptly=False),
        Life("two", NOW - 1, NOW + 30, ended_abruptly=False),
    ]
    assert auditor.without_event(lives) == Missing(after_kill={"u-1"}, lost={"u-2", "u-3", "u-99"})
    auditor.saw_event({"reason": "FailedScheduling", "involvedObject": {"uid": "u-99"}})
    assert auditor.without_event(lives).lost == {"u-2", "u-3"}


def test_what_is_excused_is_what_there_can_be() -> None:
    """The auditor shares no code with the scheduler, and tells such numbers by itself."""
    assert MOST_EVENTS_TAKEN == MOST_GIVING_WAY + TAKEN_AT_ONCE
    assert MOST_ON_THE_WIRE == MOST_BINDINGS_IN_FLIGHT


def test_a_killed_process_is_excused_for_so_many_events() -> None:
    auditor = Auditor(most_events_taken=2)
    auditor.saw_node({"spec": {}, **make_node(1)})
    for number in range(3):
        auditor.saw_pod(pod(PLAIN, on=COMMON, uid=f"u-{number}"), NOW)
        auditor.saw_binding(Binding(f"u-{number}", COMMON, "one", NOW))
    missing = auditor.without_event([Life("one", NOW - 1, NOW + 1, ended_abruptly=True)])
    assert missing == Missing(after_kill={"u-0", "u-1"}, lost={"u-2"})


@pytest.mark.parametrize(
    "user",
    [
        pytest.param("two", id="another replica"),
        pytest.param("one", id="the same one, started again"),
    ],
)
def test_a_lease_is_taken_over_by(auditor: Auditor, user: str) -> None:
    before = Leadership("one", "host_1", NOW)
    after = Leadership(user, "host_2", NOW + 15)
    auditor.saw_leadership(before)
    auditor.saw_binding(Binding("u-0", COMMON, "one", NOW + 1))
    assert auditor.takeover_after(NOW + 2) is None
    auditor.saw_binding(Binding("u-1", COMMON, "one", NOW + 2.1))  # was on the wire
    auditor.saw_leadership(after)
    assert auditor.takeover_after(NOW + 2) is None
    bound = Binding("u-2", COMMON, user, NOW + 15.2)
    auditor.saw_binding(bound)
    assert auditor.takeover_after(NOW + 2) == (after, bound)


def test_bindings_of_a_former_leader_are_counted(auditor: Auditor) -> None:
    auditor.saw_leadership(Leadership("one", "host_1", NOW))
    auditor.saw_binding(Binding("u-0", COMMON, "one", NOW + 1))
    auditor.saw_leadership(Leadership("two", "host_2", NOW + 20))
    auditor.saw_binding(Binding("u-1", COMMON, "two", NOW + 21))
    assert auditor.bindings_of_former_leaders() == {}
    auditor.saw_binding(Binding("u-2", COMMON, "one", NOW + 22))
    assert auditor.bindings_of_former_leaders() == {"one": 1}


@pytest.mark.parametrize(
    ("late", "began_at", "want"),
    [
        pytest.param(MOST_ON_THE_WIRE, NOW, [], id="not to what was on the wire"),
        pytest.param(
            MOST_ON_THE_WIRE + 1,
            NOW,
            ["thawed: 33 bindings of one were accepted after another one led"],
            id="to one more",
        ),
        pytest.param(MOST_ON_THE_WIRE + 1, NOW + 30, [], id="once, in the trial of that leader"),
    ],
)
def test_it_objects(auditor: Auditor, late: int, began_at: float, want: list[str]) -> None:
    auditor.saw_leadership(Leadership("one", "host_1", NOW))
    auditor.saw_leadership(Leadership("two", "host_2", NOW + 20))
    for number in range(late):
        auditor.saw_binding(Binding(f"u-{number}", COMMON, "one", NOW + 22))
    auditor.object_to_former_leaders("thawed", began_at)
    assert auditor.violations == want


def audited(resource: str, sent: Mapping[str, Any], code: int, **about: str) -> dict[str, Any]:
    return {
        "stage": "ResponseComplete",
        "user": {"username": "one"},
        "objectRef": {"resource": resource, **about},
        "requestObject": sent,
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": "1970-01-01T00:16:40.500000Z",
    }


def test_the_audit_log_tells_of_bindings_and_leaders(auditor: Auditor) -> None:
    binding = {"metadata": {"uid": "u-0"}, "target": {"name": COMMON}}
    take_request(auditor, audited("pods", binding, 201, subresource="binding"))
    take_request(auditor, audited("pods", binding, 409, subresource="binding"))
    held = {"holderIdentity": "host_1", "acquireTime": "1970-01-01T00:16:40.000000Z"}
    take_request(auditor, audited("leases", {"spec": held}, 200))
    take_request(auditor, audited("leases", {"spec": held | {"holderIdentity": ""}}, 200))
    take_request(auditor, audited("leases", {"spec": held | {"holderIdentity": "x"}}, 409))
    assert auditor.bindings == [Binding("u-0", COMMON, "one", NOW + 0.5)]
    assert auditor.leaderships == [Leadership("one", "host_1", NOW)]


def test_the_workload_says_what_is_to_become_of_each_pod() -> None:
    expected = [make_pod("web", number)["metadata"]["labels"][EXPECTED] for number in range(100)]
    assert (expected[:99], expected[99]) == ([BOUND] * 99, WAITS)
