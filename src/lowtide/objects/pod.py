"""Pod with the fields that plugins read, and its signature, which pods of one template share."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import msgspec

from lowtide.objects.meta import (
    LabelRequirement,
    LabelSelector,
    ObjectMeta,
    OwnerReference,
    Wire,
)
from lowtide.objects.quantity import Quantity
from lowtide.objects.times import epoch_seconds
from lowtide.objects.volumes import Volume

Quantities = dict[str, Quantity]
T = TypeVar("T")


class ResourceRequirements(Wire, frozen=True):
    requests: Quantities = {}
    limits: Quantities = {}


class ContainerPort(Wire, frozen=True):
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class ContainerRestartRule(Wire, frozen=True):
    action: str = ""


class Container(Wire, frozen=True):
    name: str = ""
    image: str = ""
    ports: list[ContainerPort] = []
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""
    restart_policy_rules: list[ContainerRestartRule] = []

    @property
    def is_sidecar(self) -> bool:
        """True for an init container that keeps running; meaningless for ordinary containers."""
        return self.restart_policy == "Always"


class Toleration(Wire, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorTerm(Wire, frozen=True):
    match_expressions: list[LabelRequirement] = []
    match_fields: list[LabelRequirement] = []


class NodeSelector(Wire, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredNodeTerm(Wire, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True):
    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[PreferredNodeTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Wire, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(Wire, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire, frozen=True):
    required: list[PodAffinityTerm] = msgspec.field(
        default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Wire, frozen=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: list[str] = []


class SchedulingGate(Wire, frozen=True):
    name: str = ""


class PodResourceClaim(Wire, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Wire, frozen=True):
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: Quantities = {}
    resources: ResourceRequirements | None = None
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    scheduler_name: str = "default-scheduler"
    priority: int = 0
    preemption_policy: str = ""
    scheduling_gates: list[SchedulingGate] = []
    host_network: bool = False
    host_users: bool | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    volumes: list[Volume] = []
    resource_claims: list[PodResourceClaim] = []


class PodCondition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None


class ContainerStateRunning(Wire, frozen=True):
    started_at: str | None = None


class ContainerState(Wire, frozen=True):
    running: ContainerStateRunning | None = None


class ContainerStatus(Wire, frozen=True):
    name: str = ""
    state: ContainerState = ContainerState()
    restart_count: int = 0
    allocated_resources: Quantities = {}
    resources: ResourceRequirements | None = None


class PodStatus(Wire, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: list[PodCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    allocated_resources: Quantities = {}
    resources: ResourceRequirements | None = None


class Pod(Wire, frozen=True, dict=True, gc=True):
    """A Pod is never changed, only replaced, so derived values can be cached on it (`once`). Such a
    struct with a `__dict__` needs `gc=True`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def key(self) -> str:
        """`namespace/name`, as users write it."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def has_ended(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_rejected(self) -> bool:
        """True if a scheduler reported that the pod is not scheduled (PodScheduled is False)."""
        return any(c.type == "PodScheduled" and c.status == "False" for c in self.status.conditions)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this pod, such as its ReplicaSet; None if it has none."""
        for owner in self.metadata.owner_references:
            if owner.controller:
                return owner
        return None

    @property
    def started_at(self) -> float | None:
        """When the first container started, in seconds since 1970; None before that. A container's
        status loses that time when it restarts: the pod's start time counts then."""
        containers, start_time = self.status.container_statuses, self.status.start_time
        if not containers and not start_time:
            return None
        begun = [
            each.state.running.started_at
            for each in containers
            if each.state.running is not None and each.state.running.started_at
        ]
        if start_time and (
            any(each.restart_count for each in containers)
            or (not begun and self.status.phase == "Running")
        ):
            begun = [start_time]
        times = [seconds for text in begun if (seconds := epoch_seconds(text)) is not None]
        return min(times, default=None)


def once(work_out: Callable[[Pod], T]) -> Callable[[Pod], T]:
    """Decorate a function so that it runs once per Pod object; the result is cached on the pod.
    Callers must not change the result."""
    name = f"{work_out.__module__}.{work_out.__qualname__}"

    @wraps(work_out)
    def known(pod: Pod) -> T:
        kept: dict[str, T] = pod.__dict__
        if name not in kept:
            kept[name] = work_out(pod)
        return kept[name]

    return known


class _Signature(Wire, frozen=True):
    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]
    controllers: list[OwnerReference]
    spec: PodSpec
    volumes: list[Volume]
    claims_of: str


# What is left of a volume that no plugin reads, such as the token volume with a random name that
# every pod gets for its service account.
_NO_SOURCE = Volume()

_encode_signature = msgspec.json.Encoder().encode
_encode_pod = msgspec.json.Encoder().encode

# Bytes of memory per byte, comma and object of a pod's JSON, each for the most expensive case, so
# that hardly any pod takes more than the estimate.
_BYTES_PER_BYTE = 4
_BYTES_PER_COMMA = 60
_BYTES_PER_OBJECT = 200


def bytes_in_memory(pod: Pod) -> int:
    """Estimate the memory of a decoded pod; up to twice too much for ordinary pods. The length of
    the JSON alone is not enough, because `{}` becomes an object of up to 240 bytes."""
    json = _encode_pod(pod)
    objects, commas = json.count(b"{"), json.count(b",")
    return _BYTES_PER_BYTE * len(json) + _BYTES_PER_COMMA * commas + _BYTES_PER_OBJECT * objects


def signature_of(pod: Pod) -> bytes:
    """The pod's signature, as a key: all that plugins may read, so no name, uid, times and status.

    For pods with ephemeral volumes or resource claims it includes name and uid, because those
    claims are named after the pod.
    """
    meta, spec = pod.metadata, pod.spec
    volumes, named = spec.volumes, bool(spec.resource_claims)
    if volumes:
        spec = msgspec.structs.replace(spec, volumes=[])
        volumes = [each for each in map(_without_name, volumes) if each != _NO_SOURCE]
        named = named or any(volume.ephemeral for volume in volumes)
    return _encode_signature(
        _Signature(
            namespace=meta.namespace,
            labels=meta.labels,
            annotations=meta.annotations,
            controllers=[owner for owner in meta.owner_references if owner.controller],
            spec=spec,
            volumes=volumes,
            claims_of=f"{meta.name} {meta.uid}" if named else "",
        )
    )


def _without_name(volume: Volume) -> Volume:
    """The volume without its name, unless it is ephemeral: then its claim's name depends on it."""
    return volume if volume.ephemeral else msgspec.structs.replace(volume, name="")
