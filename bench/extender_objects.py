"""Nodes, pods and requests as a large cluster has them on the wire, for the benchmark of the
extender: its cluster is made of them, and it is asked about them."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from many_nodes import NODES, node_name
from many_nodes import make_nodes as make_nodes_in_brief

Json = dict[str, Any]
Part = bytes | memoryview

NAMESPACE = "default"
SHAPES = 20
# Who asks with the first name is left every node, with the second every other one.
ALL, HALF = "everywhere", "every-other"
SCHEDULER_NAMES = (ALL, HALF)
IMAGES_PER_NODE = 50
_DIFFERENT_IMAGES = 600
_LABEL = "bench.example.com"


def label_of(scheduler_name: str) -> str:
    """Nodes without this label are rejected."""
    return f"{_LABEL}/{scheduler_name}"


def make_nodes() -> list[Json]:
    """As kubelets report them: about 13 kB each, most of it images."""
    chance = np.random.default_rng(7)
    images = [_image(number) for number in range(_DIFFERENT_IMAGES)]
    nodes: list[Json] = []
    for number, brief in enumerate(make_nodes_in_brief()):
        drawn = chance.choice(_DIFFERENT_IMAGES, IMAGES_PER_NODE, replace=False)
        labels = {**_node_labels(number), **brief.labels}
        addresses = [
            {"type": each.type, "address": each.address} for each in brief.status.addresses
        ]
        nodes.append(
            {
                "metadata": {
                    "name": brief.name,
                    "uid": _uid(f"node {number}"),
                    "resourceVersion": str(1_000_000 + number),
                    "creationTimestamp": "2026-01-05T08:00:00Z",
                    "labels": labels,
                    "annotations": _node_annotations(number),
                },
                "spec": {"podCIDR": f"10.{64 + number // 256}.{number % 256}.0/24"},
                "status": {
                    "capacity": _amounts("32", "65536Mi"),
                    "allocatable": _amounts("31850m", "62914Mi"),
                    "conditions": _conditions("2026-01-05T08:00:00Z"),
                    "addresses": [*addresses, {"type": "Hostname", "address": brief.name}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
                    "nodeInfo": _node_info(number),
                    "images": [images[each] for each in drawn],
                },
            }
        )
    return nodes


def with_heartbeat(node: Json, at: str) -> Json:
    return {**node, "status": {**node["status"], "conditions": _conditions(at)}}


def make_pod(number: int, scheduler_name: str) -> Json:
    """One of SHAPES shapes, with what the API server adds to every pod."""
    shape = number % SHAPES
    app = f"shop-{shape:02}"
    token = "kube-api-access-x7k2p"
    return {
        "metadata": {
            "name": f"{app}-7c9d8f5b6-{number:05}",
            "namespace": NAMESPACE,
            "labels": {"app.kubernetes.io/name": app, "pod-template-hash": "7c9d8f5b6"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{app}-7c9d8f5b6",
                    "uid": _uid(app),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "schedulerName": scheduler_name,
            "containers": [_container("main", shape), _container("proxy", shape)],
            "volumes": [
                {"name": "config", "configMap": {"name": app, "defaultMode": 420}},
                {
                    "name": token,
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
                        ],
                        "defaultMode": 420,
                    },
                },
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "securityContext": {},
            "affinity": _affinity(app) if shape % 2 else {},
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{state}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for state in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


class NamesInOrder:
    """The names of all nodes in some order, which can begin with any of them: kube-scheduler has
    them in another order for each pod. Whatever they begin with, it is the same bytes."""

    def __init__(self, chance: np.random.Generator) -> None:
        numbers = [int(each) for each in chance.permutation(NODES)]
        self._rings = {
            ALL: _Ring(node_name(each) for each in numbers),
            HALF: _Ring(node_name(each) for each in numbers if is_left(each, HALF)),
        }
        # Where in its ring the names of a scheduler go on from this position of all.
        left = [is_left(each, HALF) for each in numbers]
        self._half_before = [0, *itertools.accumulate(left)]

    def left_for(self, scheduler_name: str, first: int) -> memoryview:
        """JSON without the brackets: the nodes that are left, in the order of all."""
        at = first if scheduler_name == ALL else self._half_before[first]
        return self._rings[scheduler_name].beginning_with(at)


class _Ring:
    def __init__(self, names: Iterable[str]) -> None:
        quoted = [f'"{name}",'.encode() for name in names]
        self._starts = [0, *itertools.accumulate(map(len, quoted))]
        self._twice = memoryview(b"".join(quoted) * 2)

    def beginning_with(self, at: int) -> memoryview:
        length = self._starts[-1]
        start = self._starts[at] % length
        return self._twice[start : start + length - 1]


def is_left(number: int, scheduler_name: str) -> bool:
    return scheduler_name == ALL or number % 2 == 0


def names_body(pod: Json, names: memoryview) -> tuple[Part, ...]:
    return b'{"Pod":' + _encoded(pod) + b',"Nodes":null,"NodeNames":[', names, b"]}"


def nodes_body(pod: Json, nodes: bytes) -> tuple[Part, ...]:
    return b'{"Pod":' + _encoded(pod) + b',"Nodes":', nodes, b',"NodeNames":null}'


def nodes_as_json(nodes: Sequence[Json]) -> bytes:
    return _encoded({"metadata": {}, "items": nodes})


def _encoded(data: object) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


def _image(number: int) -> Json:
    repository = f"registry.example.com/platform/team-{number % 23:02}/service-{number:03}"
    digest = hashlib.sha256(repository.encode()).hexdigest()
    return {
        "names": [f"{repository}@sha256:{digest}", f"{repository}:v{1 + number % 9}.{number % 30}"],
        "sizeBytes": 20_000_000 + 731_337 * number,
    }


def _node_labels(number: int) -> dict[str, str]:
    halves = {label_of(HALF): "true"} if is_left(number, HALF) else {}
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": "region-1",
        "node.kubernetes.io/pool": f"pool-{number % 8}",
        "topology.example.com/rack": f"rack-{number // 40}",
        label_of(ALL): "true",
        **halves,
    }


def _node_annotations(number: int) -> dict[str, str]:
    return {
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        "csi.volume.kubernetes.io/nodeid": json.dumps({"disk.example.com": f"i-{number:017x}"}),
    }


def _amounts(cpu: str, memory: str) -> dict[str, str]:
    return {
        "cpu": cpu,
        "ephemeral-storage": "94489280512",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": memory,
        "pods": "110",
    }


def _conditions(at: str) -> list[Json]:
    said = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "sufficient PID available"),
        ("Ready", "True", "KubeletReady", "posting ready status"),
    ]
    return [
        {
            "type": type_,
            "status": status,
            "lastHeartbeatTime": at,
            "lastTransitionTime": "2026-01-05T08:00:00Z",
            "reason": reason,
            "message": f"kubelet has {message}",
        }
        for type_, status, reason, message in said
    ]


def _node_info(number: int) -> Json:
    return {
        "machineID": hashlib.md5(f"machine {number}".encode()).hexdigest(),
        "systemUUID": _uid(f"system {number}"),
        "bootID": _uid(f"boot {number}"),
        "kernelVersion": "6.12.8",
        "osImage": "Debian GNU/Linux 13 (trixie)",
        "containerRuntimeVersion": "containerd://2.1.4",
        "kubeletVersion": "v1.36.4",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def _container(name: str, shape: int) -> Json:
    return {
        "name": name,
        "image": f"registry.example.com/platform/{name}:v1.{shape}",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{each}", "value": f"value {each}"} for each in range(8)],
        "resources": {
            "requests": {"cpu": f"{100 + 10 * shape}m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config", "readOnly": True}],
        "readinessProbe": {
            "httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"},
            "periodSeconds": 10,
            "timeoutSeconds": 1,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _affinity(app: str) -> Json:
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {
                        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": app}},
                        "topologyKey": "kubernetes.io/hostname",
                    },
                }
            ]
        }
    }


def _uid(text: str) -> str:
    digest = hashlib.md5(text.encode()).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))
