"""Makes scenarios of large clusters that mix the plugins: what there is, and one pod to place.

Called by __main__. The same seed makes the same scenarios; all objects are as the API server
would have stored them, as far as the scheduler reads them."""

import random
from typing import Any

from recorder.large_pods import Claims, incoming_pod, placed_pod

Json = dict[str, Any]

ZONES = ("zone-a", "zone-b", "zone-c", "zone-d")
IMAGES = {
    "registry.example/web:1.4": 180_000_000,
    "registry.example/db:9": 620_000_000,
    "registry.example/batch:3": 1_400_000_000,
    "registry.example/cache:7": 45_000_000,
}
TAINTS = (
    {"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "db", "effect": "NoExecute"},
    {"key": "spot", "value": "true", "effect": "PreferNoSchedule"},
    {"key": "slow", "effect": "PreferNoSchedule"},
)
DRIVER = "disks.example"
ALL_NODES_TRIED = {
    "name": "DefaultPreemption",
    "args": {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "DefaultPreemptionArgs",
        "minCandidateNodesPercentage": 100,
        "minCandidateNodesAbsolute": 100,
    },
}


def make_clusters(*, seed: int, cases: int, nodes: int) -> list[Json]:
    return [
        {
            "id": f"large-{seed}-{number:03}",
            "family": "recorded_clusters",
            "scenario": _scenario(random.Random(f"{seed}/{number}"), nodes),
        }
        for number in range(cases)
    ]


def _scenario(chance: random.Random, count: int) -> Json:
    nodes = [_node(chance, number) for number in range(count)]
    is_full = chance.random() < 0.3  # then the pod can be placed by preemption only, or not at all
    claims = Claims(chance, [node["metadata"]["name"] for node in nodes], ZONES)
    pods = _placed(chance, nodes, claims, is_full=is_full)
    pod = incoming_pod(chance, claims, nodes=nodes, is_full=is_full)
    scenario: Json = {
        "nodes": nodes,
        "pods": pods,
        "pod": pod,
        "namespaces": [
            {"metadata": {"name": name, "labels": {"team": team}}}
            for name, team in (("shop", "front"), ("data", "back"))
        ],
        "services": [
            {
                "metadata": {"name": app, "namespace": "shop"},
                "spec": {"selector": {"app": app}},
            }
            for app in ("web", "cache")
        ],
        **claims.objects(),
    }
    if chance.random() < 0.4:
        scenario["csiNodes"] = [_csi_node(chance, node) for node in nodes]
    if is_full:
        scenario["podDisruptionBudgets"] = [_budget(app, chance) for app in ("web", "db")]
    if chance.random() < 0.3:
        scenario["pendingPods"] = [
            _nominated(chance, number, claims, nodes) for number in range(chance.randint(1, 6))
        ]
    config = _config(chance, is_full=is_full)
    if config:
        scenario["config"] = config
    return scenario


def _node(chance: random.Random, number: int) -> Json:
    name = f"node-{number:03}"
    cores = chance.choice((4, 8, 8, 16))
    amounts = {
        "cpu": str(cores),
        "memory": f"{cores * chance.choice((2, 4))}Gi",
        "ephemeral-storage": "100Gi",
        "pods": str(chance.choice((8, 30, 110))),
    }
    if chance.random() < 0.15:
        amounts["example.com/accelerator"] = str(chance.randint(1, 4))
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": ZONES[number % len(ZONES)],
        "rack": f"rack-{number % 20:02}",
        "disk": chance.choice(("ssd", "nvme", "hdd")),
        "generation": str(chance.randint(1, 6)),
    }
    if chance.random() < 0.05:
        del labels["topology.kubernetes.io/zone"]
    spec: Json = {}
    taints = [dict(taint) for taint in TAINTS if chance.random() < 0.08]
    if taints:
        spec["taints"] = taints
    if chance.random() < 0.03:
        spec["unschedulable"] = True
    images = [
        {"names": [image], "sizeBytes": size}
        for image, size in IMAGES.items()
        if chance.random() < 0.3
    ]
    status: Json = {"capacity": amounts, "allocatable": amounts}
    if images:
        status["images"] = images
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def _placed(
    chance: random.Random, nodes: list[Json], claims: Claims, *, is_full: bool
) -> list[Json]:
    pods: list[Json] = []
    for node in nodes:
        cores = int(node["status"]["allocatable"]["cpu"])
        free_milli = chance.randrange(0, 800) if is_full else cores * 300
        room_milli = cores * 1000 - free_milli
        for place in range(8):
            if room_milli < 100 or (not is_full and chance.random() < 0.45):
                break
            wanted_milli = chance.choice((250, 500, 1000, 2000)) * (1 + is_full)
            cpu_milli = room_milli if is_full and place == 7 else min(room_milli, wanted_milli)
            pods.append(placed_pod(chance, len(pods), node, claims, cpu_milli=cpu_milli))
            room_milli -= cpu_milli
    return pods


def _csi_node(chance: random.Random, node: Json) -> Json:
    return {
        "metadata": {"name": node["metadata"]["name"]},
        "spec": {
            "drivers": [
                {
                    "name": DRIVER,
                    "nodeID": node["metadata"]["name"],
                    "allocatable": {"count": chance.randint(1, 3)},
                }
            ]
        },
    }


def _budget(app: str, chance: random.Random) -> Json:
    return {
        "metadata": {"name": app, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": chance.randint(0, 2)},
    }


def _nominated(chance: random.Random, number: int, claims: Claims, nodes: list[Json]) -> Json:
    pod = incoming_pod(chance, claims, nodes=nodes, is_full=False, with_volumes=False)
    pod["metadata"] |= {"name": f"nominated-{number}", "uid": f"nominated-{number}"}
    pod["spec"]["priority"] = chance.choice((0, 100, 2000))
    pod["status"] = {
        "phase": "Pending",
        "nominatedNodeName": chance.choice(nodes)["metadata"]["name"],
    }
    return pod


def _config(chance: random.Random, *, is_full: bool) -> Json | None:
    plugin_config: list[Json] = []
    if is_full:
        plugin_config.append(ALL_NODES_TRIED)
    if chance.random() < 0.3:
        strategy = chance.choice(("MostAllocated", "LeastAllocated"))
        weights = [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}]
        plugin_config.append(
            {
                "name": "NodeResourcesFit",
                "args": {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "NodeResourcesFitArgs",
                    "scoringStrategy": {"type": strategy, "resources": weights},
                },
            }
        )
    if not plugin_config:
        return None
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": plugin_config}],
    }
