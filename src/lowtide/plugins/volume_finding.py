"""Finds volumes for a pod's claims on all nodes at once: bound volumes, available ones of the
class, or a class that can provision them. VolumeBinding calls it to filter and to reserve."""

from dataclasses import dataclass, field

import numpy as np

from lowtide.framework.plugin import BoolArray, IntArray, Nodes
from lowtide.objects.csi_migration import migrated_affinity, migration_of
from lowtide.objects.matching import matches_selector
from lowtide.objects.quantity import QuantityError, parse_nano, units
from lowtide.objects.storage import (
    NO_PROVISIONER,
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from lowtide.plugins.node_places import NodePlaces
from lowtide.plugins.volume_claims import PodClaims, requested_nano

_NO_VOLUME = -1
_AVAILABLE = "Available"


@dataclass(slots=True)
class FoundVolumes:
    """By position: why the node is rejected, or else which volumes would be used there."""

    is_mismatched: BoolArray  # a bound volume cannot be used there
    lacks_volumes: BoolArray  # no volume is available, and none can be provisioned
    lacks_space: BoolArray  # a volume can be provisioned, but the storage has too little space
    is_lost: BoolArray  # a bound volume does not exist
    volumes: list[PersistentVolume] = field(default_factory=list)
    chosen: list[tuple[PersistentVolumeClaim, IntArray]] = field(default_factory=list)
    made: list[tuple[PersistentVolumeClaim, BoolArray]] = field(default_factory=list)

    @property
    def is_rejected(self) -> BoolArray:
        return self.is_mismatched | self.lacks_volumes | self.lacks_space | self.is_lost

    def bindings_at(self, position: int) -> list[tuple[PersistentVolumeClaim, PersistentVolume]]:
        """The claims that would be bound to available volumes, with these."""
        return [
            (claim, self.volumes[numbers[position]])
            for claim, numbers in self.chosen
            if numbers[position] != _NO_VOLUME
        ]

    def made_at(self, position: int) -> list[PersistentVolumeClaim]:
        """The claims whose volumes would be provisioned."""
        return [claim for claim, is_made in self.made if is_made[position]]


def find_volumes(claims: PodClaims, nodes: Nodes) -> FoundVolumes:
    return _Finding(nodes).run(claims)


def can_be_used(volume: PersistentVolume, nodes: Nodes) -> BoolArray:
    """By position: whether the volume's affinity allows its use."""
    return _Finding(nodes).has_access(volume)


class _Finding:
    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._places = NodePlaces(nodes)
        self._found = FoundVolumes(
            is_mismatched=np.zeros(len(nodes), np.bool_),
            lacks_volumes=np.zeros(len(nodes), np.bool_),
            lacks_space=np.zeros(len(nodes), np.bool_),
            is_lost=np.zeros(len(nodes), np.bool_),
        )
        self._numbers: dict[str, int] = {}  # by volume name: its position in `found.volumes`

    def run(self, claims: PodClaims) -> FoundVolumes:
        self._check_bound(claims)
        # If a claim's volume is being provisioned for one node, every other node is rejected.
        is_open = np.ones(len(self._nodes), np.bool_)
        for claim in claims.delayed:
            if claim.selected_node is not None:
                is_open &= self._nodes.is_named(claim.selected_node)
        self._found.lacks_volumes |= ~is_open
        wanted = [(claim, is_open) for claim in claims.delayed if claim.selected_node is not None]
        to_match = [claim for claim in claims.delayed if claim.selected_node is None]
        for claim in sorted(to_match, key=requested_nano):
            chosen = self._choose(claim, is_open)
            self._found.chosen.append((claim, chosen))
            wanted.append((claim, is_open & (chosen == _NO_VOLUME)))
        self._check_made(wanted)
        return self._found

    # Bound claims.

    def _check_bound(self, claims: PodClaims) -> None:
        """Reject each node for the first volume that it cannot use."""
        is_open = np.ones(len(self._nodes), np.bool_)
        for claim in claims.bound:
            volume = self._nodes.objects(PersistentVolume).get(("", claim.spec.volume_name))
            if volume is None:
                self._found.is_lost |= is_open
                return
            is_mismatched = is_open & ~self.has_access(volume)
            self._found.is_mismatched |= is_mismatched
            is_open &= ~is_mismatched

    def has_access(self, volume: PersistentVolume) -> BoolArray:
        has_access = self._places.has_access(volume.spec.node_affinity)
        migration = migration_of(volume.spec)
        if migration is None or not migration.zone_key:
            return has_access
        affinity = migrated_affinity(volume, migration.zone_key)
        is_migrated = self._nodes.volumes.is_migrated(migration.plugin)
        return np.where(is_migrated, self._places.has_access(affinity), has_access)

    # Available volumes.

    def _choose(self, claim: PersistentVolumeClaim, is_open: BoolArray) -> IntArray:
        """By position: the number of the smallest volume that fits, for nodes in `is_open`."""
        earlier = [numbers for _, numbers in self._found.chosen]
        chosen = np.full(len(self._nodes), _NO_VOLUME, np.int64)
        is_wanted = is_open.copy()
        mine, others = self._candidates(claim)
        for volume in mine:
            # Where no earlier claim took this volume, the claim accepts no other one.
            number = self._number(volume)
            is_free = np.logical_and.reduce([is_wanted, *(each != number for each in earlier)])
            has_access = self._places.has_access(volume.spec.node_affinity)
            chosen[is_free & has_access] = number
            is_wanted &= ~is_free
        left = int(np.count_nonzero(is_wanted))
        for volume in others:
            if not left:
                break
            positions = self._places.with_access(volume.spec.node_affinity)
            if not len(positions):
                continue
            number = self._number(volume)
            positions = positions[is_wanted[positions]]
            for each in earlier:
                positions = positions[each[positions] != number]
            chosen[positions] = number
            is_wanted[positions] = False
            left -= len(positions)
        return chosen

    def _candidates(
        self, claim: PersistentVolumeClaim
    ) -> tuple[list[PersistentVolume], list[PersistentVolume]]:
        """The volumes reserved for the claim, and those free for any claim. Smallest first, equal
        ones by name."""
        mine: list[tuple[int, str, PersistentVolume]] = []
        others: list[tuple[int, str, PersistentVolume]] = []
        wanted = requested_nano(claim)
        for name, volume in self._nodes.volumes.of_class(claim.class_name).items():
            is_mine = volume.spec.claim_ref is not None
            if is_mine and not _is_promised(volume, claim):
                continue
            if not is_mine and volume.status.phase != _AVAILABLE:
                continue
            size = _capacity_nano(volume)
            if size < wanted or not _is_alike(volume, claim):
                continue
            if is_mine:
                mine.append((size, name, volume))
            elif _suits(volume, claim):
                others.append((size, name, volume))
        return [v for _, _, v in sorted(mine)], [v for _, _, v in sorted(others)]

    def _number(self, volume: PersistentVolume) -> int:
        number = self._numbers.get(volume.name)
        if number is None:
            number = self._numbers[volume.name] = len(self._found.volumes)
            self._found.volumes.append(volume)
        return number

    # Volumes to provision.

    def _check_made(self, wanted: list[tuple[PersistentVolumeClaim, BoolArray]]) -> None:
        """Reject each node for the first claim that it cannot provision a volume for."""
        is_open = np.ones(len(self._nodes), np.bool_)
        for claim, is_wanted in wanted:
            is_asked = is_open & is_wanted
            if not is_asked.any():
                continue
            storage_class = self._nodes.objects(StorageClass)[("", claim.class_name)]
            can_be_made = np.zeros(len(self._nodes), np.bool_)
            if storage_class.provisioner not in ("", NO_PROVISIONER):
                can_be_made = self._places.in_topologies(storage_class.allowed_topologies)
            has_space = self._has_space(claim, storage_class)
            self._found.lacks_volumes |= is_asked & ~can_be_made
            self._found.lacks_space |= is_asked & can_be_made & ~has_space
            is_open &= ~is_asked | (can_be_made & has_space)
            self._found.made.append((claim, is_asked))

    def _has_space(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> BoolArray:
        driver = self._nodes.objects(CSIDriver).get(("", storage_class.provisioner))
        is_reported = driver is not None and driver.spec.storage_capacity
        if not is_reported or "storage" not in claim.spec.resources.requests:
            return np.ones(len(self._nodes), np.bool_)
        wanted = units(requested_nano(claim))
        has_space = np.zeros(len(self._nodes), np.bool_)
        for capacity in self._nodes.objects(CSIStorageCapacity).values():
            is_of_class = capacity.storage_class_name == storage_class.metadata.name
            if is_of_class and largest_volume(capacity) >= wanted:
                has_space[self._places.matching(capacity.node_topology)] = True
        return has_space


def _is_promised(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.metadata.namespace, claim.name)
        and reference.uid in ("", claim.metadata.uid)
    )


def _is_alike(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.spec.volume_mode == claim.spec.volume_mode
        and volume.spec.volume_attributes_class_name == claim.spec.volume_attributes_class_name
        and volume.metadata.deletion_timestamp is None
    )


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    for mode in claim.spec.access_modes:
        if mode not in volume.spec.access_modes:
            return False
    selector = claim.spec.selector
    return selector is None or matches_selector(selector, volume.metadata.labels)


def _capacity_nano(volume: PersistentVolume) -> int:
    """The volume's size; -1 if it is invalid, so that the volume fits no claim."""
    try:
        return parse_nano(volume.spec.capacity.get("storage", 0))
    except QuantityError:
        return -1


def largest_volume(capacity: CSIStorageCapacity) -> int:
    """In bytes; -1 if it is unknown."""
    limit = capacity.maximum_volume_size
    if limit is None:
        limit = capacity.capacity
    try:
        return -1 if limit is None else units(parse_nano(limit))
    except QuantityError:
        return -1
