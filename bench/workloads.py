"""What drains are made of, after scheduler_perf: the nodes, what is there before, and the pods.

Read by drain; all pods name one scheduler, so that whoever takes the turn finds the same."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

SCHEDULER_NAME = "bench"
BEFORE = "sched-0"
MEASURED = "sched-1"
CHURNING = "sched-churn"
NAMESPACES = (BEFORE, MEASURED, CHURNING)
HIGH_PRIORITY = "high"
# The label of nodes that come and go.
CHURNED = "bench.example/churned"
MOST_PODS = 3000

ZONES = 10
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
_IMAGE = "registry.k8s.io/pause:3.10"
_IMAGES_PER_NODE = 20


@dataclass(frozen=True, slots=True)
class Kind:
    """`pod` makes the spec of the n-th measured pod, `before` the pods that are there already
    for so many nodes; `labels` are the measured pods'."""

    pod: Callable[[int], Object]
    before: Callable[[int], Iterator[Object]] = lambda nodes: iter(())
    labels: Mapping[str, str] | None = None
    # As many as fit: one for each node's share of this, and never above `most_pods`.
    pods_per_node: float = 30.0
    most_pods: int = MOST_PODS
    has_churn: bool = False
    # Whether the pods before bear marks of whoever tried to place them, and are made anew.
    is_spent_by_trying: bool = False
    has_priority_and_fairness: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    nodes: int
    pods: int

    @classmethod
    def named(cls, name: str, nodes: int) -> "Workload":
        kind = KINDS[name]
        return cls(name, nodes, min(kind.most_pods, int(kind.pods_per_node * nodes)))

    def __str__(self) -> str:
        return f"{self.name}/{self.nodes}"

    @property
    def has_churn(self) -> bool:
        return KINDS[self.name].has_churn

    @property
    def is_spent_by_trying(self) -> bool:
        return KINDS[self.name].is_spent_by_trying

    @property
    def has_priority_and_fairness(self) -> bool:
        return KINDS[self.name].has_priority_and_fairness

    def make_nodes(self) -> Iterator[Object]:
        return map(make_zoned_node, range(self.nodes))

    def make_pods_before(self) -> Iterator[Object]:
        return KINDS[self.name].before(self.nodes)

    def make_pods(self) -> Iterator[Object]:
        kind = KINDS[self.name]
        for number in range(self.pods):
            yield make_pod(f"pod-{number:05}", MEASURED, kind.pod(number), labels=kind.labels)


# Pods, by what makes them special.


def _plain(number: int) -> Object:
    return requests("100m", "500Mi")


def _of_mixed_size(number: int) -> Object:
    """Twelve sizes in turn, from small to a sixteenth of a node."""
    cpu_milli = (50, 100, 250, 500, 1000, 2000)[number % 6]
    memory_mib = (128, 512, 1024, 4096)[number % 4]
    return requests(f"{cpu_milli}m", f"{memory_mib}Mi")


