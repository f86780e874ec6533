"""Makes scenarios of one rejected pod and one change: does it wake the pod?

Called by __main__. The pod is rejected by plugins that it gives something to think about, waits
until its back-off is over, and then a node or a pod on a node comes, changes or goes."""

import random
from typing import Any

Json = dict[str, Any]

PLUGINS = (
    "InterPodAffinity",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "PodTopologySpread",
    "TaintToleration",
)
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REJECTED_AT_SECONDS = 2.0
CHANGED_AT_SECONDS = 20.0  # after every back-off, before the look for pods that wait too long


def make_wakes(*, seed: int, cases: int) -> list[Json]:
    return [
        {
            "id": f"wake-{seed}-{number:03}",
            "family": "recorded_wakes",
            "scenario": {"steps": _steps(random.Random(f"{seed}/{number}"))},
        }
        for number in range(cases)
    ]


def _steps(chance: random.Random) -> list[Json]:
    plugins = chance.sample(PLUGINS, chance.choice((1, 1, 1, 2)))
    return [
        {"at": 1.0, "do": "add", "pod": _waiting_pod(chance, plugins)},
        {"at": REJECTED_AT_SECONDS, "do": "pop", "then": "refuse", "plugins": plugins},
        {"at": CHANGED_AT_SECONDS, **_change(chance)},
    ]


def _change(chance: random.Random) -> Json:
    match chance.choice(("nodeAdded", "nodeUpdated", "nodeUpdated", "podAdded", "podDeleted")):
        case "nodeAdded":
            return {"do": "nodeAdded", "node": _node(chance)}
        case "nodeUpdated":
            before = _node(chance)
            return {"do": "nodeUpdated", "before": before, "node": _changed(chance, before)}
        case event:
            return {"do": event, "pod": _placed_pod(chance)}


def _waiting_pod(chance: random.Random, plugins: list[str]) -> Json:
    """It has what those plugins reject pods for; InterPodAffinity may do so for other pods'
    sake."""
    has_port = "NodePorts" in plugins or chance.random() < 0.5
    spec = _spec(chance, has_port=has_port)
    spec |= {"schedulerName": "default-scheduler", "priority": 0}
    affinity: Json = {}
    if "NodeAffinity" in plugins or chance.random() < 0.5:
        expression = {"key": "disk", "operator": "In", "values": [_disk(chance)]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        affinity["nodeAffinity"] = {REQUIRED: terms}
    if chance.random() < 0.6:
        affinity[chance.choice(("podAffinity", "podAntiAffinity"))] = {REQUIRED: [_term(chance)]}
    if affinity:
        spec["affinity"] = affinity
    if "PodTopologySpread" in plugins or chance.random() < 0.5:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": chance.choice((ZONE, "rack")),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": _app(chance)}},
            }
        ]
    if chance.random() < 0.4:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    return _pod("waiting", chance, spec, "Pending")


def _placed_pod(chance: random.Random) -> Json:
    spec = _spec(chance, has_port=chance.random() < 0.5) | {"nodeName": "node-1", "priority": 0}
    if chance.random() < 0.4:
        spec["affinity"] = {"podAntiAffinity": {REQUIRED: [_term(chance)]}}
    return _pod("placed", chance, spec, "Running")


def _pod(name: str, chance: random.Random, spec: Json, phase: str) -> Json:
    namespace = chance.choice(("shop", "shop", "data"))
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": name,
        "labels": {"app": _app(chance)},
    }
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def _spec(chance: random.Random, *, has_port: bool) -> Json:
    container: Json = {
        "name": "main",
        "resources": {"requests": {"cpu": chance.choice(("1", "4")), "memory": "1Gi"}},
    }
    if has_port:
        port = chance.choice((8080, 9090))
        container["ports"] = [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]
    return {"containers": [container]}


def _node(chance: random.Random) -> Json:
    amounts = {"cpu": chance.choice(("2", "8")), "memory": "16Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": "node-1", "disk": _disk(chance)}
    if chance.random() < 0.7:
        labels[ZONE] = chance.choice(("zone-a", "zone-b"))
    if chance.random() < 0.5:
        labels["rack"] = "rack-1"
    spec: Json = {}
    if chance.random() < 0.4:
        spec["taints"] = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]
    if chance.random() < 0.3:
        spec["unschedulable"] = True
    return {
        "metadata": {"name": "node-1", "labels": labels},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _changed(chance: random.Random, before: Json) -> Json:
    """One or two parts of it are another node's."""
    other = _node(chance)
    after = {**before}
    for part in chance.sample(("metadata", "spec", "status"), chance.choice((1, 1, 2))):
        after[part] = other[part]
    return after


def _term(chance: random.Random) -> Json:
    return {
        "topologyKey": chance.choice((ZONE, "rack")),
        "labelSelector": {"matchLabels": {"app": _app(chance)}},
    }


def _app(chance: random.Random) -> str:
    return chance.choice(("web", "db"))


def _disk(chance: random.Random) -> str:
    return chance.choice(("ssd", "hdd"))
