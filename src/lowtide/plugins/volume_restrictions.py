"""VolumeRestrictions: rejects nodes where another pod uses the same disk (named in the pod itself),
unless its kind allows several readers and all mount it read-only. Also rejects a pod with a
ReadWriteOncePod claim that another pod uses."""

from collections.abc import Iterator

import numpy as np

from lowtide.cluster.indexes.volumes import claim_key, disk_key
from lowtide.framework.plugin import (
    OBJECTS,
    OTHERS,
    PODS,
    BoolArray,
    Change,
    IntArray,
    Nodes,
    Pod,
    PodRejection,
    Rejection,
)
from lowtide.objects.node import Node
from lowtide.objects.storage import PersistentVolumeClaim
from lowtide.objects.volumes import Volume
from lowtide.plugins.volume_claims import has_volumes, not_found, uses_claim

READ_WRITE_ONCE_POD = "ReadWriteOncePod"

_DISK_TAKEN = "node(s) had no available disk"
_CLAIM_TAKEN = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)


class VolumeRestrictions:
    name = "VolumeRestrictions"
    retry_on = PODS | OTHERS | OBJECTS
    kinds = (PersistentVolumeClaim,)

    def concerns(self, pod: Pod) -> bool:
        return has_volumes(pod)

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | None:
        for name in _claim_names(pod):
            if (pod.namespace, name) not in nodes.objects(PersistentVolumeClaim):
                return PodRejection(not_found(name))
        return None

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        disks = [each for each in pod.spec.volumes if disk_key(each) is not None]
        claims = _claims_for_one_pod(pod, nodes)
        if not disks and not claims:
            return
        is_taken = np.zeros(len(nodes), np.bool_)
        for disk in disks:
            is_taken |= _is_taken(disk, nodes)
        yield Rejection(is_taken, _DISK_TAKEN, eviction_helps=True)
        is_used = _uses_of(claims, pod, nodes, is_asked=bool(disks)) > 0
        yield Rejection(is_used & ~is_taken, _CLAIM_TAKEN, eviction_helps=True)

    def may_help(self, pod: Pod, change: Change) -> bool:
        before, after = change.before, change.after
        match change.thing:
            case Node():  # a removed node takes its pods along
                return before is None or after is None or change.is_of_taints
            case PersistentVolumeClaim() as claim if before is None:
                return uses_claim(pod, claim)
            case PersistentVolumeClaim() as claim:
                has_changed = (
                    after is not None and before.spec.access_modes != after.spec.access_modes
                )
                return has_changed and uses_claim(pod, claim)
        return change.is_over(lambda other: _is_in_the_way(other, pod))


def _claim_names(pod: Pod) -> Iterator[str]:
    """The claims that the pod names. Ephemeral volumes always belong to one pod."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def _claims_for_one_pod(pod: Pod, nodes: Nodes) -> set[str]:
    return {
        name
        for name in _claim_names(pod)
        if (claim := nodes.objects(PersistentVolumeClaim).get((pod.namespace, name))) is not None
        and READ_WRITE_ONCE_POD in claim.spec.access_modes
    }


def _uses_of(claims: set[str], pod: Pod, nodes: Nodes, *, is_asked: bool) -> IntArray:
    """By position: how many of the claims are used by pods on any node. Hypothetical pods count for
    their own node only, and by claim name alone, as in kube-scheduler."""
    everywhere = sum(
        any(
            True
            for _, other in nodes.everything.volumes.pods_using(claim_key(pod.namespace, name))
            if name in _claim_names(other)
        )
        for name in claims
    )
    uses = np.full(len(nodes), everywhere, np.int64)
    if claims and (everywhere or is_asked):  # otherwise kube-scheduler skips this plugin
        for position, pod_there, times in nodes.hypothetical_pods():
            uses[position] += times * sum(name in claims for name in _claim_names(pod_there))
    return uses


def _is_taken(disk: Volume, nodes: Nodes) -> BoolArray:
    is_taken = np.zeros(len(nodes), np.bool_)
    held = disk_key(disk)
    assert held is not None
    for position, pod in nodes.volumes.pods_using(held):
        for other in pod.spec.volumes:
            if disk_key(other) == held and _conflict(disk, other):
                is_taken[position] = True
    return is_taken


def _is_in_the_way(other: Pod, pod: Pod) -> bool:
    """True also for a claim of both pods, even if it is not known to be ReadWriteOncePod."""
    if not set(_claim_names(pod)).isdisjoint(_claim_names(other)):
        return True
    return any(
        disk_key(disk) is not None and disk_key(disk) == disk_key(held) and _conflict(disk, held)
        for disk in pod.spec.volumes
        for held in other.spec.volumes
    )


def _conflict(disk: Volume, other: Volume) -> bool:
    """Whether two volumes that name the same disk exclude each other."""
    if disk.gce_persistent_disk and other.gce_persistent_disk:
        return not (disk.gce_persistent_disk.read_only and other.gce_persistent_disk.read_only)
    if disk.iscsi and other.iscsi:
        return not (disk.iscsi.read_only and other.iscsi.read_only)
    if disk.rbd and other.rbd:
        shares_monitor = bool(set(disk.rbd.monitors) & set(other.rbd.monitors))
        return shares_monitor and not (disk.rbd.read_only and other.rbd.read_only)
    return True
