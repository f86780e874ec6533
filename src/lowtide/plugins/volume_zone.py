"""VolumeZone: rejects nodes outside the zone or region that a volume's labels name."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lowtide.framework.plugin import (
    NODE,
    OBJECTS,
    BoolArray,
    Change,
    Nodes,
    Pod,
    PodRejection,
    Rejection,
)
from lowtide.objects.meta import LabelRequirement
from lowtide.objects.node import Node
from lowtide.objects.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from lowtide.plugins.volume_claims import has_volumes, not_found, uses_claim

_ELSEWHERE = "node(s) had no available volume zone"

# Older labels of volumes, and the newer node labels that match them too.
_NEWER = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_KEYS = (*_NEWER, *_NEWER.values())
_BETWEEN_ZONES = "__"


@dataclass(frozen=True, slots=True)
class _Place:
    """A zone or region label of a volume, and the values that it allows."""

    key: str
    values: tuple[str, ...]


class VolumeZone:
    name = "VolumeZone"
    retry_on = NODE | OBJECTS
    kinds = (PersistentVolumeClaim, PersistentVolume, StorageClass)

    def concerns(self, pod: Pod) -> bool:
        return has_volumes(pod)

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | None:
        places = _places(pod, nodes)
        return PodRejection(places) if isinstance(places, str) else None

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        places = _places(pod, nodes)
        if not places or isinstance(places, str):
            return
        is_there = np.ones(len(nodes), np.bool_)
        for place in places:
            is_there &= _is_at(place, nodes)
        # A node without any such label is accepted, as in a cluster with a single zone.
        has_place = np.logical_or.reduce([nodes.label_numbers(key)[0] >= 0 for key in _KEYS])
        yield Rejection(has_place & ~is_there, _ELSEWHERE)

    def may_help(self, pod: Pod, change: Change) -> bool:
        before, after = change.before, change.after
        match change.thing:
            case Node():
                return before is None or change.is_relabelled
            case PersistentVolumeClaim() as claim:
                return after is not None and uses_claim(pod, claim)
            case PersistentVolume():
                return after is not None and (
                    before is None or [*_places_of(before)] != [*_places_of(after)]
                )
        return change.is_new(lambda each: each.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)


def _places(pod: Pod, nodes: Nodes) -> list[_Place] | str:
    """The places of the pod's volumes; or why they are not known."""
    found: list[_Place] = []
    for source in (each.persistent_volume_claim for each in pod.spec.volumes):
        if source is None:
            continue
        volume = _volume_of(source.claim_name, pod.namespace, nodes)
        if isinstance(volume, str):
            return volume
        if volume is not None:
            found += _places_of(volume)
    return found


def _volume_of(claim_name: str, namespace: str, nodes: Nodes) -> PersistentVolume | str | None:
    """The claim's volume. None while the claim waits for its first consumer; the reason if a volume
    is missing."""
    if not claim_name:
        return "PersistentVolumeClaim had no name"
    claim = nodes.objects(PersistentVolumeClaim).get((namespace, claim_name))
    if claim is None:
        return not_found(claim_name)
    name = claim.spec.volume_name
    if name:
        volume = nodes.objects(PersistentVolume).get(("", name))
        return f'persistentvolume "{name}" not found' if volume is None else volume
    if not claim.class_name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = nodes.objects(StorageClass).get(("", claim.class_name))
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{claim.class_name}" not found'
    if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return None
    return "PersistentVolume had no name"


def _places_of(volume: PersistentVolume) -> Iterator[_Place]:
    for key in _KEYS:
        label = volume.metadata.labels.get(key)
        if label is not None:
            values = tuple(value.strip() for value in label.split(_BETWEEN_ZONES))
            if all(values):
                yield _Place(key, values)


def _is_at(place: _Place, nodes: Nodes) -> BoolArray:
    is_there = nodes.label_matches(LabelRequirement(place.key, "In", list(place.values)))
    newer = _NEWER.get(place.key)
    if newer is None:
        return is_there
    lacks_label = nodes.label_numbers(place.key)[0] < 0
    stands_in = nodes.label_matches(LabelRequirement(newer, "In", list(place.values)))
    return is_there | (lacks_label & stands_in)
