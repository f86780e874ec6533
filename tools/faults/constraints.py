"""Why a pod must not be on a node, worked out from the objects as the API server has them.

Asked by the auditor; it shares no code with Lowtide: a fault there cannot hide itself here."""

from collections.abc import Iterable, Mapping
from typing import Any

Json = Mapping[str, Any]

HOST_NAME = "kubernetes.io/hostname"
RESOURCES = ("cpu", "memory", "pods")
_FACTORS = {
    "m": 0.001,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "Ki": 1024.0,
    "Mi": 1024.0**2,
    "Gi": 1024.0**3,
}


def amount(text: str | int) -> float:
    """Of a quantity such as 500m, 4 or 32Gi."""
    words = str(text)
    digits = words.rstrip("mkMGKi")
    return float(digits) * _FACTORS.get(words[len(digits) :], 1.0)


def requested(pod: Json) -> dict[str, float]:
    wanted = {"cpu": 0.0, "memory": 0.0, "pods": 1.0}
    for container in pod["spec"]["containers"]:
        for name, value in container.get("resources", {}).get("requests", {}).items():
            wanted[name] = wanted.get(name, 0.0) + amount(value)
    return wanted


def overcommitted(node: Json, pods: Iterable[Json]) -> dict[str, tuple[float, float]]:
    """Resources of which these pods ask for more than the node has: how much, and of how much."""
    sums = dict.fromkeys(RESOURCES, 0.0)
    for pod in pods:
        for name, value in requested(pod).items():
            sums[name] = sums.get(name, 0.0) + value
    allocatable = node["status"]["allocatable"]
    # Sums of thousandths differ from whole numbers by less than this.
    return {
        name: (value, amount(allocatable.get(name, 0)))
        for name, value in sums.items()
        if value > amount(allocatable.get(name, 0)) + 1e-6
    }


def rejections(pod: Json, node: Json, others: Iterable[Json]) -> list[str]:
    """Sentences about what the pod, or a pod that was there before, does not allow."""
    labels = node["metadata"].get("labels", {})
    return [
        *(
            f"it selects {name}={value}, the node has {labels.get(name)}"
            for name, value in pod["spec"].get("nodeSelector", {}).items()
            if labels.get(name) != value
        ),
        *(
            f"it does not tolerate {taint['key']}={taint.get('value', '')}"
            for taint in node["spec"].get("taints", ())
            if taint["effect"] in ("NoSchedule", "NoExecute") and not _tolerates(pod, taint)
        ),
        *(
            f"it and {other['metadata']['name']} keep away from each other"
            for other in others
            if _keeps_away(pod, other) or _keeps_away(other, pod)
        ),
    ]


def _tolerates(pod: Json, taint: Json) -> bool:
    """The API server adds tolerations to every pod, for taints that no test node has."""
    return any(
        toleration.get("key") in (None, taint["key"])
        and toleration.get("effect") in (None, taint["effect"])
        and (
            toleration.get("operator") == "Exists"
            or toleration.get("value", "") == taint.get("value", "")
        )
        for toleration in pod["spec"].get("tolerations", ())
    )


def _keeps_away(pod: Json, other: Json) -> bool:
    """Only terms about the host itself, which are all that the workload has."""
    if pod["metadata"]["namespace"] != other["metadata"]["namespace"]:
        return False
    anti_affinity = pod["spec"].get("affinity", {}).get("podAntiAffinity", {})
    labels = other["metadata"].get("labels", {}).items()
    return any(
        term["topologyKey"] == HOST_NAME and term["labelSelector"]["matchLabels"].items() <= labels
        for term in anti_affinity.get("requiredDuringSchedulingIgnoredDuringExecution", ())
    )
