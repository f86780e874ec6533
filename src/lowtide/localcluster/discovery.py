"""What kubectl asks before its first request: versions, groups and the resources in each.

Pure documents made from the table of kinds; served by ApiServer."""

from lowtide.localcluster.documents import Json
from lowtide.localcluster.kinds import KINDS, Kind
from lowtide.localcluster.metrics_api import METRICS_API

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCE_VERBS = ["get", "patch", "update"]


def discovery_documents() -> dict[str, Json]:
    """Path -> document, for every path that is not about objects."""
    apis = list(dict.fromkeys(kind.api for kind in KINDS))
    documents = {api: _resources(api) for api in apis}
    documents[METRICS_API] = _metrics_resources()
    groups = [_group(api) for api in (*apis, METRICS_API) if api.startswith("/apis/")]
    documents["/version"] = {
        "major": "1",
        "minor": "36",
        "gitVersion": "v1.36.0-lowtide",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }
    documents["/api"] = {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [],
    }
    documents["/apis"] = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    for group in groups:
        documents[f"/apis/{group['name']}"] = {"kind": "APIGroup", "apiVersion": "v1", **group}
    documents["/openapi/v3"] = {
        "paths": {api.strip("/"): {"serverRelativeURL": f"/openapi/v3{api}"} for api in apis}
    }
    documents |= {f"/openapi/v3{api}": _field_validation(api) for api in apis}
    return documents


def _field_validation(api: str) -> Json:
    """Just enough of a schema for `kubectl apply` to leave checking fields to the server, which
    takes them as they come."""
    parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    paths = {}
    for kind in KINDS:
        if kind.api == api:
            group, version = kind.group, kind.api_version.rpartition("/")[2]
            identity = {"group": group, "version": version, "kind": kind.name}
            within = "/namespaces/{namespace}" if kind.is_namespaced else ""
            paths[f"{api}{within}/{kind.plural}/{{name}}"] = {
                "patch": {
                    "parameters": [parameter],
                    "responses": {},
                    "x-kubernetes-action": "patch",
                    "x-kubernetes-group-version-kind": identity,
                }
            }
    about = {"title": "Lowtide embedded cluster", "version": "v1"}
    return {"openapi": "3.0.0", "info": about, "paths": paths}


def _group(api: str) -> Json:
    group, _, version = api.removeprefix("/apis/").partition("/")
    served = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [served], "preferredVersion": served}


def _resources(api: str) -> Json:
    resources: list[Json] = []
    for kind in KINDS:
        if kind.api == api:
            resources += _kind_resources(kind)
    if api == "/api/v1":
        resources += [
            _resource("bindings", "Binding", ["create"], singular="binding"),
            _resource("pods/binding", "Binding", ["create"]),
        ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api.removeprefix("/apis/").removeprefix("/api/"),
        "resources": sorted(resources, key=lambda resource: str(resource["name"])),
    }


def _metrics_resources() -> Json:
    nodes = _resource("nodes", "NodeMetrics", ["get", "list"])
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": METRICS_API.removeprefix("/apis/"),
        "resources": [{**nodes, "namespaced": False}],
    }


def _kind_resources(kind: Kind) -> list[Json]:
    main = _resource(kind.plural, kind.name, _VERBS, singular=kind.name.lower())
    main["namespaced"] = kind.is_namespaced
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    resources = [main]
    if kind.has_status:
        status = _resource(f"{kind.plural}/status", kind.name, _SUBRESOURCE_VERBS)
        resources.append({**status, "namespaced": kind.is_namespaced})
    if kind.has_scale:
        scale = _resource(f"{kind.plural}/scale", "Scale", _SUBRESOURCE_VERBS)
        resources.append({**scale, "group": "autoscaling", "version": "v1"})
    return resources


def _resource(name: str, kind_name: str, verbs: list[str], singular: str = "") -> Json:
    return {
        "name": name,
        "singularName": singular,
        "namespaced": True,
        "kind": kind_name,
        "verbs": verbs,
    }
