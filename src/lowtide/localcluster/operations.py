"""What each HTTP method does to the store, without any HTTP: called by ApiServer.

Watches are not here; they belong to ApiServer itself."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from lowtide.localcluster.api_path import ApiPath, integer, selection, version
from lowtide.localcluster.binding import bind
from lowtide.localcluster.changes import Record
from lowtide.localcluster.documents import Json
from lowtide.localcluster.failures import (
    StatusError,
    bad_request,
    expired_continue,
    method_not_allowed,
    too_large_version,
    unknown_resource,
    unsupported_media_type,
)
from lowtide.localcluster.patches import PatchForm, patched
from lowtide.localcluster.presentation import PlainPresentation, encoded, presentation
from lowtide.localcluster.store import Part, Store


@dataclass(frozen=True, slots=True)
class Call:
    """One request, read whole."""

    method: str
    path: ApiPath
    query: Mapping[str, str]
    body: bytes
    content_type: str
    accept: str


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


class Operations:
    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def run(self, call: Call) -> Answer:
        if call.query.get("dryRun"):
            raise bad_request("dryRun is not offered by the embedded cluster; leave it out")
        path = call.path
        if path.subresource == "binding" and path.kind.plural == "pods":
            return self._bind(call)
        if path.subresource == "scale" and path.kind.has_scale:
            return self._scale(call)
        if path.subresource == "status" and not path.kind.has_status:
            raise unknown_resource()
        if path.subresource not in ("", "status"):
            raise unknown_resource()
        run = _ON_COLLECTION if not path.name else _ON_OBJECT
        operation = run.get(call.method)
        if operation is None:
            raise method_not_allowed()
        return operation(self, call)

    def _list(self, call: Call) -> Answer:
        path, wanted = call.path, selection(call.path, call.query)
        at, start = self._list_version(call)
        records = self._store.records(path.kind.plural, wanted, at)
        if start:
            records = [record for record in records if _position(record.item) > start]
        metadata: Json = {"resourceVersion": str(at or self._store.version)}
        limit = integer(call.query, "limit")
        if limit and len(records) > limit:
            left = len(records) - limit
            records = records[:limit]
            last = [at or self._store.version, *_position(records[-1].item)]
            metadata["continue"] = base64.urlsafe_b64encode(encoded(last)).decode()
            if wanted.is_whole():
                metadata["remainingItemCount"] = left
        return Answer(200, self._presented(call).listing(records, metadata))

    def _list_version(self, call: Call) -> tuple[int | None, list[str]]:
        """The version to list at (None is now) and the position to go on after."""
        if token := call.query.get("continue"):
            try:
                at, *start = json.loads(base64.urlsafe_b64decode(token))
                self._store.changes_since(call.path.kind.plural, at)
            except (binascii.Error, ValueError, TypeError):
                raise bad_request(f"continue key is not valid: {token!r}") from None
            except StatusError:
                raise expired_continue() from None
            return at, start
        asked = version(call.query)
        if asked is not None and asked > self._store.version:
            raise too_large_version(asked, self._store.version)
        is_exact = call.query.get("resourceVersionMatch") == "Exact"
        return (asked if is_exact else None), []

    def _create(self, call: Call) -> Answer:
        kind = call.path.kind
        if call.path.namespace == "" and kind.is_namespaced:
            raise method_not_allowed()
        item = kind.to_stored(_decoded(call))
        namespace = call.path.namespace or None
        created = self._store.create(kind.plural, item, namespace=namespace)
        return self._object(call, 201, created["metadata"]["name"])

    def _delete_collection(self, call: Call) -> Answer:
        kind, options = call.path.kind, _delete_options(call)
        records = self._store.records(kind.plural, selection(call.path, call.query))
        for record in records:
            metadata = record.item["metadata"]
            self._store.delete(
                kind.plural,
                metadata.get("namespace", ""),
                metadata["name"],
                grace_period_seconds=options.get("gracePeriodSeconds"),
            )
        metadata = {"resourceVersion": str(self._store.version)}
        return Answer(200, PlainPresentation(kind).listing(records, metadata))

    def _get(self, call: Call) -> Answer:
        return self._object(call, 200, call.path.name)

    def _update(self, call: Call) -> Answer:
        path = call.path
        item = path.kind.to_stored(_decoded(call))
        metadata = item.setdefault("metadata", {})
        if metadata.get("name") != path.name:
            raise bad_request(
                f"the name of the object ({metadata.get('name')}) does not match the name on the "
                f"URL ({path.name})"
            )
        if path.namespace:
            metadata["namespace"] = path.namespace
        self._store.update(path.kind.plural, item, part=_part(call))
        return self._object(call, 200, path.name)

    def _patch(self, call: Call) -> Answer:
        path, form = call.path, _patch_form(call)
        patch = _decoded_patch(call, form)
        if isinstance(patch, dict):
            patch = path.kind.to_stored(patch)
        if form is PatchForm.APPLY:
            if self._store.find(path.kind.plural, path.namespace, path.name) is None:
                namespace = path.namespace or None
                self._store.create(path.kind.plural, patch, namespace=namespace)
                return self._object(call, 201, path.name)
            form = PatchForm.STRATEGIC
        self._store.patch(
            path.kind.plural, path.namespace, path.name, patch, form=form, part=_part(call)
        )
        return self._object(call, 200, path.name)

    def _delete(self, call: Call) -> Answer:
        path, options = call.path, _delete_options(call)
        conditions = options.get("preconditions") or {}
        deleted = self._store.delete(
            path.kind.plural,
            path.namespace,
            path.name,
            grace_period_seconds=options.get("gracePeriodSeconds"),
            uid=conditions.get("uid"),
            resource_version=conditions.get("resourceVersion"),
            keeps_dependents=options.get("propagationPolicy") == "Orphan",
        )
        if path.kind.plural == "pods" or "deletionTimestamp" in deleted["metadata"]:
            return Answer(200, PlainPresentation(path.kind).single(Record(deleted)))
        details: Json = {"name": path.name, "kind": path.kind.plural}
        if path.kind.group:
            details["group"] = path.kind.group
        return Answer(200, success(200, {**details, "uid": deleted["metadata"]["uid"]}))

    def _bind(self, call: Call) -> Answer:
        if call.method != "POST":
            raise method_not_allowed()
        binding = _decoded(call)
        name = (binding.get("metadata") or {}).get("name")
        if call.path.name and name and name != call.path.name:
            raise bad_request("name in URL does not match name in Binding object")
        if call.path.name:
            binding.setdefault("metadata", {})["name"] = call.path.name
        bind(self._store, binding, namespace=call.path.namespace, clock=self._clock)
        return Answer(201, success(201))

    def _scale(self, call: Call) -> Answer:
        path = call.path
        workload = self._store.get(path.kind.plural, path.namespace, path.name)
        scale = _scale_of(workload)
        if call.method == "GET":
            return Answer(200, encoded(scale))
        if call.method == "PUT":
            scale = _decoded(call)
        elif call.method == "PATCH":
            form = _patch_form(call)
            scale = patched(scale, _decoded_patch(call, form), form)
        else:
            raise method_not_allowed()
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            raise bad_request(f"spec.replicas is {replicas!r}; it has to be 0 or more")
        metadata: Json = {}
        if asked := (scale.get("metadata") or {}).get("resourceVersion"):
            metadata["resourceVersion"] = asked
        change = {"metadata": metadata, "spec": {"replicas": replicas}}
        form = PatchForm.MERGE
        changed = self._store.patch(path.kind.plural, path.namespace, path.name, change, form=form)
        return Answer(200, encoded(_scale_of(changed)))

    def _object(self, call: Call, status: int, name: str) -> Answer:
        path = call.path
        record = self._store.record(path.kind.plural, path.namespace, name)
        return Answer(status, self._presented(call).single(record))

    def _presented(self, call: Call) -> Any:
        include = call.query.get("includeObject", "Metadata")
        return presentation(call.path.kind, call.accept, include, self._clock)


_ON_COLLECTION: dict[str, Callable[[Operations, Call], Answer]] = {
    "GET": Operations._list,
    "POST": Operations._create,
    "DELETE": Operations._delete_collection,
}
_ON_OBJECT: dict[str, Callable[[Operations, Call], Answer]] = {
    "GET": Operations._get,
    "PUT": Operations._update,
    "PATCH": Operations._patch,
    "DELETE": Operations._delete,
}


def success(code: int, details: Json | None = None) -> bytes:
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        return encoded({**status, "details": details})
    return encoded({**status, "code": code})


def _decoded(call: Call) -> Json:
    if "protobuf" in call.content_type:
        raise unsupported_media_type(call.content_type, "application/json, application/yaml")
    name = call.path.kind.name
    try:
        is_yaml = "yaml" in call.content_type
        value = yaml.safe_load(call.body) if is_yaml else json.loads(call.body)
    except (ValueError, yaml.YAMLError) as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {name}): "
            f"couldn't get version/kind; json parse error: {error}"
        ) from None
    if not isinstance(value, dict) or not isinstance(value.get("metadata", {}), dict):
        raise bad_request(
            f"the object provided is unrecognized (must be of type {name}): "
            "it has to be an object with an object as metadata"
        )
    return value


def _patch_form(call: Call) -> PatchForm:
    try:
        return PatchForm(call.content_type)
    except ValueError:
        supported = ", ".join(form.value for form in PatchForm)
        raise unsupported_media_type(call.content_type, supported) from None


def _decoded_patch(call: Call, form: PatchForm) -> Any:
    try:
        return yaml.safe_load(call.body) if form is PatchForm.APPLY else json.loads(call.body)
    except (ValueError, yaml.YAMLError) as error:
        raise bad_request(f"the patch is not valid: {error}") from None


def _delete_options(call: Call) -> Json:
    options = _decoded(call) if call.body.strip() else {}
    if (grace := integer(call.query, "gracePeriodSeconds")) is not None:
        options["gracePeriodSeconds"] = grace
    if policy := call.query.get("propagationPolicy"):
        options["propagationPolicy"] = policy
    return options


def _part(call: Call) -> Part:
    return Part.STATUS if call.path.subresource == "status" else Part.MAIN


def _position(item: Json) -> list[str]:
    return [item["metadata"].get("namespace", ""), item["metadata"]["name"]]


def _scale_of(workload: Json) -> Json:
    metadata, spec = workload["metadata"], workload["spec"]
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept},
        "spec": {"replicas": spec["replicas"]},
        "status": {
            "replicas": (workload.get("status") or {}).get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        },
    }
