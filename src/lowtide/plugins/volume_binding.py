"""VolumeBinding: rejects nodes where the pod's volumes can be neither used, found nor provisioned.
Reserves volumes for the pod, and binds them before the pod is bound."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from lowtide.framework.plugin import (
    NODE,
    OBJECTS,
    Binder,
    Change,
    Nodes,
    Pod,
    PodRejection,
    Rejection,
    Reserved,
)
from lowtide.objects.node import Node
from lowtide.objects.storage import (
    BOUND_BY_CONTROLLER,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
    ClaimReference,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from lowtide.plugins.volume_claims import claims_of, has_volumes, uses_claim
from lowtide.plugins.volume_finding import find_volumes, largest_volume

_MISMATCHED = "node(s) didn't match PersistentVolume's node affinity"
_NOTHING_FOUND = "node(s) didn't find available persistent volumes to bind"
_NO_SPACE = "node(s) did not have enough free storage"
_LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


class VolumeBindingArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    bind_timeout_seconds: int = 600
    """How long a pod waits for its volumes to be bound. Bounds: at least 0."""
    shape: tuple[dict[str, Any], ...] | None = None
    """Rejected, as in kube-scheduler without the feature gate StorageCapacityScoring."""

    def problems(self) -> Iterator[tuple[str, str]]:
        """In kube-scheduler's words."""
        seconds = self.bind_timeout_seconds
        if seconds < 0:
            text = "invalid BindTimeoutSeconds, should not be a negative value"
            yield "bindTimeoutSeconds", f"Invalid value: {seconds}: {text}"
        if self.shape is not None:
            text = "remove it or turn on the feature gate StorageCapacityScoring"
            yield "shape", f"Invalid value: unexpected field `shape`, {text}"


class VolumeBinding:
    name = "VolumeBinding"
    retry_on = NODE | OBJECTS
    kinds = (
        PersistentVolumeClaim,
        PersistentVolume,
        StorageClass,
        CSINode,
        CSIDriver,
        CSIStorageCapacity,
    )
    args = VolumeBindingArgs
    needs = {"binder": Binder}

    def __init__(self, args: VolumeBindingArgs, binder: Binder) -> None:
        self._timeout_seconds = args.bind_timeout_seconds
        self._binder = binder

    def concerns(self, pod: Pod) -> bool:
        return has_volumes(pod)

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | None:
        claims = claims_of(pod, nodes)
        return PodRejection(claims) if isinstance(claims, str) else None

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        claims = claims_of(pod, nodes)
        if isinstance(claims, str) or not (claims.bound or claims.delayed):
            return
        found = find_volumes(claims, nodes)
        yield Rejection(found.is_mismatched, _MISMATCHED)
        yield Rejection(found.lacks_volumes, _NOTHING_FOUND)
        yield Rejection(found.lacks_space, _NO_SPACE)
        yield Rejection(found.is_lost, _LOST)

    def may_help(self, pod: Pod, change: Change) -> bool:
        before, after = change.before, change.after
        match change.thing:
            case Node():
                return before is None or change.is_relabelled
            case PersistentVolumeClaim() as claim:
                return after is not None and uses_claim(pod, claim)
            case StorageClass():
                return after is not None and _made_how(before) != _made_how(after)
            case CSINode():
                return before is None or after is None or _migrated(before) != _migrated(after)
            case CSIDriver():
                return change.is_over(lambda driver: driver.spec.storage_capacity)
            case CSIStorageCapacity():
                return after is not None and (before is None or _offers_more(before, after))
        return True  # any volume may be the one that the pod or another claim needs

    def score(self, pod: Pod, nodes: Nodes) -> None:
        """No opinion: in v1.36, scoring by storage capacity is off by default."""

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> PodRejection | Reserved | None:
        """Reserve volumes: return the volumes and claims as they will be after binding."""
        if not pod.spec.volumes:
            return None
        claims = claims_of(pod, nodes)
        if isinstance(claims, str):
            return PodRejection(claims)
        if not claims.delayed:
            return None
        position = nodes.names.index(node_name)
        found = find_volumes(claims, nodes.take(np.array([position])))
        given = [_given(volume, claim) for claim, volume in found.bindings_at(0)]
        return Reserved([*given, *(_made_on(node_name, claim) for claim in found.made_at(0))])

    async def pre_bind(self, pod: Pod, node_name: str) -> str | None:
        if all(each.claim_name(pod.name) is None for each in pod.spec.volumes):
            return None
        return await self._binder.bind_volumes(pod, node_name, self._timeout_seconds)


def _made_how(storage_class: StorageClass | None) -> Any:
    if storage_class is None:
        return None
    return (
        storage_class.provisioner,
        storage_class.volume_binding_mode,
        storage_class.allowed_topologies,
    )


def _migrated(csi_node: CSINode) -> str | None:
    return csi_node.metadata.annotations.get(MIGRATED_PLUGINS)


def _offers_more(before: CSIStorageCapacity, after: CSIStorageCapacity) -> bool:
    """Whether it allows larger volumes, or serves another class or other nodes."""
    return (
        largest_volume(after) > largest_volume(before)
        or after.storage_class_name != before.storage_class_name
        or after.node_topology != before.node_topology
    )


def _given(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume bound to the claim. The annotation says that a controller did it, not a user."""
    meta = volume.metadata
    reference = ClaimReference(claim.metadata.namespace, claim.name, claim.metadata.uid)
    spec = msgspec.structs.replace(volume.spec, claim_ref=reference)
    if volume.spec.claim_ref is None and BOUND_BY_CONTROLLER not in meta.annotations:
        annotations = {**meta.annotations, BOUND_BY_CONTROLLER: "yes"}
        meta = msgspec.structs.replace(meta, annotations=annotations)
    return msgspec.structs.replace(volume, metadata=meta, spec=spec)


def _made_on(node_name: str, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
    return msgspec.structs.replace(
        claim, metadata=msgspec.structs.replace(claim.metadata, annotations=annotations)
    )
