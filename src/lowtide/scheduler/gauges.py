"""The gauges of the scheduler. Their numbers are read at each scrape, from a source set by app."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentNumbers:
    """Numbers that are read only at a scrape, so that they cost scheduling no time."""

    pending_pods: Mapping[str, int]  # by queue: active, backoff, unschedulable, gated
    incoming_pods: Mapping[tuple[str, str], int]  # by (queue, event), since the start
    unschedulable_pods: Mapping[tuple[str, str], int]  # by (plugin, profile)
    cached_nodes: int
    cached_pods: int
    assumed_pods: int
    clamped_objects: Mapping[str, int]  # by kind: node, pod
    bindings_in_flight: int
    is_leader: bool


class PresentGauges(Collector):
    """The gauges made of PresentNumbers at each scrape."""

    def __init__(self) -> None:
        self.source: Callable[[], PresentNumbers] | None = None

    def describe(self) -> Iterator[Metric]:
        # Names only: a registry rejects a second metric of the same name.
        yield from _families(None)

    def collect(self) -> Iterator[Metric]:
        if self.source is not None:
            yield from _families(self.source())


@dataclass(frozen=True, slots=True)
class _Row:
    """One metric family: its name, and how to read its samples with their label values."""

    name: str
    documentation: str
    labels: tuple[str, ...]
    samples: Callable[[PresentNumbers], Iterable[tuple[tuple[str, ...], float]]]
    family: type[GaugeMetricFamily | CounterMetricFamily] = GaugeMetricFamily


_ROWS = (
    _Row(
        "scheduler_pending_pods",
        "Pending pods, by queue",
        ("queue",),
        lambda numbers: (((queue,), count) for queue, count in numbers.pending_pods.items()),
    ),
    _Row(
        "scheduler_unschedulable_pods",
        "Unschedulable pods, by the plugin that rejected them; a pod that several plugins rejected "
        "is counted under each",
        ("plugin", "profile"),
        lambda numbers: numbers.unschedulable_pods.items(),
    ),
    _Row(
        "scheduler_cache_size",
        "Nodes, pods and assumed pods kept in memory",
        ("type",),
        lambda numbers: (
            (("nodes",), numbers.cached_nodes),
            (("pods",), numbers.cached_pods),
            (("assumed_pods",), numbers.assumed_pods),
        ),
    ),
    _Row(
        "lowtide_clamped_objects",
        "Nodes, and pods on nodes, with an amount that does not fit into 64 bits, is below zero or "
        "is unreadable: it counts as the largest number, or as zero",
        ("kind",),
        lambda numbers: (((kind,), count) for kind, count in numbers.clamped_objects.items()),
    ),
    _Row(
        "lowtide_bindings_in_flight",
        "Bindings without an answer yet",
        (),
        lambda numbers: (((), numbers.bindings_in_flight),),
    ),
    _Row(
        "lowtide_leader",
        "1 while this process schedules, 0 on standby",
        (),
        lambda numbers: (((), int(numbers.is_leader)),),
    ),
    _Row(
        "scheduler_queue_incoming_pods",
        "Pods that entered a queue, by queue and by the event that moved them",
        ("queue", "event"),
        lambda numbers: numbers.incoming_pods.items(),
        CounterMetricFamily,
    ),
)


def _families(numbers: PresentNumbers | None) -> Iterator[Metric]:
    """Without numbers, the families have no samples."""
    for row in _ROWS:
        family = row.family(row.name, row.documentation, labels=row.labels)
        for labels, count in () if numbers is None else row.samples(numbers):
            family.add_metric(labels, count)
        yield family
