"""Claims, volumes, storage classes and CSI drivers with the fields that the volume plugins read."""

from lowtide.objects.meta import LabelSelector, ObjectMeta, Wire, as_int32
from lowtide.objects.pod import NodeSelector, Quantities, ResourceRequirements
from lowtide.objects.quantity import Quantity
from lowtide.objects.volumes import MigratedDisks

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

# Takes precedence over the field storageClassName, as in Kubernetes.
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class ClaimReference(Wire, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CsiSource(Wire, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Wire, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(MigratedDisks, frozen=True):
    capacity: Quantities = {}
    access_modes: list[str] = []
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str = ""
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None


class PersistentVolumeStatus(Wire, frozen=True):
    phase: str = ""


class PersistentVolume(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def class_name(self) -> str:
        return self.metadata.annotations.get(_CLASS_ANNOTATION, self.spec.storage_class_name)


class PersistentVolumeClaimSpec(Wire, frozen=True):
    access_modes: list[str] = []
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str = ""


class PersistentVolumeClaimStatus(Wire, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def key(self) -> str:
        """`namespace/name`, as users write it."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def class_name(self) -> str:
        return self.metadata.annotations.get(_CLASS_ANNOTATION, self.spec.storage_class_name)

    @property
    def is_bound(self) -> bool:
        """True if the claim has a volume and the volume controller has completed the binding."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def selected_node(self) -> str | None:
        """The node that the volume is provisioned for; None before a pod with it is placed."""
        return self.metadata.annotations.get(SELECTED_NODE)

    def is_made_for(self, namespace: str, uid: str) -> bool:
        """True if the pod with this uid owns the claim, as required for an ephemeral volume."""
        owner = next((each for each in self.metadata.owner_references if each.controller), None)
        return self.metadata.namespace == namespace and owner is not None and owner.uid == uid


class TopologyLabelRequirement(Wire, frozen=True):
    key: str = ""
    values: list[str] = []


class TopologySelectorTerm(Wire, frozen=True):
    match_label_expressions: list[TopologyLabelRequirement] = []


class StorageClass(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[TopologySelectorTerm] = []


class VolumeNodeResources(Wire, frozen=True):
    count: int | None = None


class CsiNodeDriver(Wire, frozen=True):
    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CsiNodeSpec(Wire, frozen=True):
    drivers: list[CsiNodeDriver] = []


class CSINode(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CsiNodeSpec = CsiNodeSpec()

    @property
    def migrated_plugins(self) -> set[str]:
        """The in-tree drivers whose disks CSI drivers serve on this node."""
        return set(self.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")) - {""}

    @property
    def attach_limits(self) -> dict[str, int]:
        """The most volumes that may be attached, by driver. Drivers without a limit are absent."""
        return {
            driver.name: as_int32(driver.allocatable.count)
            for driver in self.spec.drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        }


class CsiDriverSpec(Wire, frozen=True):
    storage_capacity: bool = False


class CSIDriver(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CsiDriverSpec = CsiDriverSpec()


class CSIStorageCapacity(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class AttachmentSource(Wire, frozen=True):
    persistent_volume_name: str = ""


class VolumeAttachmentSpec(Wire, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
