"""Every object of the embedded cluster, its versions, and the history that watches read.

Pure: no I/O, time and chance are handed in. Called by ApiServer, the controllers and tests;
objects that it returns are never changed in place."""

import random
import re
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from lowtide.localcluster.changes import Change, ChangeType, Record, with_version
from lowtide.localcluster.documents import Json, cloned
from lowtide.localcluster.failures import (
    already_exists,
    bad_request,
    conflict,
    expired,
    forbidden,
    invalid,
    not_found,
    stale,
)
from lowtide.localcluster.kinds import Kind, stored_kinds
from lowtide.localcluster.patches import PatchForm, patched
from lowtide.localcluster.pods import ungate
from lowtide.localcluster.selectors import Selection
from lowtide.localcluster.timestamps import timestamp

Key = tuple[str, str]  # namespace ("" for cluster-wide kinds), name
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DELETION_MARKS = ("deletionTimestamp", "deletionGracePeriodSeconds")
_NAME_PLUGIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character"
)


class Part(Enum):
    """Which half of an object a write is about; the other half stays as it is."""

    MAIN = "main"
    STATUS = "status"


class Store:
    def __init__(
        self,
        *,
        clock: Callable[[], float],
        chance: random.Random,
        history_length: int = 20_000,
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._kinds = stored_kinds()
        self._records: dict[str, dict[Key, Record]] = {plural: {} for plural in self._kinds}
        self._history: deque[Change] = deque()
        self._history_length = history_length
        self._version = 1
        self._compacted_version = 0
        self._listeners: list[Callable[[Change], None]] = []
        for name in FIRST_NAMESPACES:
            self.create("namespaces", {"metadata": {"name": name}})

    @property
    def version(self) -> int:
        return self._version

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Calls `listener` with every later change, in order; call the result to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def create(self, plural: str, item: Json, *, namespace: str | None = None) -> Json:
        kind = self._kinds[plural]
        item = cloned(item)
        item["kind"], item["apiVersion"] = kind.name, kind.api_version
        metadata = item.setdefault("metadata", {})
        self._place(kind, metadata, namespace)
        key = (metadata.get("namespace", ""), self._named(kind, metadata))
        if key in self._records[plural]:
            raise already_exists(kind.resource, key[1])
        now = timestamp(self._clock())
        metadata["uid"] = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
        metadata["creationTimestamp"] = now
        for given in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
            metadata.pop(given, None)
        if kind.has_generation:
            metadata["generation"] = 1
        kind.prepare(item, now)
        created = self._write(plural, key, item, previous=None)
        if plural == "namespaces":
            account = {"metadata": {"name": "default"}}
            self.create("serviceaccounts", account, namespace=key[1])
        return created

    def get(self, plural: str, namespace: str, name: str) -> Json:
        return self.record(plural, namespace, name).item

    def record(self, plural: str, namespace: str, name: str) -> Record:
        record = self._records[plural].get((namespace, name))
        if record is None:
            raise not_found(self._kinds[plural].resource, name)
        return record

    def find(self, plural: str, namespace: str, name: str) -> Json | None:
        record = self._records[plural].get((namespace, name))
        return None if record is None else record.item

    def items(self, plural: str, selection: Selection | None = None) -> list[Json]:
        return [record.item for record in self.records(plural, selection or Selection())]

    def records(
        self, plural: str, selection: Selection, version: int | None = None
    ) -> list[Record]:
        """Sorted by namespace and name; with `version`, as they were then."""
        current = self._records[plural]
        if version is not None and version != self._version:
            current = self._as_of(plural, version)
        chosen = sorted(current.items(), key=lambda entry: entry[0])
        return [record for _, record in chosen if selection.matches(record.item)]

    def update(self, plural: str, item: Json, *, part: Part = Part.MAIN) -> Json:
        kind = self._kinds[plural]
        metadata = item.get("metadata") or {}
        key = (metadata.get("namespace", ""), metadata.get("name", ""))
        previous = self.record(plural, *key)
        wanted_uid, uid = metadata.get("uid"), previous.item["metadata"]["uid"]
        if wanted_uid not in (None, "", uid):
            why = uid_mismatch(f"/registry/{plural}/{'/'.join(key)}", wanted_uid, uid)
            raise conflict(kind.resource, key[1], why)
        return self._update(kind, key, previous, cloned(item), part)

    def patch(
        self,
        plural: str,
        namespace: str,
        name: str,
        patch: Any,
        *,
        form: PatchForm = PatchForm.STRATEGIC,
        part: Part = Part.MAIN,
    ) -> Json:
        kind = self._kinds[plural]
        previous = self.record(plural, namespace, name)
        base = cloned(previous.item)
        # A version in the patch is a precondition; without one the patch goes onto what is there.
        del base["metadata"]["resourceVersion"]
        item = patched(base, cloned(patch), form)
        metadata, before = item.get("metadata") or {}, previous.item["metadata"]
        for immutable in ("name", "namespace", "uid"):
            if metadata.get(immutable) != before.get(immutable):
                what = f'Invalid value: "{metadata.get(immutable)}"'
                field = f"metadata.{immutable}"
                raise invalid(kind.name, name, field, what, "field is immutable")
        return self._update(kind, (namespace, name), previous, item, part)

    def replace(self, plural: str, item: Json) -> Json:
        """Writes `item` as the next version without asking any plugin: for the server itself."""
        metadata = item["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        return self._write(plural, key, item, previous=self.record(plural, *key))

    def delete(
        self,
        plural: str,
        namespace: str,
        name: str,
        *,
        grace_period_seconds: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        keeps_dependents: bool = False,
    ) -> Json:
        """The object as it was last: gone, or marked when a kubelet or finalizer has its say."""
        kind = self._kinds[plural]
        record = self.record(plural, namespace, name)
        metadata = record.item["metadata"]
        if uid not in (None, metadata["uid"]):
            why = (
                f"the UID in the precondition ({uid}) does not match the UID in record "
                f"({metadata['uid']}). The object might have been deleted and then recreated"
            )
            raise conflict(kind.name, name, why)
        if resource_version not in (None, metadata["resourceVersion"]):
            raise stale(kind.resource, name)
        if plural == "namespaces":
            self._empty_namespace(name)
        if keeps_dependents:
            self._orphan(metadata["uid"])
        grace = _grace_period_seconds(kind, record.item, grace_period_seconds)
        if grace == 0 and not metadata.get("finalizers"):
            return self._remove(plural, (namespace, name), record)
        if "deletionTimestamp" in metadata and grace >= metadata["deletionGracePeriodSeconds"]:
            return record.item
        marked = {
            **metadata,
            "deletionTimestamp": timestamp(self._clock() + grace),
            "deletionGracePeriodSeconds": grace,
        }
        if kind.has_generation:
            marked["generation"] = metadata.get("generation", 0) + 1
        return self.replace(plural, {**record.item, "metadata": marked})

    def compact(self) -> None:
        """Forgets the history: a watch from any earlier version is answered 410 Gone."""
        self._history.clear()
        self._compacted_version = self._version

    def changes_since(self, plural: str, version: int) -> list[Change]:
        if version < self._compacted_version:
            raise expired(version, self._compacted_version)
        newer: list[Change] = []
        for change in reversed(self._history):
            if change.version <= version:
                break
            if change.plural == plural:
                newer.append(change)
        newer.reverse()
        return newer

    def dependents(self, uid: str) -> Iterator[tuple[str, Json]]:
        for plural, records in self._records.items():
            for record in list(records.values()):
                owners = record.item["metadata"].get("ownerReferences")
                if owners and any(owner["uid"] == uid for owner in owners):
                    yield plural, record.item

    def new_suffix(self) -> str:
        return "".join(self._chance.choice(SUFFIX_LETTERS) for _ in range(5))

    def _place(self, kind: Kind, metadata: Json, namespace: str | None) -> None:
        if not kind.is_namespaced:
            metadata.pop("namespace", None)
            return
        wanted = namespace or metadata.get("namespace") or "default"
        if metadata.setdefault("namespace", wanted) != wanted:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                f"request: {metadata['namespace']!r} is not {wanted!r}"
            )
        if ("", wanted) not in self._records["namespaces"]:
            raise not_found("namespaces", wanted)

    def _named(self, kind: Kind, metadata: Json) -> str:
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + self.new_suffix()
        name = metadata.get("name")
        if not name:
            why = "name or generateName is required"
            raise invalid(kind.name, "", "metadata.name", "Required value", why)
        if not isinstance(name, str) or len(name) > 253 or not _NAME.fullmatch(name):
            field, what = "metadata.name", f'Invalid value: "{name}"'
            raise invalid(kind.name, str(name), field, what, _NAME_PLUGIN)
        return name

    def _update(self, kind: Kind, key: Key, previous: Record, item: Json, part: Part) -> Json:
        old = previous.item
        metadata, before = item["metadata"], old["metadata"]
        if metadata.get("resourceVersion") not in (None, "", before["resourceVersion"]):
            raise stale(kind.resource, key[1])
        for kept in ("uid", "creationTimestamp", "generation", *_DELETION_MARKS):
            _keep(metadata, before, kept)
        metadata["resourceVersion"] = before["resourceVersion"]
        item["kind"], item["apiVersion"] = kind.name, kind.api_version
        if part is Part.STATUS:
            _keep(item, old, "spec")
            _keep(metadata, before, "ownerReferences")
        elif kind.has_status:
            _keep(item, old, "status")
        if part is Part.MAIN:
            kind.check_update(item, old)
            if kind.plural == "pods" and old["spec"].get("schedulingGates"):
                item["status"] = cloned(item["status"])
                ungate(item)
        if item == old:
            return old
        if kind.has_generation and item.get("spec") != old.get("spec"):
            metadata["generation"] = before.get("generation", 0) + 1
        if _was_the_last_finalizer(metadata, before):
            return self._remove(kind.plural, key, previous)
        return self._write(kind.plural, key, item, previous)

    def _write(self, plural: str, key: Key, item: Json, previous: Record | None) -> Json:
        self._version += 1
        record = Record(with_version(item, self._version))
        self._records[plural][key] = record
        type_ = ChangeType.ADDED if previous is None else ChangeType.MODIFIED
        self._publish(Change(self._version, plural, type_, record, previous))
        return record.item

    def _remove(self, plural: str, key: Key, record: Record) -> Json:
        self._version += 1
        del self._records[plural][key]
        change = Change(self._version, plural, ChangeType.DELETED, None, record)
        self._publish(change)
        return change.item

    def _publish(self, change: Change) -> None:
        self._history.append(change)
        if len(self._history) > self._history_length:
            self._compacted_version = self._history.popleft().version
        for listener in self._listeners:
            listener(change)

    def _as_of(self, plural: str, version: int) -> dict[Key, Record]:
        records = dict(self._records[plural])
        for change in reversed(self.changes_since(plural, version)):
            metadata = change.item["metadata"]
            key = (metadata.get("namespace", ""), metadata["name"])
            if change.previous is None:
                del records[key]
            else:
                records[key] = change.previous
        return records

    def _empty_namespace(self, name: str) -> None:
        if name in FIRST_NAMESPACES:
            raise forbidden("namespaces", name, "this namespace may not be deleted")
        for plural, records in self._records.items():
            for key in [key for key in records if key[0] == name]:
                self._remove(plural, key, records[key])

    def _orphan(self, uid: str) -> None:
        for plural, item in self.dependents(uid):
            owners = [owner for owner in item["metadata"]["ownerReferences"] if owner["uid"] != uid]
            metadata = {**item["metadata"], "ownerReferences": owners}
            self.replace(plural, {**item, "metadata": metadata})


def _was_the_last_finalizer(metadata: Json, before: Json) -> bool:
    return (
        "deletionTimestamp" in before
        and bool(before.get("finalizers"))
        and not metadata.get("finalizers")
        and not before.get("deletionGracePeriodSeconds")
    )


def _keep(new: Json, old: Json, key: str) -> None:
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


def uid_mismatch(storage_key: str, wanted_uid: str, uid: str) -> str:
    return (
        f"StorageError: invalid object, Code: 4, Key: {storage_key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted_uid}, "
        f"UID in object meta: {uid}"
    )


def _grace_period_seconds(kind: Kind, item: Json, asked: int | None) -> int:
    """Only a bound pod that still runs is given time; everything else goes at once."""
    if kind.plural != "pods" or not item["spec"].get("nodeName"):
        return 0
    if item["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    default: int = item["spec"].get("terminationGracePeriodSeconds", 30)
    return default if asked is None else max(0, asked)
