"""The columns that `kubectl get` shows for the kinds of the embedded cluster.

Called by TablePresentation; kinds without a table are printed by kubectl itself."""

from collections.abc import Callable
from typing import Any

from lowtide.localcluster.documents import Json
from lowtide.localcluster.timestamps import age_text, unix_seconds

# Plural -> columns; a column that starts with "+" is shown by `-o wide` only.
_COLUMNS = {
    "pods": "Name Ready Status Restarts Age +IP +Node +Nominated_Node +Readiness_Gates",
    "nodes": (
        "Name Status Roles Age Version +Internal-IP +External-IP +OS-Image +Kernel-Version "
        "+Container-Runtime"
    ),
    "deployments": "Name Ready Up-to-date Available Age +Containers +Images +Selector",
    "replicasets": "Name Desired Current Ready Age +Containers +Images +Selector",
    "events": ("Last_Seen Type Reason Object +Subobject +Source Message +First_Seen +Count +Name"),
    "namespaces": "Name Status Age",
    "leases": "Name Holder Age",
    "serviceaccounts": "Name Age",
}
_INTEGERS = frozenset(["Desired", "Current"])
_NONE = "<none>"
_UNKNOWN = "<unknown>"


def has_table(plural: str) -> bool:
    return plural in _COLUMNS


def column_definitions(plural: str) -> list[Json]:
    return [_definition(column) for column in _COLUMNS[plural].split()]


def row(plural: str, item: Json, now: float) -> list[Any]:
    return _ROWS[plural](item, now)


def _definition(column: str) -> Json:
    name = column.removeprefix("+").replace("_", " ")
    return {
        "name": name,
        "type": "integer" if name in _INTEGERS else "string",
        "format": "name" if name == "Name" else "",
        "description": name,
        "priority": 1 if column.startswith("+") else 0,
    }


def _pod(pod: Json, now: float) -> list[Any]:
    spec, status = pod["spec"], pod["status"]
    containers = status.get("containerStatuses") or []
    ready = sum(1 for container in containers if container.get("ready"))
    restarts = sum(container.get("restartCount", 0) for container in containers)
    return [
        pod["metadata"]["name"],
        f"{ready}/{len(spec['containers'])}",
        _pod_status(pod),
        str(restarts),
        _age(pod, now),
        status.get("podIP") or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        _NONE,
    ]


def _pod_status(pod: Json) -> str:
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    for condition in pod["status"].get("conditions") or []:
        if condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(pod["status"].get("reason") or pod["status"].get("phase", "Unknown"))


def _node(node: Json, now: float) -> list[Any]:
    status = node.get("status") or {}
    information = status.get("nodeInfo") or {}
    addresses = {entry["type"]: entry["address"] for entry in status.get("addresses") or []}
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    roles = sorted(label.removeprefix(prefix) for label in labels if label.startswith(prefix))
    return [
        node["metadata"]["name"],
        _node_status(node),
        ",".join(roles) or _NONE,
        _age(node, now),
        information.get("kubeletVersion", ""),
        addresses.get("InternalIP", _NONE),
        addresses.get("ExternalIP", _NONE),
        information.get("osImage") or _UNKNOWN,
        information.get("kernelVersion") or _UNKNOWN,
        information.get("containerRuntimeVersion") or _UNKNOWN,
    ]


def _node_status(node: Json) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = [condition["status"] for condition in conditions if condition["type"] == "Ready"]
    texts = ["Ready" if status == "True" else "NotReady" for status in ready]
    if (node.get("spec") or {}).get("unschedulable"):
        texts.append("SchedulingDisabled")
    return ",".join(texts) or "Unknown"


def _deployment(deployment: Json, now: float) -> list[Any]:
    status = deployment.get("status") or {}
    return [
        deployment["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{deployment['spec']['replicas']}",
        str(status.get("updatedReplicas", 0)),
        str(status.get("availableReplicas", 0)),
        _age(deployment, now),
        *_template_cells(deployment),
    ]


def _replica_set(replica_set: Json, now: float) -> list[Any]:
    status = replica_set.get("status") or {}
    return [
        replica_set["metadata"]["name"],
        replica_set["spec"]["replicas"],
        status.get("replicas", 0),
        str(status.get("readyReplicas", 0)),
        _age(replica_set, now),
        *_template_cells(replica_set),
    ]


def _template_cells(workload: Json) -> list[Any]:
    containers = workload["spec"]["template"]["spec"]["containers"]
    selector = workload["spec"]["selector"].get("matchLabels") or {}
    return [
        ",".join(container["name"] for container in containers),
        ",".join(container.get("image", "") for container in containers),
        ",".join(f"{key}={value}" for key, value in sorted(selector.items())) or _NONE,
    ]


def _event(event: Json, now: float) -> list[Any]:
    regarding, source = event.get("involvedObject") or {}, event.get("source") or {}
    first = event.get("firstTimestamp") or event.get("eventTime")
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return [
        _since(last, now),
        event.get("type", ""),
        event.get("reason", ""),
        f"{regarding.get('kind', '').lower()}/{regarding.get('name', '')}",
        regarding.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        (event.get("message") or "").strip(),
        _since(first, now),
        series.get("count") or event.get("count") or 1,
        event["metadata"]["name"],
    ]


def _namespace(namespace: Json, now: float) -> list[Any]:
    return [namespace["metadata"]["name"], namespace["status"]["phase"], _age(namespace, now)]


def _lease(lease: Json, now: float) -> list[Any]:
    holder = (lease.get("spec") or {}).get("holderIdentity") or ""
    return [lease["metadata"]["name"], holder, _age(lease, now)]


def _service_account(account: Json, now: float) -> list[Any]:
    return [account["metadata"]["name"], _age(account, now)]


_ROWS: dict[str, Callable[[Json, float], list[Any]]] = {
    "pods": _pod,
    "nodes": _node,
    "deployments": _deployment,
    "replicasets": _replica_set,
    "events": _event,
    "namespaces": _namespace,
    "leases": _lease,
    "serviceaccounts": _service_account,
}


def _age(item: Json, now: float) -> str:
    return _since(item["metadata"].get("creationTimestamp"), now)


def _since(moment: str | None, now: float) -> str:
    return age_text(now - unix_seconds(moment)) if moment else _UNKNOWN
