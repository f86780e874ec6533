"""The gauges of the scheduler, which are read at the moment of a scrape. app hands in where."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentNumbers:
    """Numbers that are read when somebody asks, so that keeping them costs a cycle nothing."""

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
    """The gauges made of PresentNumbers at the moment of a scrape."""

    def __init__(self) -> None:
        self.source: Callable[[], PresentNumbers] | None = None

    def describe(self) -> Iterator[Metric]:
        # Names only: a registry rejects a second metric that is called the same.
        yield from _families(None)

    def collect(self) -> Iterator[Metric]:
        if self.source is not None:
            yield from _families(self.source())


@dataclass(frozen=True, slots=True)
class _Row:
    """One family: its name, and how its samples are read, each with the values of its labels."""

    name: str
    documentation: str
    labels: tuple[str, ...]
    samples: Callable[[PresentNumbers], Iterable[tuple[tuple[str, ...], float]]]
    family: type[GaugeMetricFamily | CounterMetricFamily] = GaugeMetricFamily


_ROWS = (
    _Row(
        "scheduler_pending_pods",
        "Pods that wait, by queue",
        ("queue",),
        lambda numbers: (((queue,), count) for queue, count in numbers.pending_pods.items()),
    ),
    _Row(
        "scheduler_unschedulable_pods",
        "Pods that wait because a plugin rejected every node, by plugin; a pod that several "
        "plugins rejected is counted under each",
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
        "Nodes, and pods on nodes, with an amount that is too large for 64 bits, below zero or "
        "unreadable: it counts as the largest number, or as nothing",
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
    """Without samples where there are no numbers."""
    for row in _ROWS:
        family = row.family(row.name, row.documentation, labels=row.labels)
        for labels, count in () if numbers is None else row.samples(numbers):
            family.add_metric(labels, count)
        yield family
