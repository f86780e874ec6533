"""A workload that exercises every default plugin, given in steps to one scheduler on a cluster of
its own; what became of it is told in a form that two schedulers can be compared by.

Who fits, and where it matters on which node, does not depend on ties."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from realparts.api_client import ApiError
from realparts.control_plane import ControlPlane
from realparts.process import wait_until

NAMESPACE = "default"
SETTLED_SECONDS = 60.0
PROVISIONER = "example.com/stand-in"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

# Name, zone, cores, further labels, taints.
NODES: tuple[tuple[str, str, int, dict[str, str], list[dict[str, str]]], ...] = (
    ("a1", "a", 4, {}, []),
    ("a2", "a", 4, {}, []),
    ("b1", "b", 4, {"disk": "ssd"}, []),
    ("b2", "b", 4, {}, []),
    ("c1", "c", 4, {}, []),
    ("t1", "c", 4, {}, [{"key": "only", "value": "databases", "effect": "NoSchedule"}]),
)
PRIORITIES = {"low": -10, "middle": 10, "high": 1000, "high-but-polite": 1000}


def on(node_name: str) -> dict[str, Any]:
    return {"nodeSelector": {HOSTNAME: node_name}}


def asks(cpu: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}}


def affinity(kind: str, app: str, key: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def pod(
    name: str,
    spec: Mapping[str, Any] | None = None,
    container: Mapping[str, Any] | None = None,
    app: str = "",
    claim: str = "",
) -> dict[str, Any]:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    return {
        "metadata": {"name": name, "labels": {"app": app or name}},
        "spec": {
            "containers": [{"name": "main", "image": "example/none", **(container or {})}],
            "terminationGracePeriodSeconds": 0,
            "volumes": volumes,
            **(spec or {}),
        },
    }


SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "spread"}},
            "nodeTaintsPolicy": "Honor",
        }
    ]
}
APART = affinity("podAntiAffinity", "apart", HOSTNAME)
TOLERATES = {"tolerations": [{"key": "only", "operator": "Exists"}]}
PORT = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
FILLED_NODES = ("a1", "a2", "b1", "b2", "c1")

# Each step is given when every pod of the steps before has its node or its rejection.
STEPS: tuple[tuple[str, Sequence[dict[str, Any]]], ...] = (
    ("plain", [pod(f"plain-{n}", container=asks("50m")) for n in range(6)]),
    (
        "affinity to nodes",
        [
            pod("wants-ssd", {"nodeSelector": {"disk": "ssd"}}),
            pod("wants-tape", {"nodeSelector": {"disk": "tape"}}),
        ],
    ),
    (
        "taints",
        [
            pod("tolerates", {**on("t1"), **TOLERATES}),
            pod("does-not-tolerate", on("t1")),
        ],
    ),
    ("spread", [pod(f"spread-{n}", SPREAD, app="spread") for n in range(6)]),
    ("apart", [pod(f"apart-{n}", APART, app="apart") for n in range(5)]),
    ("one too many apart", [pod("apart-5", APART, app="apart")]),
    ("anchor", [pod("anchor", on("c1"))]),
    (
        "affinity to pods",
        [
            pod("follows", affinity("podAffinity", "anchor", HOSTNAME)),
            pod("follows-nobody", affinity("podAffinity", "nobody", ZONE)),
        ],
    ),
    ("port", [pod("port-0", on("a1"), PORT)]),
    ("the same port", [pod("port-1", on("a1"), PORT)]),
    (
        "claims",
        [
            pod("static-claim", claim="static"),
            pod("dynamic-claim", on("b2"), claim="dynamic"),
            pod("no-such-claim", claim="nowhere"),
            pod("unbound-claim", claim="immediate"),
        ],
    ),
    ("gate", [pod("gated", {**on("b1"), "schedulingGates": [{"name": "example.com/wait"}]})]),
    ("too large", [pod("too-large", container=asks("100"))]),
    (
        "fillers",
        [
            pod(f"filler-{node}", {**on(node), "priorityClassName": "low"}, asks("2"))
            for node in FILLED_NODES
            if node != "c1"
        ]
        + [pod("filler-c1", {**on("c1"), "priorityClassName": "middle"}, asks("2"))],
    ),
    (
        "evicts on its node",
        [pod("urgent-a1", {**on("a1"), "priorityClassName": "high"}, asks("3"))],
    ),
    (
        "evicts nobody",
        [pod("polite", {**on("b1"), "priorityClassName": "high-but-polite"}, asks("3"))],
    ),
    (
        "spares what a budget protects",
        [
            pod(
                "urgent-b",
                {
                    "priorityClassName": "high",
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [
                                    {
                                        "matchExpressions": [
                                            {
                                                "key": HOSTNAME,
                                                "operator": "In",
                                                "values": ["a2", "b2"],
                                            }
                                        ]
                                    }
                                ]
                            }
                        }
                    },
                },
                asks("3"),
            )
        ],
    ),
)
# Where the plugins leave one node only; of the others, whether they are placed is compared.
FORCED = {
    "wants-ssd": "b1",
    "tolerates": "t1",
    "anchor": "c1",
    "follows": "c1",
    "port-0": "a1",
    "static-claim": "a2",
    "dynamic-claim": "b2",
    "gated": "b1",
    "urgent-a1": "a1",
    "urgent-b": "b2",
    **{f"filler-{node}": node for node in FILLED_NODES},
}

REASONS = ("Scheduled", "FailedScheduling", "Preempted")

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"


class SideBySide:
    """`start_scheduler` starts the one that is watched; it serves `default-scheduler`."""

    def __init__(self, plane: ControlPlane, start_scheduler: Callable[[], object]) -> None:
        self._plane = plane
        self._start_scheduler = start_scheduler
        self._given: list[str] = []
        self._seen: dict[str, dict[str, Any]] = {}  # the newest of each pod, kept when it is gone
        # As its own step left it: who is tried again later, and finds what by then, may differ.
        self._rejected: dict[str, tuple[str, str]] = {}

    def run(self) -> dict[str, Any]:
        self._prepare()
        self._start_scheduler()
        stop = threading.Event()
        provisioner = threading.Thread(target=self._provision, args=(stop,))
        provisioner.start()
        try:
            for step, pods in STEPS:
                for each in pods:
                    self._plane.request("POST", PODS, each)
                    self._given.append(each["metadata"]["name"])
                self._wait(step)
                self._note_rejections(pods)
            self._plane.request("PATCH", f"{PODS}/gated", {"spec": {"schedulingGates": None}})
            wait_until(
                lambda: self._settled() >= set(self._given) and self._is_told(),
                timeout_seconds=SETTLED_SECONDS,
                what="the gate is open, and everything was told",
            )
            return self._outcome()
        finally:
            stop.set()
            provisioner.join()

    # What is there before the first pod.

    def _prepare(self) -> None:
        for name, zone, cores, labels, taints in NODES:
            resources = {"cpu": str(cores), "memory": "8Gi", "pods": "30"}
            node = {
                "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: zone, **labels}},
                "spec": {"taints": taints},
                "status": {"allocatable": resources, "capacity": resources},
            }
            self._plane.request("POST", "/api/v1/nodes", node)
        for name, value in PRIORITIES.items():
            priority: dict[str, Any] = {"metadata": {"name": name}, "value": value}
            if name == "high-but-polite":
                priority["preemptionPolicy"] = "Never"
            self._plane.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority)
        self._prepare_volumes()
        budget = {
            "metadata": {"name": "protects-a2"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "filler-a2"}}},
        }
        budgets = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
        self._plane.request("POST", budgets, budget)
        wait_until(self._has_ready_nodes, timeout_seconds=SETTLED_SECONDS, what="nodes are ready")

    def _prepare_volumes(self) -> None:
        classes = "/apis/storage.k8s.io/v1/storageclasses"
        for name, provisioner, mode in (
            ("static", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            ("dynamic", PROVISIONER, "WaitForFirstConsumer"),
            ("immediate", "example.com/absent", "Immediate"),
        ):
            storage_class = {
                "metadata": {"name": name},
                "provisioner": provisioner,
                "volumeBindingMode": mode,
            }
            self._plane.request("POST", classes, storage_class)
            claim = {
                "metadata": {"name": name},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": name,
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }
            self._plane.request("POST", CLAIMS, claim)
        self._plane.request("POST", VOLUMES, volume("static-volume", "static", on_node="a2"))

    def _has_ready_nodes(self) -> bool:
        nodes = self._plane.request("GET", "/api/v1/nodes")["items"]
        taints = {node["metadata"]["name"]: len(node["spec"].get("taints") or ()) for node in nodes}
        return taints == {name: len(taints) for name, _, _, _, taints in NODES}

    # What happens meanwhile.

    def _provision(self, stop: threading.Event) -> None:
        """A stand-in for a provisioner: makes the volume where the scheduler wants it."""
        while not stop.wait(0.1):
            claim = self._plane.request("GET", f"{CLAIMS}/dynamic")
            node_name = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
            if node_name is None:
                continue
            made = volume("dynamic-volume", "dynamic", on_node=node_name)
            made["spec"]["claimRef"] = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": NAMESPACE,
                "name": "dynamic",
                "uid": claim["metadata"]["uid"],
            }
            self._plane.request("POST", VOLUMES, made)
            return

    def _wait(self, step: str) -> None:
        waited_for = set(self._given) - {"gated"}
        wait_until(
            lambda: waited_for <= self._settled(),
            timeout_seconds=SETTLED_SECONDS,
            what=f"after the step {step!r} every pod has its node or its rejection",
        )

    def _note_rejections(self, given: Sequence[Mapping[str, Any]]) -> None:
        for each in given:
            name = each["metadata"]["name"]
            said = rejection(self._seen[name])
            if said is not None and said[0] == "Unschedulable":
                self._rejected[name] = said

    def _settled(self) -> set[str]:
        """Those that have their node, were rejected and promised none, or are gone."""
        pods = {each["metadata"]["name"]: each for each in self._all(PODS)}
        self._seen.update(pods)
        found = set(self._given) - pods.keys()
        for name, each in pods.items():
            said = rejection(each)
            is_rejected = said is not None and said[0] == "Unschedulable"
            is_promised = bool(each["status"].get("nominatedNodeName"))
            if each["spec"].get("nodeName") or (is_rejected and not is_promised):
                found.add(name)
        return found

    def _is_told(self) -> bool:
        """Events are written when there is time."""
        told = {
            (each["regarding"]["name"], each["reason"])
            for each in self._all(f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events")
        }
        gone = set(self._given) - {each["metadata"]["name"] for each in self._all(PODS)}
        return told >= {(n, "Scheduled") for n in FORCED} | {(n, "Preempted") for n in gone}

    # What became of it.

    def _outcome(self) -> dict[str, Any]:
        pods = {each["metadata"]["name"]: each for each in self._all(PODS)}
        self._seen.update(pods)
        return {
            "gone": sorted(set(self._given) - pods.keys()),
            "placed": sorted(n for n, each in pods.items() if each["spec"].get("nodeName")),
            "forced": {name: self._seen[name]["spec"].get("nodeName") for name in FORCED},
            "rejected": self._rejected,
            "events": self._events(),
            "zones": self._zones(pods),
            "apart": len({pods[f"apart-{n}"]["spec"]["nodeName"] for n in range(5)}),
            "static": self._bound_to("static"),
            "dynamic": self._bound_to("dynamic"),
        }

    def _events(self) -> dict[str, list[tuple[str, ...]]]:
        """Of pods whose placement is forced or that are rejected, each kind once."""
        found: dict[str, set[tuple[str, ...]]] = {}
        for each in self._all(f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"):
            name = each["regarding"]["name"]
            if each["regarding"]["kind"] != "Pod" or each["reason"] not in REASONS:
                continue
            if name in FORCED or not self._seen[name]["spec"].get("nodeName"):
                note = each["note"]
                for other, seen in self._seen.items():
                    note = note.replace(seen["metadata"]["uid"], f"<{other}>")
                kind = (each["type"], each["reason"], each["action"], each["reportingController"])
                found.setdefault(name, set()).add((*kind, note))
        return {name: sorted(kinds) for name, kinds in sorted(found.items())}

    def _zones(self, pods: Mapping[str, Any]) -> list[int]:
        """How many of the spread pods are in each zone, fewest first."""
        zone_of = {name: zone for name, zone, *_ in NODES}
        zones = [zone_of[pods[f"spread-{n}"]["spec"]["nodeName"]] for n in range(6)]
        return sorted(zones.count(zone) for zone in "abc")

    def _bound_to(self, claim: str) -> tuple[str, str]:
        found = self._plane.request("GET", f"{CLAIMS}/{claim}")
        return found["status"]["phase"], found["spec"].get("volumeName", "")

    def _all(self, path: str) -> list[dict[str, Any]]:
        try:
            items: list[dict[str, Any]] = self._plane.request("GET", path)["items"]
        except ApiError as error:
            raise AssertionError(f"the API server does not list {path}: {error}") from error
        return items


def rejection(each: Mapping[str, Any]) -> tuple[str, str] | None:
    """Reason and message of a pod that has no node."""
    for condition in each["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition["reason"], condition.get("message", "")
    return None


def volume(name: str, storage_class: str, *, on_node: str) -> dict[str, Any]:
    only = {"key": HOSTNAME, "operator": "In", "values": [on_node]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "local": {"path": f"/volumes/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [only]}]}},
        },
    }
