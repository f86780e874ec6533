"""Pod, as far as any rule reads it; and its shape, which pods of one template share."""

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

Amounts = dict[str, Quantity]


class ResourceRequirements(Wire, frozen=True):
    requests: Amounts = {}
    limits: Amounts = {}


class ContainerPort(Wire, frozen=True):
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class Container(Wire, frozen=True):
    name: str = ""
    image: str = ""
    ports: list[ContainerPort] = []
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""

    @property
    def is_sidecar(self) -> bool:
        """An init container that goes on running; meaningless for ordinary containers."""
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
    overhead: Amounts = {}
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
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    volumes: list[dict[str, object]] = []
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
    allocated_resources: Amounts = {}
    resources: ResourceRequirements | None = None


class PodStatus(Wire, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: list[PodCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    allocated_resources: Amounts = {}
    resources: ResourceRequirements | None = None


class Pod(Wire, frozen=True):
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
    def controller(self) -> OwnerReference | None:
        """What made this pod and keeps its like running."""
        return next((o for o in self.metadata.owner_references if o.controller), None)

    @property
    def started_at(self) -> float | None:
        """When its first running container began, in seconds since 1970; None before that."""
        begun = [
            status.state.running.started_at
            for status in self.status.container_statuses
            if status.state.running is not None and status.state.running.started_at
        ]
        if not begun and self.status.phase == "Running" and self.status.start_time:
            begun = [self.status.start_time]
        times = [seconds for text in begun if (seconds := epoch_seconds(text)) is not None]
        return min(times, default=None)


class _Shape(Wire, frozen=True):
    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]
    owners: list[tuple[str, str]]
    spec: PodSpec
    volumes: list[dict[str, object]]
    claims_of: str


# Volumes that no rule looks at. Every pod has a projected one with a random name, for its account.
_PRIVATE_VOLUMES = ("projected", "configMap", "secret", "downwardAPI", "emptyDir", "hostPath")

_encode_shape = msgspec.json.Encoder().encode


def shape_of(pod: Pod) -> bytes:
    """What rules may read of a pod, as a key: all of it but name, uid, times and status.

    A pod with ephemeral volumes or resource claims keeps its name and uid in it, because those
    claims are called after the pod.
    """
    meta, spec = pod.metadata, pod.spec
    volumes = spec.volumes
    if volumes:
        spec = msgspec.structs.replace(spec, volumes=[])
        volumes = [_without_name(each) for each in volumes if not _is_private(each)]
    named = bool(spec.resource_claims) or any("ephemeral" in volume for volume in volumes)
    return _encode_shape(
        _Shape(
            namespace=meta.namespace,
            labels=meta.labels,
            annotations=meta.annotations,
            owners=[(o.kind, o.uid or o.name) for o in meta.owner_references if o.controller],
            spec=spec,
            volumes=volumes,
            claims_of=f"{meta.name} {meta.uid}" if named else "",
        )
    )


def _is_private(volume: dict[str, object]) -> bool:
    return any(kind in volume for kind in _PRIVATE_VOLUMES)


def _without_name(volume: dict[str, object]) -> dict[str, object]:
    """An ephemeral volume's name is part of its claim's; no other matters to a rule."""
    if "ephemeral" in volume:
        return volume
    return {key: value for key, value in volume.items() if key != "name"}
