"""Which pods use which claims and disks, and on which nodes.

ClusterState counts pods in and out; rules ask by `nodes.volumes`."""

from collections.abc import Iterator, Mapping

from lowtide.cluster.placed import PlacedPod
from lowtide.objects.pod import Pod
from lowtide.objects.volumes import Volume

# What pods can have in common: a claim, or a disk that they name themselves.
Held = tuple[str, ...]


def claim_held(namespace: str, name: str) -> Held:
    return ("claim", namespace, name)


def disk_held(volume: Volume) -> Held | None:
    """None where the volume is no disk that can be in another pod's way."""
    if volume.gce_persistent_disk is not None:
        return ("gce", volume.gce_persistent_disk.pd_name)
    if volume.aws_elastic_block_store is not None:
        return ("aws", volume.aws_elastic_block_store.volume_id)
    if volume.iscsi is not None:
        return ("iscsi", volume.iscsi.iqn)
    if volume.rbd is not None:
        return ("rbd", volume.rbd.pool, volume.rbd.image)
    return None


def held_by(pod: Pod) -> Iterator[Held]:
    """What the pod holds, ephemeral volumes' claims too; twice what two of its volumes name."""
    for volume in pod.spec.volumes:
        name = volume.claim_name(pod.name)
        held = disk_held(volume) if name is None else claim_held(pod.namespace, name)
        if held is not None:
            yield held


class VolumeHolders:
    def __init__(self) -> None:
        self._pods: dict[Held, dict[str, dict[str, Pod]]] = {}  # by node name and uid

    def count_in(self, placed: PlacedPod) -> None:
        for held in held_by(placed.pod):
            by_node = self._pods.setdefault(held, {})
            by_node.setdefault(placed.node_name, {})[placed.pod.uid] = placed.pod

    def count_out(self, placed: PlacedPod) -> None:
        for held in set(held_by(placed.pod)):
            by_node = self._pods[held]
            del by_node[placed.node_name][placed.pod.uid]
            if not by_node[placed.node_name]:
                del by_node[placed.node_name]
            if not by_node:
                del self._pods[held]

    def of(self, held: Held) -> Mapping[str, Mapping[str, Pod]]:
        """By node name, known or not, and uid."""
        return self._pods.get(held, {})
