"""Node with the fields that plugins read."""

from lowtide.objects.meta import ObjectMeta, Wire
from lowtide.objects.pod import Quantities


class Taint(Wire, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeAddress(Wire, frozen=True):
    type: str = ""
    address: str = ""


class ContainerImage(Wire, frozen=True):
    names: list[str] = []
    size_bytes: int = 0


class NodeStatus(Wire, frozen=True):
    allocatable: Quantities = {}
    addresses: list[NodeAddress] = []
    images: list[ContainerImage] = []
    declared_features: list[str] = []


class Node(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels
