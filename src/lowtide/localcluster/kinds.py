"""The table of kinds that the embedded cluster holds: adding a kind is adding one row.

Read by the store, the discovery documents and the request paths."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lowtide.localcluster.documents import Json
from lowtide.localcluster.event_views import core_event, new_event, prepare_event
from lowtide.localcluster.pods import check_pod_update, prepare_pod, prepare_workload


def _nothing(item: Json, now: str) -> None:
    """A kind whose objects are stored as they come."""


def _anything(new: Json, old: Json) -> None:
    """A kind whose objects may change in every way."""


def _as_is(item: Json) -> Json:
    return item


def _prepare_namespace(namespace: Json, now: str) -> None:
    metadata = namespace["metadata"]
    metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]
    namespace.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    namespace["status"] = {"phase": "Active"}


def _prepare_node(node: Json, now: str) -> None:
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One served resource; kinds with the same plural are views of the same stored objects."""

    name: str
    plural: str
    api: str
    is_namespaced: bool = True
    has_status: bool = False
    has_scale: bool = False
    has_generation: bool = False
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Json, str], None] = _nothing
    check_update: Callable[[Json, Json], None] = _anything
    to_stored: Callable[[Json], Json] = _as_is
    from_stored: Callable[[Json], Json] = _as_is

    @property
    def api_version(self) -> str:
        return self.api.removeprefix("/apis/").removeprefix("/api/")

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def resource(self) -> str:
        """The name in the real server's messages: pods, deployments.apps."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_POD_FIELDS = {
    path: path
    for path in (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    )
}
_EVENT_FIELDS = {
    **{
        f"involvedObject.{key}": f"involvedObject.{key}"
        for key in (
            "kind",
            "namespace",
            "name",
            "uid",
            "apiVersion",
            "resourceVersion",
            "fieldPath",
        )
    },
    "reason": "reason",
    "reportingComponent": "reportingComponent",
    "source": "source.component",
    "type": "type",
}
_NEW_EVENT_FIELDS = {
    **{
        path.replace("involvedObject", "regarding"): path
        for path in _EVENT_FIELDS.values()
        if path.startswith("involvedObject")
    },
    "reason": "reason",
    "reportingController": "reportingComponent",
    "type": "type",
}

_STORAGE = "/apis/storage.k8s.io/v1"

KINDS = (
    Kind(
        "Node",
        "nodes",
        "/api/v1",
        is_namespaced=False,
        has_status=True,
        short_names=("no",),
        fields={"spec.unschedulable": "spec.unschedulable"},
        prepare=_prepare_node,
    ),
    Kind(
        "Pod",
        "pods",
        "/api/v1",
        has_status=True,
        has_generation=True,
        short_names=("po",),
        categories=("all",),
        fields=_POD_FIELDS,
        prepare=prepare_pod,
        check_update=check_pod_update,
    ),
    Kind(
        "Namespace",
        "namespaces",
        "/api/v1",
        is_namespaced=False,
        has_status=True,
        short_names=("ns",),
        fields={"status.phase": "status.phase"},
        prepare=_prepare_namespace,
    ),
    Kind(
        "Event",
        "events",
        "/api/v1",
        short_names=("ev",),
        fields=_EVENT_FIELDS,
        prepare=prepare_event,
    ),
    Kind(
        "Event",
        "events",
        "/apis/events.k8s.io/v1",
        short_names=("ev",),
        fields=_NEW_EVENT_FIELDS,
        to_stored=core_event,
        from_stored=new_event,
    ),
    Kind("ServiceAccount", "serviceaccounts", "/api/v1", short_names=("sa",)),
    Kind("Lease", "leases", "/apis/coordination.k8s.io/v1"),
    Kind(
        "Deployment",
        "deployments",
        "/apis/apps/v1",
        has_status=True,
        has_scale=True,
        has_generation=True,
        short_names=("deploy",),
        categories=("all",),
        prepare=prepare_workload,
    ),
    Kind(
        "ReplicaSet",
        "replicasets",
        "/apis/apps/v1",
        has_status=True,
        has_scale=True,
        has_generation=True,
        short_names=("rs",),
        categories=("all",),
        prepare=prepare_workload,
    ),
    # No controller acts on these here: they are kept for schedulers to read.
    Kind(
        "StatefulSet",
        "statefulsets",
        "/apis/apps/v1",
        has_status=True,
        has_scale=True,
        has_generation=True,
        short_names=("sts",),
        categories=("all",),
        prepare=prepare_workload,
    ),
    Kind(
        "ReplicationController",
        "replicationcontrollers",
        "/api/v1",
        has_status=True,
        has_generation=True,
        short_names=("rc",),
        categories=("all",),
    ),
    Kind(
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "/apis/policy/v1",
        has_status=True,
        has_generation=True,
        short_names=("pdb",),
    ),
    Kind("DeviceClass", "deviceclasses", "/apis/resource.k8s.io/v1", is_namespaced=False),
    Kind(
        "PersistentVolume",
        "persistentvolumes",
        "/api/v1",
        is_namespaced=False,
        has_status=True,
        short_names=("pv",),
    ),
    Kind(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        "/api/v1",
        has_status=True,
        short_names=("pvc",),
    ),
    Kind("StorageClass", "storageclasses", _STORAGE, is_namespaced=False, short_names=("sc",)),
    Kind("CSINode", "csinodes", _STORAGE, is_namespaced=False),
    Kind("CSIDriver", "csidrivers", _STORAGE, is_namespaced=False),
    Kind("CSIStorageCapacity", "csistoragecapacities", _STORAGE),
    Kind("VolumeAttachment", "volumeattachments", _STORAGE, is_namespaced=False, has_status=True),
    Kind(
        "Service",
        "services",
        "/api/v1",
        has_status=True,
        short_names=("svc",),
        categories=("all",),
    ),
)


def stored_kinds() -> dict[str, Kind]:
    """Plural -> the row in whose form the objects are stored: the first of that plural."""
    return {kind.plural: kind for kind in reversed(KINDS)}


def served_kinds() -> dict[tuple[str, str], Kind]:
    """(api, plural) as in a request path -> its row."""
    return {(kind.api, kind.plural): kind for kind in KINDS}
