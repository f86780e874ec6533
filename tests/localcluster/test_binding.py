from typing import Any

import pytest

from lowtide.localcluster import StatusError, Store, bind
from lowtide.localcluster.documents import Json
from lowtide.testing.clock import ManualClock

SPEC = {"containers": [{"name": "c", "image": "i"}]}


def binding(name: str, node_name: str = "n", **metadata: Any) -> Json:
    target = {"kind": "Node", "name": node_name}
    return {"metadata": {"name": name, **metadata}, "target": target}


def test_a_pod_is_bound(store: Store, clock: ManualClock) -> None:
    store.create("pods", {"metadata": {"name": "p"}, "spec": SPEC})
    status = {
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        "nominatedNodeName": "m",
    }
    waiting = store.patch("pods", "default", "p", {"status": status})
    store.replace("pods", {**waiting, "status": {**waiting["status"], **status}})
    bound = bind(store, binding("p"), namespace="default", clock=clock)
    assert bound["spec"]["nodeName"] == "n"
    assert bound["status"] == {
        "phase": "Pending",
        "qosClass": "BestEffort",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": "2023-11-14T22:13:20Z",
            }
        ],
    }


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        pytest.param(
            binding("bound", "other"),
            409,
            'Operation cannot be fulfilled on pods/binding "bound": '
            'pod bound is already assigned to node "n"',
            id="rejects a second binding",
        ),
        pytest.param(
            binding("gated"),
            409,
            'Operation cannot be fulfilled on pods/binding "gated": '
            "pod gated has non-empty .spec.schedulingGates",
            id="rejects a gated pod",
        ),
        pytest.param(
            binding("leaving"),
            409,
            'Operation cannot be fulfilled on pods/binding "leaving": '
            "pod leaving is being deleted, cannot be assigned to a host",
            id="rejects a pod that is being deleted",
        ),
        pytest.param(binding("gone"), 404, 'pods "gone" not found', id="rejects a missing pod"),
        pytest.param(
            {"metadata": {"name": "free"}, "target": {"kind": "Node"}},
            500,
            "target.name: Required value",
            id="rejects no node",
        ),
    ],
)
def test_rejections(
    store: Store, clock: ManualClock, wanted: Json, code: int, message: str
) -> None:
    for name in ("free", "bound", "leaving"):
        store.create("pods", {"metadata": {"name": name}, "spec": SPEC})
    gated = {**SPEC, "schedulingGates": [{"name": "g"}]}
    store.create("pods", {"metadata": {"name": "gated"}, "spec": gated})
    for name in ("bound", "leaving"):
        bind(store, binding(name), namespace="default", clock=clock)
    store.delete("pods", "default", "leaving")
    version = store.version
    with pytest.raises(StatusError) as rejected:
        bind(store, wanted, namespace="default", clock=clock)
    assert (rejected.value.code, rejected.value.message) == (code, message)
    assert store.version == version


def test_another_uid_is_a_conflict(store: Store, clock: ManualClock) -> None:
    created = store.create("pods", {"metadata": {"name": "p"}, "spec": SPEC})
    uid = created["metadata"]["uid"]
    with pytest.raises(StatusError) as rejected:
        bind(store, binding("p", uid="other"), namespace="default", clock=clock)
    assert rejected.value.code == 409
    assert rejected.value.message.endswith(
        f"Precondition failed: UID in precondition: other, UID in object meta: {uid}"
    )
    assert bind(store, binding("p", uid=uid), namespace="default", clock=clock)
