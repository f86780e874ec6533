"""The binding sub-resource of pods: assigns a pod to a node once, rejects everything else.

Called by ApiServer, and by tests that need bound pods in the store."""

from collections.abc import Callable

from lowtide.localcluster.documents import Json
from lowtide.localcluster.failures import StatusError, bad_request, conflict
from lowtide.localcluster.store import Store, uid_mismatch
from lowtide.localcluster.timestamps import timestamp


def bind(store: Store, binding: Json, *, namespace: str, clock: Callable[[], float]) -> Json:
    """Binds as the Binding object says and returns the bound pod."""
    metadata, target = binding.get("metadata") or {}, binding.get("target") or {}
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise bad_request("the Binding has no metadata.name; it has to be the name of the pod")
    # The real server answers 500 without a reason to both of these.
    if target.get("kind") not in (None, "", "Node"):
        message = (
            f'target.kind: Unsupported value: "{target["kind"]}": '
            'supported values: "Node", "<empty>"'
        )
        raise StatusError(500, "", message)
    if not target.get("name"):
        raise StatusError(500, "", "target.name: Required value")
    pod = store.get("pods", namespace, name)
    _check(pod, metadata.get("uid"))
    bound = _bound(pod, target["name"], timestamp(clock()))
    if annotations := metadata.get("annotations"):
        merged = {**(pod["metadata"].get("annotations") or {}), **annotations}
        bound["metadata"] = {**pod["metadata"], "annotations": merged}
    return store.replace("pods", bound)


def _check(pod: Json, wanted_uid: str | None) -> None:
    metadata, spec = pod["metadata"], pod["spec"]
    name, uid = metadata["name"], metadata["uid"]
    if wanted_uid and wanted_uid != uid:
        key = f"/registry/pods/{metadata['namespace']}/{name}"
        raise conflict("pods", name, uid_mismatch(key, wanted_uid, uid))
    if "deletionTimestamp" in metadata:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
        raise conflict("pods/binding", name, why)
    if spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
        raise conflict("pods/binding", name, why)
    if spec.get("schedulingGates"):
        raise conflict("pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")


def _bound(pod: Json, node_name: str, now: str) -> Json:
    status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
    conditions = [
        condition
        for condition in status.get("conditions") or []
        if condition.get("type") != "PodScheduled"
    ]
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    status["conditions"] = [*conditions, scheduled]
    return {**pod, "spec": {**pod["spec"], "nodeName": node_name}, "status": status}
