"""What the API server itself does to pods: defaults at creation, what an update may change.

Named in the table of kinds and called by the store."""

from typing import Any

from lowtide.localcluster.documents import Json, cloned
from lowtide.localcluster.failures import invalid

_SPEC_DEFAULTS: Json = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "priority": 0,
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
}
_CONTAINER_DEFAULTS: Json = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_MAY_CHANGE = frozenset(
    ["activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"]
)
_MAY_CHANGE_WHILE_GATED = frozenset(["nodeSelector", "affinity"])
_MAY_NOT_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)
_COUNTED = ("cpu", "memory")
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


def prepare_pod(pod: Json, now: str) -> None:
    """Fills in the defaults that schedulers rely on and starts the status afresh."""
    name = pod["metadata"]["name"]
    spec = pod.setdefault("spec", {})
    if not spec.get("containers"):
        raise invalid("Pod", name, "spec.containers", "Required value")
    _default_spec(spec)
    pod["status"] = {"phase": "Pending", "qosClass": _quality_of_service(spec)}
    if spec.get("schedulingGates"):
        gated = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": now,
            "reason": "SchedulingGated",
            "message": GATED_MESSAGE,
        }
        pod["status"]["conditions"] = [gated]


def prepare_workload(workload: Json, now: str) -> None:
    """Deployments and ReplicaSets: one replica unless told, and a selector that fits."""
    spec = workload.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    kind_name, name = workload.get("kind", "Deployment"), workload["metadata"]["name"]
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).get("labels") or {}
    wanted = (spec.get("selector") or {}).get("matchLabels")
    if not wanted and not (spec.get("selector") or {}).get("matchExpressions"):
        raise invalid(kind_name, name, "spec.selector", "Required value")
    if any(labels.get(key) != value for key, value in (wanted or {}).items()):
        why = "`selector` does not match template `labels`"
        field = "spec.template.metadata.labels"
        raise invalid(kind_name, name, field, f"Invalid value: {labels!r}", why)
    if not template.setdefault("spec", {}).get("containers"):
        raise invalid(kind_name, name, "spec.template.spec.containers", "Required value")
    workload["status"] = {}


def check_pod_update(new: Json, old: Json) -> None:
    """Rejects changes of a pod's spec that the real server rejects, nodeName above all."""
    before, after = old["spec"], new["spec"]
    name = new["metadata"]["name"]
    gates_before = [gate["name"] for gate in before.get("schedulingGates") or []]
    gates_after = [gate["name"] for gate in after.get("schedulingGates") or []]
    if added := [gate for gate in gates_after if gate not in gates_before]:
        why = f"only deletion is allowed, but found new scheduling gate '{added[0]}'"
        raise invalid("Pod", name, "spec.schedulingGates", "Forbidden", why)
    exempt = _MAY_CHANGE | _MAY_CHANGE_WHILE_GATED if gates_before else _MAY_CHANGE
    if _fixed_part(before, exempt) != _fixed_part(after, exempt):
        raise invalid("Pod", name, "spec", "Forbidden", _MAY_NOT_CHANGE)


def ungate(pod: Json) -> None:
    """Takes the SchedulingGated condition away once the last gate is gone."""
    conditions = pod.get("status", {}).get("conditions")
    if conditions and not pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = [
            condition for condition in conditions if condition.get("reason") != "SchedulingGated"
        ]


def _default_spec(spec: Json) -> None:
    for key, value in _SPEC_DEFAULTS.items():
        if spec.get(key) is None:
            spec[key] = cloned(value)
    for container in (spec.get("initContainers") or []) + spec["containers"]:
        for key, value in _CONTAINER_DEFAULTS.items():
            container.setdefault(key, cloned(value))
        image = container.get("image", "")
        floats = image.endswith(":latest") or ":" not in image.rpartition("/")[2]
        container.setdefault("imagePullPolicy", "Always" if floats else "IfNotPresent")
        for port in container.get("ports") or []:
            port.setdefault("protocol", "TCP")
            if spec.get("hostNetwork"):
                port.setdefault("hostPort", port["containerPort"])
        limits = container["resources"].get("limits")
        if limits:
            requests = container["resources"].setdefault("requests", {})
            for resource, amount in limits.items():
                requests.setdefault(resource, amount)


def _quality_of_service(spec: Json) -> str:
    containers = (spec.get("initContainers") or []) + spec["containers"]
    resources = [container["resources"] for container in containers]
    if not any(each.get("requests") or each.get("limits") for each in resources):
        return "BestEffort"
    for each in resources:
        limits, requests = each.get("limits") or {}, each.get("requests") or {}
        if any(name not in limits or requests.get(name) != limits[name] for name in _COUNTED):
            return "Burstable"
    return "Guaranteed"


def _fixed_part(spec: Json, exempt: frozenset[str]) -> Json:
    fixed: dict[str, Any] = {key: value for key, value in spec.items() if key not in exempt}
    for field in ("containers", "initContainers"):
        fixed[field] = [{**container, "image": ""} for container in spec.get(field) or []]
    return fixed
