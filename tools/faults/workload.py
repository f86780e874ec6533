"""The nodes and pods that faults are tried on: nearly full nodes, and pods that ask for labels, for
tainted nodes, for hosts without their like, and some that fit nowhere; `Load` posts them."""

import itertools
import threading
from collections.abc import Iterator
from typing import Any

from faults.auditor import BOUND, EXPECTED, WAITS
from faults.constraints import HOST_NAME
from realparts.api_client import ApiClient, ApiError

SCHEDULER_NAME = "lowtide"
NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
POOL = "example.com/pool"
TAINT = {"key": POOL, "value": "kept", "effect": "NoSchedule"}
# Eight pods fit on a node: the backlog of a drain fills three quarters of all.
PODS_OF_A_NODE = 8
PODS_LIKE_EACH_OTHER = 10
EVERY_UNSCHEDULABLE = 100

Object = dict[str, Any]


def make_node(number: int) -> Object:
    """Every fifth has the taint."""
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    name = f"node-{number}"
    pool = "kept" if number % 5 == 0 else "common"
    return {
        "metadata": {"name": name, "labels": {HOST_NAME: name, POOL: pool}},
        "spec": {"taints": [TAINT]} if pool == "kept" else {},
        "status": {"allocatable": resources, "capacity": resources},
    }


def make_pod(prefix: str, number: int) -> Object:
    """Which kind it is depends on its number."""
    spec: Object = {"schedulerName": SCHEDULER_NAME, "containers": [_container()]}
    labels = {EXPECTED: BOUND}
    match number % 10:
        case 1 | 2:
            spec["nodeSelector"] = {POOL: "common"}
        case 3 | 4:
            spec["nodeSelector"] = {POOL: "kept"}
            spec["tolerations"] = [{"key": POOL, "operator": "Exists"}]
        case 5 | 6:
            labels["group"] = f"{prefix}-{number // (5 * PODS_LIKE_EACH_OTHER)}"
            spec["affinity"] = _away_from({"group": labels["group"]})
    if number % EVERY_UNSCHEDULABLE == EVERY_UNSCHEDULABLE - 1:
        labels[EXPECTED] = WAITS
        spec["nodeSelector"] = {POOL: "none"}
    return {"metadata": {"name": f"{prefix}-{number}", "labels": labels}, "spec": spec}


def make_pods(prefix: str, count: int) -> list[Object]:
    return [make_pod(prefix, number) for number in range(count)]


def _container() -> Object:
    resources = {"requests": {"cpu": "500m", "memory": "256Mi"}}
    return {"name": "main", "image": "example/none", "resources": resources}


def _away_from(labels: dict[str, str]) -> Object:
    term = {"topologyKey": HOST_NAME, "labelSelector": {"matchLabels": labels}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


class Load:
    """Posts a pod every now and then, whatever becomes of the API server, until `stop`."""

    def __init__(
        self, client: ApiClient, prefix: str, *, every_seconds: float, most_pods: int
    ) -> None:
        self._client = client
        self._pods: Iterator[Object] = iter(
            make_pod(prefix, number) for number in itertools.count()
        )
        self._most_pods = most_pods
        self._every_seconds = every_seconds
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._post, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._client.close()

    def _post(self) -> None:
        for pod in itertools.islice(self._pods, self._most_pods):
            while not self._is_over.is_set() and not self._is_posted(pod):
                self._is_over.wait(self._every_seconds)
            if self._is_over.wait(self._every_seconds):
                return

    def _is_posted(self, pod: Object) -> bool:
        try:
            self._client.request("POST", PODS, pod)
        except ApiError as rejection:
            return rejection.status == 409  # it was posted, and the answer was lost
        except OSError:
            return False
        return True
