"""Fields that Lowtide 0.1 wrote under other names: the one place that knows them.

`journal` and `recording` ask for today's names before they decode."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

OLDER_VERSION: Final = 1  # of recordings

Names = Mapping[str, str]

_RECORD: Final[Names] = {
    "rejected_by": "unschedulable_plugins",
    "seconds_by_rule": "seconds_by_plugin",
    "preempts": "preemption",
    "asked": "extender_verb",
    "is_on": "actual_node",
    "neutral": "neutral_reason",
}
_NODE_OF_RECORD: Final[Names] = {"rules": "scores"}
_SOURCE: Final[Names] = {"of": "description"}
_BY_EVENT: Final[Mapping[str, Names]] = {
    "Decided": {"refusedBy": "unschedulablePlugins", "refusals": "reasonCounts"},
    "PermitAnswered": {"ruleName": "pluginName", "refusal": "rejection"},
}

# Every record has this field, and no other line holds it as it stands here: in a text the
# quotes would be escaped.
_MARK_OF_RECORD: Final = b'"seconds_by_rule":'
# Lines of other events have kept their names, and there are many of them.
_MARKS_OF_EVENTS: Final = tuple(f'{{"event":"{event}"'.encode() for event in _BY_EVENT)


def record_line(line: bytes) -> bytes:
    """A line of a journal, with today's names."""
    if _MARK_OF_RECORD not in line:
        return line
    found = msgspec.json.decode(line)
    if not isinstance(found, dict):
        return line
    record = _renamed(found, _RECORD)
    if isinstance(record.get("best"), list):
        record["best"] = [_renamed(node, _NODE_OF_RECORD) for node in record["best"]]
    return msgspec.json.encode(record)


def header_line(line: bytes) -> bytes:
    """The first line of a recording, with today's names."""
    found = msgspec.json.decode(line)
    if not isinstance(found, dict) or found.get("version") != OLDER_VERSION:
        return line
    if isinstance(found.get("sources"), list):
        found["sources"] = [_renamed(source, _SOURCE) for source in found["sources"]]
    return msgspec.json.encode(found)


def event_line(line: bytes) -> bytes:
    """Another line of a recording of OLDER_VERSION, with today's names."""
    if not line.startswith(_MARKS_OF_EVENTS):
        return line
    found = msgspec.json.decode(line)
    return msgspec.json.encode(_renamed(found, _BY_EVENT[found["event"]]))


def _renamed(found: Any, names: Names) -> Any:
    if not isinstance(found, dict):
        return found
    return {names.get(name, name): value for name, value in found.items()}
