"""The kubelets of all nodes in one: bound pods run, deleted ones go, nodes say they are ready.

Called by Controllers for each pod and node whose turn it is."""

from collections.abc import Callable

from lowtide.localcluster.documents import Json
from lowtide.localcluster.store import Key, Part, Store
from lowtide.localcluster.timestamps import timestamp

_READY_TYPES = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


class Kubelet:
    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._by_node: dict[str, dict[Key, None]] = {}
        self._started_pods = 0

    def notice_pod(self, pod: Json, *, is_gone: bool) -> None:
        node_name = pod["spec"].get("nodeName")
        if not node_name:
            return
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if is_gone:
            self._by_node.get(node_name, {}).pop(key, None)
        else:
            self._by_node.setdefault(node_name, {})[key] = None

    def pods_on(self, node_name: str) -> list[Key]:
        return list(self._by_node.get(node_name, ()))

    def run_pod(self, pod: Json) -> None:
        """Starts a bound pod, removes a deleted one, and drops the pods of a node that is gone."""
        metadata, node_name = pod["metadata"], pod["spec"].get("nodeName")
        if not node_name:
            return
        node = self._store.find("nodes", "", node_name)
        was_started = "startTime" in pod["status"]
        if "deletionTimestamp" in metadata or (node is None and was_started):
            namespace, name = metadata["namespace"], metadata["name"]
            self._store.delete("pods", namespace, name, grace_period_seconds=0)
        elif node is not None and pod["status"].get("phase") == "Pending":
            status = self._running(pod, node)
            self._store.update("pods", {**pod, "status": status}, part=Part.STATUS)

    def report_node(self, node: Json) -> None:
        """A node without any word on readiness is ready; one that says it is not stays so."""
        status = node.get("status") or {}
        conditions = status.get("conditions") or []
        if any(condition["type"] == "Ready" for condition in conditions):
            return
        now = timestamp(self._clock())
        ready = {
            "type": "Ready",
            "status": "True",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
        reported = {**status, "conditions": [*conditions, ready]}
        self._store.update("nodes", {**node, "status": reported}, part=Part.STATUS)

    def _running(self, pod: Json, node: Json) -> Json:
        now = timestamp(self._clock())
        self._started_pods += 1
        number = self._started_pods
        pod_ip = f"10.{244 + number // 65536 % 8}.{number // 256 % 256}.{number % 256}"
        conditions = [
            condition
            for condition in pod["status"].get("conditions") or []
            if condition["type"] not in _READY_TYPES
        ]
        conditions += [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
            for kind in _READY_TYPES
        ]
        return {
            **pod["status"],
            "phase": "Running",
            "startTime": now,
            "hostIP": _internal_ip(node),
            "podIP": pod_ip,
            "podIPs": [{"ip": pod_ip}],
            "conditions": conditions,
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container.get("image", ""),
                    "imageID": "",
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "lastState": {},
                    "state": {"running": {"startedAt": now}},
                }
                for container in pod["spec"]["containers"]
            ],
        }


def _internal_ip(node: Json) -> str:
    addresses = (node.get("status") or {}).get("addresses") or []
    found = (one["address"] for one in addresses if one["type"] == "InternalIP")
    return next(found, "127.0.0.1")
