"""A pod's claims: those with a volume, and those whose volume is chosen with the pod's node. Also
the checks and reasons that all volume plugins share."""

from dataclasses import dataclass

from lowtide.framework.plugin import Nodes, Pod
from lowtide.objects.quantity import QuantityError, parse_nano
from lowtide.objects.selector_problems import selector_problem
from lowtide.objects.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolumeClaim,
    StorageClass,
)

_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True, slots=True)
class PodClaims:
    """Claims in the order of the pod's volumes; `delayed` ones wait for the pod's node."""

    bound: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[PersistentVolumeClaim, ...]


def has_volumes(pod: Pod) -> bool:
    """Whether the pod has a volume that any volume plugin handles."""
    return any(volume.has_source for volume in pod.spec.volumes)


def claims_of(pod: Pod, nodes: Nodes) -> PodClaims | str:
    """The pod's claims; or the reason why it cannot run anywhere until they change."""
    claims = []
    for volume in pod.spec.volumes:
        name = volume.claim_name(pod.name)
        if name is None:
            continue
        claim = nodes.objects(PersistentVolumeClaim).get((pod.namespace, name))
        if claim is None and volume.ephemeral:
            waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
            return f'{waiting} "{name}"'
        if claim is None:
            return not_found(name)
        problem = _problem(claim)
        if problem is not None:
            return problem
        if volume.ephemeral and not claim.is_made_for(pod.namespace, pod.uid):
            return not_made_for(claim, pod)
        claims.append(claim)
    unbound = [claim for claim in claims if not claim.is_bound]
    if not all(_is_delayed(claim, nodes) for claim in unbound):
        return _IMMEDIATE
    return PodClaims(tuple(each for each in claims if each.is_bound), tuple(unbound))


def requested_nano(claim: PersistentVolumeClaim) -> int:
    """The requested storage in billionths of a byte. A QuantityError names the claim."""
    try:
        return parse_nano(claim.spec.resources.requests.get("storage", 0))
    except QuantityError as error:
        path = "spec.resources.requests[storage]"
        raise QuantityError(f"persistentvolumeclaim {claim.key} {path}: {error}") from None


def _problem(claim: PersistentVolumeClaim) -> str | None:
    if claim.status.phase == "Lost":
        lost = f'bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        return f'persistentvolumeclaim "{claim.name}" {lost}'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    problem = selector_problem(claim.spec.selector, "spec.selector")
    return None if problem is None else f'persistentvolumeclaim "{claim.name}" {problem}'


def _is_delayed(claim: PersistentVolumeClaim, nodes: Nodes) -> bool:
    """Whether its volume is chosen with the pod's node; never if the claim names a volume."""
    storage_class = nodes.objects(StorageClass).get(("", claim.class_name))
    return (
        not claim.spec.volume_name
        and storage_class is not None
        and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    )


def not_found(claim_name: str) -> str:
    return f'persistentvolumeclaim "{claim_name}" not found'


def uses_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    return claim.metadata.namespace == pod.namespace and any(
        volume.claim_name(pod.name) == claim.name for volume in pod.spec.volumes
    )


def not_made_for(claim: PersistentVolumeClaim, pod: Pod) -> str:
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
