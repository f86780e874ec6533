"""The pods of a full cluster, as controllers and kubelets leave them there. Used by ready."""

import random
from collections.abc import Iterator
from typing import Any

from workloads import node_name

Object = dict[str, Any]

NAMESPACE = "default"
_CREATED_BY_HASH = "7c9d8b6f5"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_PODS_PER_APP = 20


def make_running_pods(count: int, node_count: int) -> Iterator[Object]:
    """Of Deployments with 20 pods each, spread over the nodes."""
    chance = random.Random(1)
    for number in range(count):
        app = f"app-{number // _PODS_PER_APP:04}"
        suffix = "".join(chance.choices(_LETTERS, k=5))
        yield _running_pod(app, f"{app}-{_CREATED_BY_HASH}-{number:05}{suffix}", number, node_count)


def make_canary(name: str, scheduler_name: str) -> Object:
    """A pending pod whose binding shows that a scheduler schedules."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "schedulerName": scheduler_name,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "registry.example/canary:v1"}],
        },
    }


def _running_pod(app: str, name: str, number: int, node_count: int) -> Object:
    token = f"kube-api-access-{name[-5:]}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {
                "app.kubernetes.io/name": app,
                "app.kubernetes.io/part-of": f"shop-{number % 40}",
                "app.kubernetes.io/managed-by": "Helm",
                "team": f"team-{number % 12}",
                "pod-template-hash": _CREATED_BY_HASH,
            },
            "annotations": {
                "checksum/config": f"{hash_like(app)}",
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "8080",
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{app}-{_CREATED_BY_HASH}",
                    "uid": f"5ca1ab1e-0000-4000-8000-{number // _PODS_PER_APP:012}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodeName": node_name(number % node_count),
            "serviceAccountName": "default",
            "containers": [
                _container("main", app, "250m", "512Mi", token),
                _container("sidecar", "proxy", "50m", "64Mi", token),
            ],
            "volumes": [
                {"name": "config", "configMap": {"name": f"{app}-config"}},
                {"name": "scratch", "emptyDir": {}},
                {
                    "name": token,
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
                        ]
                    },
                },
            ],
        },
        "status": _status(number, app),
    }


def _container(name: str, image: str, cpu: str, memory: str, token: str) -> Object:
    amounts = {"cpu": cpu, "memory": memory}
    return {
        "name": name,
        "image": f"registry.example/team/{image}:v1.4.2",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "DATABASE_URL", "value": f"postgres://db.{image}.svc:5432/{image}"},
        ],
        "resources": {"requests": amounts, "limits": {"memory": memory}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/config"},
            {"name": token, "mountPath": "/var/run/secrets/account", "readOnly": True},
        ],
    }


def _status(number: int, app: str) -> Object:
    """As a kubelet writes it."""
    address = f"10.{64 + number // 62_500}.{number // 250 % 250}.{number % 250 + 1}"
    conditions = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    hours, minutes, seconds = number // 3600 % 24, number // 60 % 60, number % 60
    started_at = f"2026-01-01T{hours:02}:{minutes:02}:{seconds:02}Z"
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "hostIP": "10.0.0.1",
        "startTime": started_at,
        "conditions": [
            {"type": each, "status": "True", "lastTransitionTime": started_at}
            for each in conditions
        ],
        "containerStatuses": [
            {
                "name": name,
                "image": f"registry.example/team/{image}:v1.4.2",
                "imageID": f"registry.example/team/{image}@sha256:{hash_like(image) * 4}",
                "containerID": f"containerd://{number:064}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": started_at}},
            }
            for name, image in (("main", app), ("sidecar", "proxy"))
        ],
    }


def hash_like(word: str) -> str:
    """16 hexadecimal digits, the same for one word."""
    return f"{int.from_bytes(word.encode()[-8:].rjust(8, b'#'), 'big'):016x}"
