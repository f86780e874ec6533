"""The volumes of a pod with the sources that plugins read; PersistentVolume shares some of them.

Of volumes with other sources, only the name is decoded.
"""

import msgspec

from lowtide.objects.meta import Wire


class ClaimSource(Wire, frozen=True):
    claim_name: str = ""


class EphemeralSource(Wire, frozen=True):
    """A claim that is created for one pod and named after it."""


class ImageSource(Wire, frozen=True):
    reference: str = ""


class GcePersistentDisk(Wire, frozen=True):
    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStore(Wire, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class Iscsi(Wire, frozen=True):
    iqn: str = ""
    read_only: bool = False


class Rbd(Wire, frozen=True):
    monitors: list[str] = []
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class AzureDisk(Wire, frozen=True):
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str = "Shared"


class CinderVolume(Wire, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolume(Wire, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class MigratedDisks(Wire, frozen=True):
    """Disks of in-tree drivers that CSI drivers serve today. At most one field is set."""

    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderVolume | None = None
    portworx_volume: PortworxVolume | None = None


class Volume(MigratedDisks, frozen=True):
    """At most one source is set."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    image: ImageSource | None = None
    iscsi: Iscsi | None = None
    rbd: Rbd | None = None

    @property
    def has_source(self) -> bool:
        """True if the volume has a source that plugins read, unlike a pod's token volume."""
        return self != Volume(name=self.name)

    def claim_name(self, pod_name: str) -> str | None:
        """The name of the volume's claim in the pod's namespace; None if it has none."""
        if self.persistent_volume_claim is not None:
            return self.persistent_volume_claim.claim_name
        return f"{pod_name}-{self.name}" if self.ephemeral is not None else None
