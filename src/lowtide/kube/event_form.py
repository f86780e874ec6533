"""What an Event looks like on the wire, in the newer and the older API; used by kube_events."""

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from lowtide.kube.timestamps import micro_time, second_time

NOTE_BYTES = 1024
NAME_LENGTH = 253
INSTANCE_LENGTH = 128


class ObjectReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The object an Event is about; with a version, each version has Events of its own."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


@dataclass(slots=True, eq=False)
class Series:
    """One Event and how often it was seen since."""

    name: str
    host_name: str
    scheduler_name: str
    type: str
    reason: str
    action: str
    note: str
    regarding: ObjectReference
    related: ObjectReference | None
    first_seen_at: float
    last_seen_at: float
    written_at: float
    count: int = 1
    written_count: int = 0
    has_pending_count: bool = False
    form: "EventForm | None" = None

    @property
    def namespace(self) -> str:
        return self.regarding.namespace or "default"


class EventForm(Protocol):
    def path(self, series: Series) -> str: ...
    def document(self, series: Series) -> bytes: ...
    def patch(self, series: Series) -> bytes: ...


class _EventsForm:
    """events.k8s.io/v1"""

    def path(self, series: Series) -> str:
        return f"/apis/events.k8s.io/v1/namespaces/{series.namespace}/events"

    def document(self, series: Series) -> bytes:
        document: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": series.namespace},
            "eventTime": micro_time(series.first_seen_at),
            "reportingController": series.scheduler_name,
            "reportingInstance": _instance(series),
            "action": series.action,
            "reason": series.reason,
            "regarding": series.regarding,
            "note": series.note,
            "type": series.type,
        }
        if series.related is not None:
            document["related"] = series.related
        return msgspec.json.encode(document)

    def patch(self, series: Series) -> bytes:
        last_seen = micro_time(series.last_seen_at)
        return msgspec.json.encode(
            {"series": {"count": series.count, "lastObservedTime": last_seen}}
        )


class _CoreForm:
    """core/v1, for servers or permissions without the newer API"""

    def path(self, series: Series) -> str:
        return f"/api/v1/namespaces/{series.namespace}/events"

    def document(self, series: Series) -> bytes:
        first_seen = second_time(series.first_seen_at)
        document: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": series.namespace},
            "involvedObject": series.regarding,
            "reason": series.reason,
            "message": series.note,
            "type": series.type,
            "action": series.action,
            "source": {"component": series.scheduler_name, "host": series.host_name},
            "reportingComponent": series.scheduler_name,
            "reportingInstance": _instance(series),
            "firstTimestamp": first_seen,
            "lastTimestamp": first_seen,
            "count": 1,
        }
        if series.related is not None:
            document["related"] = series.related
        return msgspec.json.encode(document)

    def patch(self, series: Series) -> bytes:
        last_seen = second_time(series.last_seen_at)
        return msgspec.json.encode({"count": series.count, "lastTimestamp": last_seen})


EVENTS_FORM = _EventsForm()
CORE_FORM = _CoreForm()


def event_name(about: str, nanoseconds: int) -> str:
    suffix = f".{nanoseconds:x}"
    return about[: NAME_LENGTH - len(suffix)].rstrip("-.") + suffix


def cut_note(note: str) -> str:
    """The API server rejects notes above 1024 bytes."""
    encoded = note.encode()
    if len(encoded) <= NOTE_BYTES:
        return note
    return encoded[: NOTE_BYTES - 4].decode(errors="ignore") + " ..."


def _instance(series: Series) -> str:
    return f"{series.scheduler_name}-{series.host_name}"[:INSTANCE_LENGTH]
