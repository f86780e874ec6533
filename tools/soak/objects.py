"""Nodes and pods of the soak. No name is given twice, and as Deployments come and go, so do the
labels of pods: whatever keeps what it has seen would grow."""

from typing import Any

NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODES = "/api/v1/nodes"
SCHEDULER_NAME = "lowtide"
HOST_NAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NEVER_FITS = "soak/never-fits"
PODS_OF_A_DEPLOYMENT = 40
KINDS = 20

Object = dict[str, Any]


def node_name(number: int) -> str:
    return f"node-{number}"


def pod_name(number: int) -> str:
    return f"pod-{number}"


def number_of(name: str) -> int:
    return int(name.rpartition("-")[2])


def make_node(number: int) -> Object:
    resources = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    labels = {HOST_NAME: node_name(number), ZONE: f"zone-{number % 3}"}
    return {
        "metadata": {"name": node_name(number), "labels": labels},
        "status": {"allocatable": resources, "capacity": resources},
    }


def make_pod(number: int) -> Object:
    """Of twenty, one fits nowhere, three keep apart, and three spread over zones."""
    deployment = str(number // PODS_OF_A_DEPLOYMENT)
    labels = {"app": f"app-{deployment}", "pod-template-hash": deployment}
    spec: Object = {"schedulerName": SCHEDULER_NAME, "containers": [_container()]}
    match number % KINDS:
        case 0:
            labels[NEVER_FITS] = "true"
            spec["nodeSelector"] = {ZONE: "none"}
        case 1 | 2 | 3:
            labels["keeps-apart"] = deployment
            spec["affinity"] = _away_from({"keeps-apart": deployment})
        case 4 | 5 | 6:
            spec["topologySpreadConstraints"] = [_spread({"app": labels["app"]})]
    return {"metadata": {"name": pod_name(number), "labels": labels}, "spec": spec}


def _container() -> Object:
    resources = {"requests": {"cpu": "250m", "memory": "256Mi"}}
    return {"name": "main", "image": "example/none", "resources": resources}


def _away_from(labels: dict[str, str]) -> Object:
    term = {"topologyKey": HOST_NAME, "labelSelector": {"matchLabels": labels}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _spread(labels: dict[str, str]) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
