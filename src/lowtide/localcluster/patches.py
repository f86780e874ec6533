"""The three patch forms of Kubernetes as pure functions on plain JSON values.

Called by the store with a copy of the stored object; strategic merge knows only the lists of the
kinds that this cluster holds."""

from collections.abc import Callable
from enum import Enum
from typing import Any

from lowtide.localcluster.documents import Json, cloned
from lowtide.localcluster.failures import bad_request

# List field -> the key by which its items are merged. A list that is not here is replaced whole.
_MERGE_KEYS = {
    "conditions": "type",
    "addresses": "type",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "resourceClaims": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "hostAliases": "ip",
    "podIPs": "ip",
    "hostIPs": "ip",
    "ownerReferences": "uid",
    "topologySpreadConstraints": "topologyKey",
}
_PRIMITIVE_SETS = frozenset(["finalizers", "podCIDRs"])
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


class PatchForm(Enum):
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


def patched(target: Json, patch: Any, form: PatchForm) -> Json:
    """The patched object; `target` may be changed and must not be used afterwards."""
    if form is PatchForm.JSON:
        if not isinstance(patch, list):
            raise bad_request("a JSON patch has to be a list of operations")
        return json_patch(target, patch)
    if not isinstance(patch, dict):
        raise bad_request("the patch has to be a JSON object")
    if form is PatchForm.MERGE:
        return merge_patch(target, patch)
    return strategic_merge(target, patch)


def merge_patch(target: Any, patch: Json) -> Json:
    result: Json = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge_patch(result.get(key), value)
        else:
            result[key] = value
    return result


def strategic_merge(target: Any, patch: Json) -> Json:
    result: Json = target if isinstance(target, dict) else {}
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if (retained := patch.get("$retainKeys")) is not None:
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_field(result, key, value)
    for key, value in patch.items():
        if key.startswith(_DELETE_PRIMITIVES):
            field = key.removeprefix(_DELETE_PRIMITIVES)
            result[field] = [item for item in result.get(field) or [] if item not in value]
        elif key.startswith(_ORDER):
            _reorder(result, key.removeprefix(_ORDER), value)
    return result


def _merge_field(result: Json, key: str, value: Any) -> None:
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        result[key] = strategic_merge(result.get(key), value)
    elif isinstance(value, list):
        result[key] = _merge_list(key, result.get(key) or [], value)
    else:
        result[key] = value


def _merge_list(field: str, current: list[Any], patch: list[Any]) -> list[Any]:
    if field in _PRIMITIVE_SETS and not any(isinstance(item, dict) for item in patch):
        return current + [item for item in patch if item not in current]
    merge_key = _MERGE_KEYS.get(field)
    directives = [item for item in patch if isinstance(item, dict) and "$patch" in item]
    if {"$patch": "replace"} in directives or merge_key is None:
        return [item for item in patch if item not in directives]
    if not all(isinstance(item, dict) and merge_key in item for item in patch):
        # Items without the merge key are replaced whole rather than guessed.
        return patch
    merged = {item.get(merge_key): item for item in current}
    for item in patch:
        identity = item[merge_key]
        if item.get("$patch") == "delete":
            merged.pop(identity, None)
        else:
            merged[identity] = strategic_merge(merged.get(identity), item)
    return list(merged.values())


def _reorder(result: Json, field: str, order: list[Any]) -> None:
    items = result.get(field)
    if not isinstance(items, list):
        return
    merge_key = _MERGE_KEYS.get(field)
    wanted = [entry.get(merge_key) if isinstance(entry, dict) else entry for entry in order]

    def rank(item: Any) -> int:
        identity = item.get(merge_key) if isinstance(item, dict) else item
        return wanted.index(identity) if identity in wanted else len(wanted)

    items.sort(key=rank)


def json_patch(target: Json, operations: list[Json]) -> Json:
    document: Any = target
    for operation in operations:
        apply = _OPERATIONS.get(operation.get("op", ""))
        if apply is None or "path" not in operation:
            raise bad_request(
                f"JSON patch operation {operation!r} is not understood: it needs a path and an op "
                f"that is one of {', '.join(_OPERATIONS)}"
            )
        try:
            document = apply(document, operation)
        except (KeyError, IndexError, ValueError, TypeError):
            path = operation["path"]
            raise bad_request(
                f"the JSON patch operation {operation['op']} does not apply: "
                f"the object is missing the path or the value at {path!r}"
            ) from None
    if not isinstance(document, dict):
        raise bad_request("the JSON patch leaves no object behind")
    return document


def _add(document: Any, operation: Json) -> Any:
    parent, key = _locate(document, operation["path"])
    if parent is None:
        return operation["value"]
    if isinstance(parent, list):
        parent.insert(len(parent) if key == "-" else _index(parent, key, 1), operation["value"])
    else:
        parent[key] = operation["value"]
    return document


def _remove(document: Any, operation: Json) -> Any:
    parent, key = _locate(document, operation["path"])
    del parent[_index(parent, key) if isinstance(parent, list) else key]
    return document


def _replace(document: Any, operation: Json) -> Any:
    parent, key = _locate(document, operation["path"])
    if parent is None:
        return operation["value"]
    _at(document, operation["path"])
    parent[_index(parent, key) if isinstance(parent, list) else key] = operation["value"]
    return document


def _test(document: Any, operation: Json) -> Any:
    if _at(document, operation["path"]) != operation["value"]:
        raise ValueError("the value differs")
    return document


def _copy(document: Any, operation: Json) -> Any:
    value = cloned(_at(document, operation["from"]))
    return _add(document, {"path": operation["path"], "value": value})


def _move(document: Any, operation: Json) -> Any:
    value = _at(document, operation["from"])
    document = _remove(document, {"path": operation["from"]})
    return _add(document, {"path": operation["path"], "value": value})


_OPERATIONS: dict[str, Callable[[Any, Json], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "test": _test,
    "copy": _copy,
    "move": _move,
}


def _locate(document: Any, path: str) -> tuple[Any, str]:
    """The container and key that a JSON pointer ends at; (None, "") for the whole document."""
    if path == "":
        return None, ""
    parent, _, last = path.rpartition("/")
    return _at(document, parent), _unescaped(last)


def _at(document: Any, path: str) -> Any:
    value = document
    for part in path.split("/")[1:]:
        key = _unescaped(part)
        value = value[_index(value, key)] if isinstance(value, list) else value[key]
    return value


def _index(items: list[Any], key: str, beyond: int = 0) -> int:
    index = int(key)
    if not 0 <= index < len(items) + beyond:
        raise IndexError(key)
    return index


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
