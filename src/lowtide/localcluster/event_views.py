"""One stored Event, two faces: core v1 (as stored) and events.k8s.io/v1.

Named in the table of kinds; called when a request or an answer speaks events.k8s.io."""

from lowtide.localcluster.documents import Json

# events.k8s.io/v1 -> core v1
_CORE_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_NEW_NAMES = {core: new for new, core in _CORE_NAMES.items()}


def core_event(event: Json) -> Json:
    return {_CORE_NAMES.get(key, key): value for key, value in event.items()}


def new_event(event: Json) -> Json:
    return {_NEW_NAMES.get(key, key): value for key, value in event.items()}


def prepare_event(event: Json, now: str) -> None:
    """The empty fields that the real server always sends."""
    event.setdefault("involvedObject", {})
    event.setdefault("source", {})
    for key in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(key, None)
    event.setdefault("reportingComponent", "")
    event.setdefault("reportingInstance", "")
