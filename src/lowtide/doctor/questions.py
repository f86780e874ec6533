"""What the doctor asks Prometheus beside the meter's own queries.

App asks it; the checks read the answers by these names."""

from typing import Final

from lowtide.readings.request import (
    FLAGS,
    NUMBER,
    PARENT,
    POD_RECEIVE,
    POD_TRANSMIT,
    RECEIVE,
    SPEED,
    TRANSMIT,
    UNAME,
    VIRTUAL_DEVICES,
    TrafficRequest,
    directions,
    quoted,
)

CLOCK: Final = "clock"
SEEN: Final = "seen"  # when the counter of each device was scraped last
HOST_DEVICES: Final = "host_devices"  # targets with devices that only a host has
DEVICE_NAMES: Final = "device_names"
EXPORTERS: Final = "exporters"
DOWN: Final = "down"
JOBS: Final = "jobs"
METRICS: Final = "metrics"

# What is looked at by the answer, in the words of a report.
LOOKED_AT: Final = {
    SEEN: "the age of samples",
    HOST_DEVICES: "exporters in a pod's network",
    DEVICE_NAMES: "names of devices",
    EXPORTERS: "where exporters run",
    DOWN: "targets that are down",
    JOBS: "jobs",
    METRICS: "metrics that are scraped",
    UNAME: "host names",
    SPEED: "link speeds",
    FLAGS: "bonds",
    PARENT: "VLANs and bridges",
    NUMBER: "numbers of devices",
    POD_RECEIVE: "what pods receive",
    POD_TRANSMIT: "what pods transmit",
}

CLOCK_QUERY: Final = "vector(time())"
LOOPBACK: Final = "lo"
SPEED_METRIC: Final = "node_network_speed_bytes"
POD_METRIC: Final = "container_network_receive_bytes_total"

# Kernel modules put these into every network namespace, a pod's too.
_IN_EVERY_NAMESPACE: Final = ("lo", "tunl.*", "dummy.*")


def traffic_metric(direction: str) -> str:
    return f"node_network_{direction}_bytes_total"


def counted_direction(request: TrafficRequest) -> str:
    """The direction whose counter stands for both where one tells enough."""
    first = directions(request)[0]
    return first if first in (RECEIVE, TRANSMIT) else RECEIVE


def probes(request: TrafficRequest) -> dict[str, str]:
    """Name to PromQL; their answers grow with nodes, not with pods."""
    metric = traffic_metric(counted_direction(request))
    uncounted = quoted("|".join(each for each in VIRTUAL_DEVICES if each != LOOPBACK))
    of_hosts = quoted("|".join(each for each in VIRTUAL_DEVICES if each not in _IN_EVERY_NAMESPACE))
    known = (traffic_metric(RECEIVE), traffic_metric(TRANSMIT), SPEED_METRIC, POD_METRIC)
    return {
        SEEN: f"timestamp({metric}{{device!~{uncounted}}})",
        HOST_DEVICES: f"count by (instance, job) ({metric}{{device=~{of_hosts}}})",
        DEVICE_NAMES: f"topk(20, count by (device) ({metric}))",
        EXPORTERS: "node_exporter_build_info",
        UNAME: "node_uname_info",
        DOWN: "up == 0",
        JOBS: "count by (job) (up)",
        METRICS: f"count by (__name__) ({{__name__=~{quoted('|'.join(known))}}})",
    }
