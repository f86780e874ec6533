"""Names made unreadable, and the same name always the same way, so that plugins decide as before.

Each word of a name is hashed for itself: `web-7d9f-x2` becomes `x..-x..-x..`, so that what is made
of other names (`<pod>-<volume>`, `<deployment>-<hash>`) still is. Numbers stay, as plugins compare
them; so do the keys of labels, resources and drivers. `recorder` asks for it."""

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import astuple, replace

from lowtide.objects import meta, node, pod, policy, storage, volumes, workloads
from lowtide.objects.devices import DeviceClass
from lowtide.records.config_form import is_address
from lowtide.records.kept_parts import CLASS_ANNOTATION, READ_ANNOTATIONS

_DIGEST_BYTES = 7
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_WORD = re.compile(r"[^\W_]+")
# What plugins know by heart.
_KNOWN_WORDS: Final = frozenset(
    {"latest", "true", "false"}
    | {"aws", "vol", "projects", "zones", "regions", "disks", "UNSPECIFIED"}
)
_ANY_ADDRESS: Final = frozenset({"", "0.0.0.0", "::"})
_NAMED_ANNOTATIONS: Final = frozenset({CLASS_ANNOTATION, storage.SELECTED_NODE})


class _Form(Enum):
    NAME = "a name"
    NAMES = "a list of names"
    UID = "a uid"
    VALUES = "names by key"
    KEYS = "something by name"
    ADDRESS = "the address of a host"
    ANNOTATIONS = "annotations"


# Where names stand; what is not here stays as it is.
NAMES_IN: Final[Mapping[tuple[type, str], _Form]] = {
    (meta.ObjectMeta, "name"): _Form.NAME,
    (meta.ObjectMeta, "namespace"): _Form.NAME,
    (meta.ObjectMeta, "uid"): _Form.UID,
    (meta.ObjectMeta, "labels"): _Form.VALUES,
    (meta.ObjectMeta, "annotations"): _Form.ANNOTATIONS,
    (meta.OwnerReference, "name"): _Form.NAME,
    (meta.OwnerReference, "uid"): _Form.UID,
    (meta.LabelRequirement, "values"): _Form.NAMES,
    (meta.LabelSelector, "match_labels"): _Form.VALUES,
    (pod.ContainerPort, "host_ip"): _Form.ADDRESS,
    (pod.Container, "name"): _Form.NAME,
    (pod.Container, "image"): _Form.NAME,
    (pod.Toleration, "value"): _Form.NAME,
    (pod.PodAffinityTerm, "namespaces"): _Form.NAMES,
    (pod.PodResourceClaim, "name"): _Form.NAME,
    (pod.PodResourceClaim, "resource_claim_name"): _Form.NAME,
    (pod.PodResourceClaim, "resource_claim_template_name"): _Form.NAME,
    (pod.PodSpec, "node_name"): _Form.NAME,
    (pod.PodSpec, "node_selector"): _Form.VALUES,
    (pod.ContainerStatus, "name"): _Form.NAME,
    (pod.PodStatus, "nominated_node_name"): _Form.NAME,
    (node.Taint, "value"): _Form.NAME,
    (node.NodeAddress, "address"): _Form.ADDRESS,
    (node.ContainerImage, "names"): _Form.NAMES,
    (volumes.Volume, "name"): _Form.NAME,
    (volumes.ClaimSource, "claim_name"): _Form.NAME,
    (volumes.ImageSource, "reference"): _Form.NAME,
    (volumes.GcePersistentDisk, "pd_name"): _Form.NAME,
    (volumes.AwsElasticBlockStore, "volume_id"): _Form.NAME,
    (volumes.Iscsi, "iqn"): _Form.NAME,
    (volumes.Rbd, "monitors"): _Form.NAMES,
    (volumes.Rbd, "image"): _Form.NAME,
    (volumes.Rbd, "pool"): _Form.NAME,
    (volumes.AzureDisk, "disk_uri"): _Form.NAME,
    (volumes.CinderVolume, "volume_id"): _Form.NAME,
    (volumes.PortworxVolume, "volume_id"): _Form.NAME,
    (storage.ClaimReference, "namespace"): _Form.NAME,
    (storage.ClaimReference, "name"): _Form.NAME,
    (storage.ClaimReference, "uid"): _Form.UID,
    (storage.CsiSource, "volume_handle"): _Form.NAME,
    (storage.PersistentVolumeSpec, "storage_class_name"): _Form.NAME,
    (storage.PersistentVolumeSpec, "volume_attributes_class_name"): _Form.NAME,
    (storage.PersistentVolumeClaimSpec, "volume_name"): _Form.NAME,
    (storage.PersistentVolumeClaimSpec, "storage_class_name"): _Form.NAME,
    (storage.PersistentVolumeClaimSpec, "volume_attributes_class_name"): _Form.NAME,
    (storage.TopologyLabelRequirement, "values"): _Form.NAMES,
    (storage.CSIStorageCapacity, "storage_class_name"): _Form.NAME,
    (storage.AttachmentSource, "persistent_volume_name"): _Form.NAME,
    (storage.VolumeAttachmentSpec, "node_name"): _Form.NAME,
    (workloads.ServiceSpec, "selector"): _Form.VALUES,
    (workloads.ReplicationControllerSpec, "selector"): _Form.VALUES,
    (policy.PodDisruptionBudgetStatus, "disrupted_pods"): _Form.KEYS,
}

