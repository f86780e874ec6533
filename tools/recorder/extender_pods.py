"""The small cluster on which a kube-scheduler asks an extender: its nodes, and pods that differ in
what they say of themselves.

Used by extender_requests."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

NAMESPACE = "default"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
DISK = "disk.example.com/kind"
NODE_NAMES = ("tide-north", "tide-east", "tide-south", "tide-west")
FILLED_NODES = ("tide-north", "tide-east")  # each has one victim
PRIORITIES = {"spare": -10, "urgent": 1000}


def nodes() -> list[Json]:
    return [_node(number, name) for number, name in enumerate(NODE_NAMES)]


def _node(number: int, name: str) -> Json:
    resources = {
        "cpu": "4",
        "memory": "16Gi",
        "pods": "110",
        "ephemeral-storage": "95551679124",
        "hugepages-2Mi": "0",
        **({"example.com/accelerator": "2"} if name == "tide-west" else {}),
    }
    taint = {"key": "example.com/reserved", "value": "database", "effect": "NoSchedule"}
    return {
        "metadata": {
            "name": name,
            "labels": {
                HOSTNAME: name,
                ZONE: f"bay-{number % 2}",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "node-role.kubernetes.io/worker": "",
                DISK: "ssd" if number % 2 else "spinning",
            },
            "annotations": {"example.com/remark": 'rack <7> & "window"\tüber\u2028 \\ 潮'},
        },
        "spec": {
            "podCIDR": f"10.244.{number}.0/24",
            "podCIDRs": [f"10.244.{number}.0/24"],
            "providerID": f"example://bay/{name}",
            "taints": [taint] if name == "tide-west" else [],
        },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [
                {"type": "InternalIP", "address": f"192.0.2.{number + 1}"},
                {"type": "Hostname", "address": name},
            ],
            "images": [
                {
                    "names": [f"registry.example/{image}@sha256:{'0' * 63}{number}"],
                    "sizeBytes": 10_000_000 * (number + 1),
                }
                for image in ("web", "database")
            ],
            "nodeInfo": {
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": "6.1.0",
                "osImage": "Example Linux",
                "containerRuntimeVersion": "containerd://2.0.0",
                "kubeletVersion": "v1.36.4",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }


def volume_and_claim() -> tuple[Json, Json]:
    """The controllers bind the two to each other."""
    volume = {
        "metadata": {"name": "shelf"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "hostPath": {"path": "/srv/shelf"},
            "claimRef": {"namespace": NAMESPACE, "name": "shelf"},
        },
    }
    claim = {
        "metadata": {"name": "shelf"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "volumeName": "shelf",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    return volume, claim


def budget() -> Json:
    """Protects the victim on the first of the filled nodes."""
    return {
        "metadata": {"name": "protects-one"},
        "spec": {
            "minAvailable": 1,
            "selector": {"matchLabels": {"app": f"victim-{FILLED_NODES[0]}"}},
        },
    }


def victims() -> list[Json]:
    return [
        _pod(
            f"victim-{name}",
            {
                "nodeName": name,
                "priorityClassName": "spare",
                "containers": [_container({"cpu": "3"})],
            },
        )
        for name in FILLED_NODES
    ]


def asked_about() -> list[Json]:
    """In this order; the last fits on the filled nodes only, and there only without a victim."""
    return [_plain(), _rich(), _with_volumes(), _urgent()]


def _plain() -> Json:
    return _pod("plain", {"containers": [_container({"cpu": "100m"})]})


def _rich() -> Json:
    return _pod(
        "rich",
        {
            "affinity": _affinity(),
            "tolerations": [
                {"key": "example.com/reserved", "operator": "Exists", "effect": "NoSchedule"},
                {
                    "key": "example.com/draining",
                    "operator": "Equal",
                    "value": "soon",
                    "effect": "NoExecute",
                    "tolerationSeconds": 30,
                },
            ],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": ZONE,
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": "rich"}},
                    "matchLabelKeys": ["pod-template-hash"],
                }
            ],
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "initContainers": [
                {**_container({"cpu": "200m"}), "name": "first"},
                {**_container({"memory": "32Mi"}), "name": "beside", "restartPolicy": "Always"},
            ],
            "containers": [
                {
                    **_container({"cpu": "250m", "memory": "64Mi", "ephemeral-storage": "1Gi"}),
                    "command": ["sh", "-c", "echo '<&>' \"$0\"; exec sleep inf"],
                    "env": [
                        {"name": "GREETING", "value": "Grüße \U0001f30a"},
                        {
                            "name": "NODE",
                            "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
                        },
                    ],
                    "ports": [{"containerPort": 8080, "hostPort": 8080, "protocol": "TCP"}],
                    "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
                    "securityContext": {"runAsNonRoot": True, "runAsUser": 10001},
                }
            ],
        },
        annotations={
            "lowtide.dev/expects-receive": "12Mbit",
            "example.com/remark": 'tabs\tand "quotes" and <angles> & \u2028 separators',
        },
    )


def _affinity() -> Json:
    apart = {
        "labelSelector": {
            "matchExpressions": [{"key": "app", "operator": "In", "values": ["rich", "richer"]}]
        },
        "topologyKey": HOSTNAME,
        "namespaceSelector": {},
    }
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": DISK, "operator": "In", "values": ["ssd", "spinning"]},
                            {"key": "example.com/absent", "operator": "DoesNotExist"},
                        ]
                    },
                    {
                        "matchFields": [
                            {
                                "key": "metadata.name",
                                "operator": "In",
                                "values": ["tide-north"],
                            }
                        ]
                    },
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 7,
                    "preference": {
                        "matchExpressions": [{"key": DISK, "operator": "In", "values": ["ssd"]}]
                    },
                }
            ],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 50,
                    "podAffinityTerm": {
                        "labelSelector": {"matchLabels": {"app": "plain"}},
                        "topologyKey": ZONE,
                    },
                }
            ]
        },
    }


def _with_volumes() -> Json:
    mounts = ("claim", "scratch", "settings", "secrets", "all", "host")
    mounted = [{"name": name, "mountPath": f"/mnt/{name}"} for name in mounts]
    return _pod(
        "with-volumes",
        {
            "containers": [{**_container({}), "volumeMounts": mounted}],
            "volumes": [
                {"name": "claim", "persistentVolumeClaim": {"claimName": "shelf"}},
                {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
                {"name": "settings", "configMap": {"name": "settings", "optional": True}},
                {"name": "secrets", "secret": {"secretName": "secrets", "optional": True}},
                {
                    "name": "all",
                    "projected": {
                        "sources": [
                            {"configMap": {"name": "settings", "optional": True}},
                            {
                                "downwardAPI": {
                                    "items": [
                                        {
                                            "path": "labels",
                                            "fieldRef": {"fieldPath": "metadata.labels"},
                                        }
                                    ]
                                }
                            },
                        ]
                    },
                },
                {"name": "host", "hostPath": {"path": "/srv/shelf", "type": "DirectoryOrCreate"}},
            ],
        },
    )


def _urgent() -> Json:
    on_filled_nodes = {"key": HOSTNAME, "operator": "In", "values": list(FILLED_NODES)}
    return _pod(
        "urgent",
        {
            "priorityClassName": "urgent",
            "containers": [_container({"cpu": "3"})],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [on_filled_nodes]}]
                    }
                }
            },
        },
    )


def _pod(name: str, spec: Mapping[str, Any], annotations: Mapping[str, str] | None = None) -> Json:
    return {
        "metadata": {
            "name": name,
            "labels": {"app": name, "pod-template-hash": "5d59d67564"},
            "annotations": dict(annotations or {}),
        },
        "spec": {"terminationGracePeriodSeconds": 0, **spec},
    }


def _container(requests: Mapping[str, str]) -> Json:
    return {
        "name": "main",
        "image": "registry.example/web:1",
        "resources": {"requests": dict(requests)},
    }
