"""NodeVolumeLimits: rejects nodes where the pod's volumes would exceed a CSI driver's limit."""

from collections.abc import Iterator

import numpy as np

from lowtide.cluster.indexes.attached_volumes import KINDS_THAT_ATTACH, csi_sources_of
from lowtide.framework.plugin import OBJECTS, TAKEN, Change, Nodes, Pod, Rejection
from lowtide.objects.csi_migration import csi_source_of
from lowtide.objects.node import Node
from lowtide.objects.storage import (
    CSINode,
    CsiSource,
    PersistentVolumeClaim,
    VolumeAttachment,
)
from lowtide.plugins.volume_claims import has_volumes, not_found, not_made_for, uses_claim

_TOO_MANY = "node(s) exceed max volume count"


class NodeVolumeLimits:
    name = "NodeVolumeLimits"
    retry_on = TAKEN | OBJECTS
    kinds = KINDS_THAT_ATTACH

    def concerns(self, pod: Pod) -> bool:
        return has_volumes(pod)

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        missing = _missing_claim(pod, nodes)
        if missing is not None:
            yield Rejection(np.ones(len(nodes), np.bool_), missing)
            return
        by_driver: dict[str, list[CsiSource]] = {}
        for source in csi_sources_of(pod, nodes.objects):
            by_driver.setdefault(source.driver, []).append(source)
        volumes, exceeds = nodes.volumes, np.zeros(len(nodes), np.bool_)
        for driver, sources in by_driver.items():
            new = np.full(len(nodes), len(sources), np.int64)
            for source in sources:
                new -= volumes.is_attached(source)
            total = volumes.attached_count(driver) + new
            exceeds |= (new > 0) & (total > volumes.attach_limit(driver))
        if by_driver:
            yield Rejection(exceeds, _TOO_MANY, eviction_helps=True)

    def may_help(self, pod: Pod, change: Change) -> bool:
        before, after = change.before, change.after
        match change.thing:
            case Node():
                return before is None
            case Pod():
                return change.is_over(_may_have_attached)
            case PersistentVolumeClaim() as claim:
                return uses_claim(pod, claim) or _has_other_volume(before, after)
            case VolumeAttachment():
                return before is not None
            case CSINode():
                return before is None or after is None or _allows_more(before, after)
        return True


def _missing_claim(pod: Pod, nodes: Nodes) -> str | None:
    """Why the pod's volumes cannot be counted. Usually another plugin rejects such a pod first."""
    for volume in pod.spec.volumes:
        name = volume.claim_name(pod.name)
        if name is None:
            continue
        claim = nodes.objects(PersistentVolumeClaim).get((pod.namespace, name))
        if claim is None:
            return f"looking up PVC {pod.namespace}/{name}: {not_found(name)}"
        if volume.ephemeral and not claim.is_made_for(pod.namespace, pod.uid):
            return not_made_for(claim, pod)
    return None


def _may_have_attached(other: Pod) -> bool:
    return any(
        each.claim_name(other.name) is not None or csi_source_of(each) is not None
        for each in other.spec.volumes
    )


def _has_other_volume(
    before: PersistentVolumeClaim | None, after: PersistentVolumeClaim | None
) -> bool:
    """Whether an existing claim, which other pods may use, was removed or has another volume or
    class."""
    if before is None or after is None:
        return before is not None
    return (before.spec.volume_name, before.class_name) != (
        after.spec.volume_name,
        after.class_name,
    )


def _allows_more(before: CSINode, after: CSINode) -> bool:
    limits = after.attach_limits
    return any(
        driver not in limits or limits[driver] > limit
        for driver, limit in before.attach_limits.items()
    )
