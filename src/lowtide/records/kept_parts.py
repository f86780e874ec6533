"""What of an object goes into a recording: what plugins read, and nothing that may hold a secret.

An object of ours holds no environment and no secret to begin with; what is left are annotations,
some of which hold whole manifests, and the messages of conditions, into which anybody may write."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

from msgspec.structs import replace

from lowtide.objects.meta import ObjectMeta
from lowtide.objects.pod import Pod
from lowtide.objects.storage import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
)
from lowtide.readings.capacity import CAPACITY_ANNOTATION
from lowtide.readings.demand import EGRESS_LIMIT, INGRESS_LIMIT, TRAFFIC_ANNOTATION

# As PersistentVolume and PersistentVolumeClaim read it.
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"

READ_ANNOTATIONS: Final = frozenset(
    {
        BIND_COMPLETED,
        BOUND_BY_CONTROLLER,
        CAPACITY_ANNOTATION,
        CLASS_ANNOTATION,
        EGRESS_LIMIT,
        INGRESS_LIMIT,
        MIGRATED_PLUGINS,
        SELECTED_NODE,
        TRAFFIC_ANNOTATION,
    }
)
# Instead of the annotations that are left out: another digest tells that one of them changed.
DIGEST_ANNOTATION: Final = "lowtide.dev/left-out"

_DIGEST_BYTES = 8


class KeptParts:
    """`salt` is kept nowhere, so that nobody can try out what was left out."""

    def __init__(self, salt: bytes, annotations: Iterable[str] = ()) -> None:
        self._salt = salt
        self._kept = READ_ANNOTATIONS.union(annotations)

    def without_left_out(self, thing: Any) -> Any:
        """The same object without what is not kept."""
        if isinstance(thing, Pod) and any(each.message for each in thing.status.conditions):
            conditions = [replace(each, message="") for each in thing.status.conditions]
            thing = replace(thing, status=replace(thing.status, conditions=conditions))
        meta: ObjectMeta = thing.metadata
        if meta.annotations.keys() <= self._kept:
            return thing
        return replace(
            thing, metadata=replace(meta, annotations=self._annotations(meta.annotations))
        )

    def _annotations(self, given: Mapping[str, str]) -> dict[str, str]:
        kept = {key: value for key, value in given.items() if key in self._kept}
        digest = blake2b(key=self._salt, digest_size=_DIGEST_BYTES)
        for key in sorted(given.keys() - self._kept):
            for text in (key, given[key]):
                told = text.encode("utf-8", "surrogatepass")
                digest.update(b"%d:%b" % (len(told), told))
        kept[DIGEST_ANNOTATION] = digest.hexdigest()
        return kept
