"""The pods of a large cluster's scenario: those on nodes, the one to place, and their volumes.

Used by clusters."""

import random
from typing import Any

Json = dict[str, Any]

APPS = ("web", "db", "batch", "cache")
IMAGE = {
    "web": "registry.example/web:1.4",
    "db": "registry.example/db:9",
    "batch": "registry.example/batch:3",
    "cache": "registry.example/cache:7",
}
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
TOPOLOGIES = (ZONE, HOSTNAME, "rack")
LATE = "late"
MADE = "made"
AT_ONCE = "at-once"
DRIVER = "disks.example"


class Claims:
    """Makes claims and volumes as pods ask for them; `objects` has all of them in the end."""

    def __init__(
        self, chance: random.Random, node_names: list[str], zones: tuple[str, ...]
    ) -> None:
        self._chance = chance
        self._node_names = node_names
        self._zones = zones
        self._claims: list[Json] = []
        self._volumes: list[Json] = []

    def bound(self, namespace: str) -> str:
        """A claim that has its volume: on a node, in a zone, or anywhere."""
        name = f"claim-{len(self._claims):03}"
        volume = f"volume-{name}"
        where = self._chance.choice(("anywhere", ZONE, ZONE, HOSTNAME))
        self._add_claim(name, namespace, AT_ONCE, volume)
        self._add_volume(volume, where, AT_ONCE, claim=(namespace, name))
        return name

    def unbound(self, namespace: str) -> str:
        """A claim that waits for its first pod: a few volumes would do, or one is made for it."""
        name = f"claim-{len(self._claims):03}"
        storage_class = self._chance.choice((LATE, MADE))
        self._add_claim(name, namespace, storage_class, "")
        for number in range(self._chance.randint(0, 4)):
            where = self._chance.choice((ZONE, HOSTNAME))
            self._add_volume(f"free-{name}-{number}", where, storage_class)
        return name

    def objects(self) -> Json:
        if not self._claims:
            return {}
        return {
            "persistentVolumeClaims": self._claims,
            "persistentVolumes": self._volumes,
            "storageClasses": [
                _storage_class(LATE, "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
                _storage_class(AT_ONCE, DRIVER, "Immediate"),
                _storage_class(MADE, DRIVER, "WaitForFirstConsumer") | _only_in(self._zones[:2]),
            ],
        }

    def _add_claim(self, name: str, namespace: str, storage_class: str, volume: str) -> None:
        claim: Json = {
            "metadata": {"name": name, "namespace": namespace, "uid": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "10Gi"}},
                "storageClassName": storage_class,
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Bound" if volume else "Pending"},
        }
        if volume:
            claim["spec"]["volumeName"] = volume
            claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        self._claims.append(claim)

    def _add_volume(
        self, name: str, where: str, storage_class: str, claim: tuple[str, str] | None = None
    ) -> None:
        spec: Json = {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "volumeMode": "Filesystem",
            "csi": {"driver": DRIVER, "volumeHandle": name},
        }
        if where != "anywhere":
            values = self._zones if where == ZONE else self._node_names
            chosen = self._chance.sample(values, self._chance.randint(1, 2))
            expression = {"key": where, "operator": "In", "values": chosen}
            spec["nodeAffinity"] = {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            }
        if claim is not None:
            spec["claimRef"] = {"namespace": claim[0], "name": claim[1], "uid": claim[1]}
        phase = "Available" if claim is None else "Bound"
        self._volumes.append({"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}})


def _storage_class(name: str, provisioner: str, mode: str) -> Json:
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}


def _only_in(zones: tuple[str, ...]) -> Json:
    expressions = [{"key": ZONE, "values": list(zones)}]
    return {"allowedTopologies": [{"matchLabelExpressions": expressions}]}


def placed_pod(
    chance: random.Random, number: int, node: Json, claims: Claims, *, cpu_milli: int
) -> Json:
    app = chance.choice(APPS)
    namespace = chance.choice(("shop", "shop", "data"))
    spec: Json = {
        "containers": [_container(app, cpu_milli, chance.choice((64, 256, 512)))],
        "nodeName": node["metadata"]["name"],
        "priority": chance.choice((0, 0, 100, 1000)),
    }
    kind = chance.random()
    if kind < 0.04:
        spec["affinity"] = {"podAntiAffinity": {REQUIRED: [_term(chance, chance.choice(APPS))]}}
    elif kind < 0.1:
        preferred = [{"weight": chance.randint(1, 100), "podAffinityTerm": _term(chance, app)}]
        spec["affinity"] = {
            chance.choice(("podAffinity", "podAntiAffinity")): {PREFERRED: preferred}
        }
    elif kind < 0.14:
        port = chance.choice((8080, 9090))
        spec["containers"][0]["ports"] = [_host_port(port)]
    elif kind < 0.2:
        spec["volumes"] = [_volume(claims.bound(namespace))]
    metadata: Json = {
        "name": f"{app}-{number:04}",
        "namespace": namespace,
        "uid": f"placed-{number:04}",
        "labels": {"app": app, "tier": chance.choice(("front", "back"))},
    }
    if chance.random() < 0.02:
        metadata["deletionTimestamp"] = "2026-02-01T00:00:00Z"
        metadata["deletionGracePeriodSeconds"] = 30
    hour, second = divmod(number, 3600)
    start = f"2026-01-{1 + hour:02}T10:{second // 60:02}:{second % 60:02}Z"
    status = {"phase": "Running", "startTime": start}
    return {"metadata": metadata, "spec": spec, "status": status}


def incoming_pod(
    chance: random.Random,
    claims: Claims,
    *,
    nodes: list[Json],
    is_full: bool,
    with_volumes: bool = True,
) -> Json:
    app = chance.choice(APPS)
    namespace = chance.choice(("shop", "data"))
    cpu_milli = chance.choice((1500, 3000)) if is_full else chance.choice((100, 500, 1500))
    spec: Json = {
        "containers": [_container(app, cpu_milli, chance.choice((128, 1024)))],
        "schedulerName": "default-scheduler",
        "priority": chance.choice((100, 1000, 5000)) if is_full else 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    if chance.random() < 0.4:
        spec["tolerations"] = _tolerations(chance)
    affinity = _affinity(chance, app, nodes)
    if affinity:
        spec["affinity"] = affinity
    if chance.random() < 0.2:
        spec["nodeSelector"] = {"disk": chance.choice(("ssd", "nvme"))}
    if chance.random() < 0.45:
        spec["topologySpreadConstraints"] = [
            _constraint(chance, app, key) for key in chance.sample(TOPOLOGIES, chance.randint(1, 2))
        ]
    if chance.random() < 0.15:
        spec["containers"][0]["ports"] = [_host_port(8080)]
    if chance.random() < 0.1:
        amounts = spec["containers"][0]["resources"]
        amounts["requests"]["example.com/accelerator"] = "1"
        amounts["limits"] = {"example.com/accelerator": "1"}
    if with_volumes and chance.random() < (0.15 if is_full else 0.35):
        claim = claims.bound if chance.random() < 0.4 else claims.unbound
        spec["volumes"] = [_volume(claim(namespace))]
    metadata = {
        "name": f"{app}-new",
        "namespace": namespace,
        "uid": "new",
        "labels": {"app": app, "tier": "front"},
    }
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _affinity(chance: random.Random, app: str, nodes: list[Json]) -> Json:
    affinity: Json = {}
    kind = chance.random()
    if kind < 0.12:
        names = chance.sample([node["metadata"]["name"] for node in nodes], chance.randint(1, 5))
        fields = [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
            for name in names
        ]
        affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": fields}}
    elif kind < 0.35:
        expression = {"key": "generation", "operator": "Gt", "values": [str(chance.randint(1, 4))]}
        terms = [{"matchExpressions": [expression]}]
        affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
    if chance.random() < 0.3:
        expression = {"key": "disk", "operator": "NotIn", "values": ["hdd"]}
        preferred = [
            {"weight": chance.randint(1, 100), "preference": {"matchExpressions": [expression]}}
        ]
        affinity.setdefault("nodeAffinity", {})[PREFERRED] = preferred
    if chance.random() < 0.25:
        affinity["podAntiAffinity"] = {REQUIRED: [_term(chance, app)]}
    if chance.random() < 0.25:
        preferred = [
            {"weight": chance.randint(1, 100), "podAffinityTerm": _term(chance, other)}
            for other in chance.sample(APPS, 2)
        ]
        affinity["podAffinity"] = {PREFERRED: preferred}
    elif chance.random() < 0.2:
        affinity["podAffinity"] = {REQUIRED: [_term(chance, chance.choice(APPS))]}
    return affinity


def _term(chance: random.Random, app: str) -> Json:
    term: Json = {
        "topologyKey": chance.choice(TOPOLOGIES),
        "labelSelector": {"matchLabels": {"app": app, "tier": "front"}},
    }
    if chance.random() < 0.3:
        term["namespaceSelector"] = {"matchLabels": {"team": "back"}}
    elif chance.random() < 0.3:
        term["namespaces"] = ["shop", "data"]
    return term


def _constraint(chance: random.Random, app: str, key: str) -> Json:
    when = chance.choice(("DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway"))
    constraint: Json = {
        "maxSkew": chance.randint(1, 6),
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": app}},
        "nodeAffinityPolicy": chance.choice(("Honor", "Ignore")),
        "nodeTaintsPolicy": chance.choice(("Honor", "Ignore")),
    }
    if when == "DoNotSchedule" and chance.random() < 0.3:
        constraint["minDomains"] = chance.randint(2, 6)
    return constraint


def _tolerations(chance: random.Random) -> list[Json]:
    all_of_them: list[Json] = [
        {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Exists"},
        {"key": "spot", "operator": "Exists", "effect": "PreferNoSchedule"},
    ]
    return chance.sample(all_of_them, chance.randint(1, 2))


def _container(app: str, cpu_milli: int, memory_mebi: int) -> Json:
    requests = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mebi}Mi"}
    return {"name": "main", "image": IMAGE[app], "resources": {"requests": requests}}


def _host_port(port: int) -> Json:
    return {"containerPort": port, "hostPort": port, "protocol": "TCP"}


def _volume(claim: str) -> Json:
    return {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
