"""The nodes of an embedded cluster as plain data, and the Node objects made from them.

Used by LocalCluster and the demo."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lowtide.localcluster.documents import Json
from lowtide.localcluster.traffic import Background, Link

GIGABIT_BYTES_PER_SECOND = 125_000_000


@dataclass(frozen=True, slots=True)
class LocalNode:
    name: str
    cpu: str = "8"
    memory: str = "32Gi"
    pods: int = 110
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    links: Sequence[Link] = (Link("eth0", 10 * GIGABIT_BYTES_PER_SECOND),)
    background: Background = field(default_factory=Background)


def node_object(node: LocalNode, address: str) -> Json:
    resources = {"cpu": node.cpu, "memory": node.memory, "pods": str(node.pods)}
    labels = {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **node.labels,
    }
    spec: Json = {}
    if node.taints:
        spec["taints"] = [dict(taint) for taint in node.taints]
    return {
        "metadata": {"name": node.name, "labels": labels},
        "spec": spec,
        "status": {
            "capacity": dict(resources),
            "allocatable": dict(resources),
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": node.name},
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "none://embedded",
                "kernelVersion": "6.12.0",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.0",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "Embedded",
                "systemUUID": "",
            },
        },
    }