# Their names are those of resources and drivers, which stay everywhere.
_NAMED_AS_THEY_ARE: Final = (DeviceClass, storage.CSIDriver)


class HashedNames:
    """`salt` is kept nowhere."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self._word = lru_cache(maxsize=65536)(self._hashed_word)

    def name(self, text: str) -> str:
        """Of anything: a pod, `namespace/name`, an image, a label's value."""
        return _WORD.sub(lambda found: self._word(found[0]), text)

    def uid(self, text: str) -> str:
        """Chance made it, and it says nothing; unless somebody made one of names."""
        return text if _UUID.fullmatch(text) else self.name(text)

    def whole(self, text: str) -> str:
        """Numbers in it too."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), key=self._salt)
        return f"x{digest.hexdigest()[: 2 * _DIGEST_BYTES]}"

    def with_hashed_names(self, thing: Any) -> Any:
        """An object with every name in it hashed."""
        hashed = self._struct(thing)
        if isinstance(thing, _NAMED_AS_THEY_ARE):
            named = replace(hashed.metadata, name=thing.metadata.name)
            hashed = replace(hashed, metadata=named)
        return hashed

    def config(self, data: Any, key: str = "") -> Any:
        """A configuration in which the names and values of labels are hashed that its plugins look
        for on nodes and pods, and the hosts that it names. `key` is what the data stands under."""
        if isinstance(data, list):
            return [self.config(each, key) for each in data]
        if isinstance(data, str) and is_address(key, data):
            scheme, found, place = data.rpartition("://")
            return f"{scheme}{found}{self.name(place)}"
        if not isinstance(data, dict):
            return data
        changed = {name: self.config(value, name) for name, value in data.items()}
        if "operator" in data and isinstance(data.get("values"), list):
            changed["values"] = [self._text(each) for each in data["values"]]
        if isinstance(data.get("matchLabels"), dict):
            labels = data["matchLabels"].items()
            changed["matchLabels"] = {key: self._text(value) for key, value in labels}
        if "label" in data and "value" in data:
            changed["value"] = self._text(data["value"])
        return changed

    def _text(self, value: Any) -> Any:
        return self.name(value) if isinstance(value, str) else value

    def _hashed_word(self, word: str) -> str:
        return word if word.isdigit() or word in _KNOWN_WORDS else self.whole(word)

    def _struct(self, thing: Struct) -> Any:
        kind, changed = type(thing), {}
        for field, value in zip(thing.__struct_fields__, astuple(thing), strict=True):
            if not value:
                continue
            form = NAMES_IN.get((kind, field))
            new = self._inside(value) if form is None else self._hashed(form, value)
            if new is not value:
                changed[field] = new
        return replace(thing, **changed) if changed else thing

    def _inside(self, value: Any) -> Any:
        if isinstance(value, Struct):
            return self._struct(value)
        if isinstance(value, list) and isinstance(value[0], Struct):
            return [self._struct(each) for each in value]
        return value

    def _hashed(self, form: _Form, value: Any) -> Any:
        match form:
            case _Form.NAME:
                return self.name(value)
            case _Form.UID:
                return self.uid(value)
            case _Form.NAMES:
                return [self.name(each) for each in value]
            case _Form.VALUES:
                return {key: self.name(each) for key, each in value.items()}
            case _Form.KEYS:
                return {self.name(key): None for key in value}
            case _Form.ADDRESS:
                return value if value in _ANY_ADDRESS else self.whole(value)
            case _Form.ANNOTATIONS:
                return {key: self._annotation(key, each) for key, each in value.items()}

    def _annotation(self, key: str, value: str) -> str:
        """Amounts stay; what users asked to keep may be a name."""
        is_name = key in _NAMED_ANNOTATIONS or key not in READ_ANNOTATIONS
        return self.name(value) if is_name else value