def _with_node_affinity(number: int) -> Object:
    """Half of the zones will do."""
    zones = [zone_name(each) for each in range(ZONES // 2)]
    expression = {"key": ZONE, "operator": "In", "values": zones}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return _plain(number) | {"affinity": {"nodeAffinity": required}}


def _spread(when_unsatisfiable: str) -> Callable[[int], Object]:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": {"matchLabels": {"color": "blue"}},
    }
    return lambda number: _plain(number) | {"topologySpreadConstraints": [constraint]}


def _with_pod_affinity(kind: str, color: str, topology_key: str) -> Callable[[int], Object]:
    term = {
        "labelSelector": {"matchLabels": {"color": color}},
        "topologyKey": topology_key,
        "namespaces": [BEFORE, MEASURED],
    }
    affinity = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return lambda number: _plain(number) | {"affinity": affinity}


_APART = _with_pod_affinity("podAntiAffinity", "green", HOST)
_TOGETHER = _with_pod_affinity("podAffinity", "blue", ZONE)


def _preempting(number: int) -> Object:
    """Three of the four pods on a node have to go for it."""
    return requests("24", "500Mi") | {"priorityClassName": HIGH_PRIORITY}


# Pods that are there before.


def _one_on_every_fifth_node(
    spec: Callable[[int], Object], color: str | None = None
) -> Callable[[int], Iterator[Object]]:
    """In every zone."""
    labels = None if color is None else {"color": color}

    def before(nodes: int) -> Iterator[Object]:
        for number in range(0, nodes, 5):
            # Five and the ten zones have a divisor in common: without this step half stay empty.
            node = (number + number // 10 % 5) % nodes
            bound = spec(number) | {"nodeName": node_name(node)}
            yield make_pod(f"before-{number:05}", BEFORE, bound, labels=labels)

    return before


def _full_nodes(nodes: int) -> Iterator[Object]:
    """Four pods without a priority on each node, which leave no room for a large one."""
    for number in range(4 * nodes):
        spec = requests("7200m", "500Mi") | {"nodeName": node_name(number % nodes)}
        yield make_pod(f"low-{number:05}", BEFORE, spec)


def _that_fit_nowhere(nodes: int) -> Iterator[Object]:
    """A tenth of the nodes' number of pods that are larger than any node."""
    for number in range(nodes // 10):
        yield make_pod(f"large-{number:05}", BEFORE, requests("64", "500Mi"))


def _gated(nodes: int) -> Iterator[Object]:
    """As many as nodes, and with affinity, so that looking at them would cost."""
    gates = {"schedulingGates": [{"name": "bench.example/closed"}]}
    for number in range(nodes):
        spec = _TOGETHER(number) | gates
        yield make_pod(f"gated-{number:05}", BEFORE, spec, labels={"color": "blue"})


KINDS = {
    "basic": Kind(_plain),
    "mixed-sizes": Kind(_of_mixed_size),
    "node-affinity": Kind(_with_node_affinity),
    "spread-preferred": Kind(
        _spread("ScheduleAnyway"), _one_on_every_fifth_node(_plain), {"color": "blue"}
    ),
    "spread-required": Kind(
        _spread("DoNotSchedule"), _one_on_every_fifth_node(_plain), {"color": "blue"}
    ),
    "anti-affinity": Kind(
        _APART, _one_on_every_fifth_node(_APART, "green"), {"color": "green"}, pods_per_node=0.6
    ),
    "affinity": Kind(_TOGETHER, _one_on_every_fifth_node(_TOGETHER, "blue"), {"color": "blue"}),
    "preemption": Kind(_preempting, _full_nodes, pods_per_node=0.5, most_pods=500),
    "churn": Kind(_plain, has_churn=True),
    "backlog": Kind(_plain, _that_fit_nowhere, is_spent_by_trying=True),
    "gated": Kind(_plain, _gated),
    "fair": Kind(_plain, has_priority_and_fairness=True),
    "traffic": Kind(_plain),
    "steady": Kind(_plain),
}
# What drains are made of at every size; the others are benchmarks of their own.
DRAINED = tuple(name for name in KINDS if name not in ("fair", "traffic", "steady"))


def make_priority_class() -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": HIGH_PRIORITY},
        "value": 10,
    }


def make_namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def make_zoned_node(number: int) -> Object:
    """A node with what a cloud's nodes say about themselves, about 4 kB of it."""
    node = make_node(number)
    node["metadata"]["labels"] |= {
        ZONE: zone_name(number),
        "topology.kubernetes.io/region": "region-1",
        "node.kubernetes.io/instance-type": f"type-{number % 5}",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }
    address = f"10.{number // 62500}.{number // 250 % 250}.{number % 250 + 1}"
    node["status"] |= {
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": node["metadata"]["name"]},
        ],
        "images": [
            {
                "names": [f"registry.example/team-{each % 4}/app-{each}:v1.{number % 7}.{each}"],
                "sizeBytes": 50_000_000 + 7_000_000 * each,
            }
            for each in range(_IMAGES_PER_NODE)
        ],
    }
    return node


def make_node(number: int) -> Object:
    name = node_name(number)
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name}},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def make_pod(
    name: str, namespace: str, spec: Object, *, labels: Mapping[str, str] | None = None
) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": {"schedulerName": SCHEDULER_NAME, "terminationGracePeriodSeconds": 0, **spec},
    }


def node_name(number: int) -> str:
    return f"node-{number:05}"


def zone_name(number: int) -> str:
    return f"zone-{number % ZONES}"


def requests(cpu: str, memory: str) -> Object:
    """The spec of a pod that asks for so much and nothing else."""
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    return {"containers": [{"name": "main", "image": _IMAGE, "resources": resources}]}
