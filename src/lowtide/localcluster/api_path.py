"""The path and query of a request about objects, taken apart. Called by ApiServer."""

from collections.abc import Mapping
from dataclasses import dataclass

from lowtide.localcluster.failures import bad_request, unknown_resource
from lowtide.localcluster.kinds import Kind
from lowtide.localcluster.selectors import Selection, parse_fields, parse_labels

_OF_NAMESPACES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class ApiPath:
    """What a request is about; namespace "" means none or all, name "" a whole collection."""

    kind: Kind
    namespace: str
    name: str
    subresource: str


def parse_path(path: str, served: Mapping[tuple[str, str], Kind]) -> ApiPath:
    parts = path.strip("/").split("/")
    depth = 2 if parts[0] == "api" else 3
    api, rest = "/" + "/".join(parts[:depth]), parts[depth:]
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and rest[2] not in _OF_NAMESPACES:
        namespace, rest = rest[1], rest[2:]
    if rest == ["bindings"] and api == "/api/v1":
        return ApiPath(served["/api/v1", "pods"], namespace, "", "binding")
    kind = served.get((api, rest[0])) if rest else None
    if kind is None or len(rest) > 3:
        raise unknown_resource()
    name, subresource = [*rest[1:], "", ""][:2]
    if name and kind.is_namespaced != bool(namespace):
        raise unknown_resource()
    return ApiPath(kind, namespace, name, subresource)


def selection(path: ApiPath, query: Mapping[str, str]) -> Selection:
    fields = parse_fields(query.get("fieldSelector", ""), path.kind.fields)
    if path.name:
        fields += parse_fields(f"metadata.name={path.name}", {})
    return Selection(path.namespace or None, parse_labels(query.get("labelSelector", "")), fields)


def is_true(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in ("true", "1")


def integer(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(f"{name}: {text!r} is not a whole number") from None


def version(query: Mapping[str, str]) -> int | None:
    """The resourceVersion asked for; None when it is left out."""
    text = query.get("resourceVersion", "")
    if text and not text.isdecimal():
        raise bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": '
            "it has to be a whole number"
        )
    return int(text) if text else None
