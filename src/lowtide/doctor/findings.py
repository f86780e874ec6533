"""What the doctor finds: a fault or a note, where, and the lines to paste that fix it.

Made by the checks, printed by the command."""

import enum
from collections.abc import Iterable

import msgspec


class Severity(enum.Enum):
    FAULT = "fault"  # traffic does not count as configured: the exit status is 1
    NOTE = "note"  # it counts, and could count better


class Code(enum.Enum):
    """What is wrong; one name that scripts can go by."""

    NO_TRAFFIC_PLUGIN = "no-traffic-plugin"
    ADDRESS = "address"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    TLS = "tls"
    AUTH = "auth"
    CREDENTIALS = "credentials"
    SERVER = "server"
    NOT_PROMETHEUS = "not-prometheus"
    QUERY_REJECTED = "query-rejected"
    QUERY_EMPTY = "query-empty"
    NODES_NOT_LISTED = "nodes-not-listed"
    NO_NODES = "no-nodes"
    LABEL_MISMATCH = "label-mismatch"
    AMBIGUOUS_MATCH = "ambiguous-match"
    POD_NETWORK = "pod-network"
    METRIC_MISSING = "metric-missing"
    DEVICE_MISMATCH = "device-mismatch"
    EXPORTER_MISSING = "exporter-missing"
    TARGET_DOWN = "target-down"
    SCRAPE_INTERVAL = "scrape-interval"
    STALE_SAMPLES = "stale-samples"
    CLOCK_SKEW = "clock-skew"
    IMPLAUSIBLE_VALUE = "implausible-value"
    LINK_CAPACITY = "link-capacity"
    NO_POD_TRAFFIC = "no-pod-traffic"


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`text` is one sentence without the nodes' names; `fix` can be pasted as it stands, and is
    empty where there is none."""

    severity: Severity = Severity.FAULT
    code: Code
    text: str
    nodes: tuple[str, ...] = ()
    fix: str
    unchecked: tuple[str, ...] = ()  # what could not be looked at, for which this is the reason


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each once, faults before notes."""
    once = dict.fromkeys(findings)
    return tuple(sorted(once, key=lambda found: found.severity is not Severity.FAULT))
