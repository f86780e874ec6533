"""What the scheduler counts: kube-scheduler's metrics under its names, and Lowtide's own.

live and its parts report what happened; app sets the source of the gauges.
"""

from collections.abc import Callable, Container, Mapping

from prometheus_client import CollectorRegistry, Counter

from lowtide.scheduler.gauges import PresentGauges, PresentNumbers
from lowtide.scheduler.histogram import Histogram

_FIRST_OPEN_ENDED_ATTEMPT = 15

# By plugin method: kube-scheduler's name of the extension point.
_POINTS = {
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "post_filter": "PostFilter",
    "score": "Score",
    "normalize": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "permit": "Permit",
}
_METHODS_THAT_FILTER = frozenset({"pre_filter", "filter"})


def exponential_buckets(first: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(first * factor**power for power in range(count))


class SchedulerMetrics:
    """Counters and histograms of one scheduler, in the registry that /metrics serves."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._present_gauges = PresentGauges()
        registry.register(self._present_gauges)
        self._attempts = AttemptMetrics(registry)
        self._scheduled = ScheduledPodMetrics(registry)
        self._point_seconds = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Time of all plugins at one extension point in one attempt, in seconds",
            ("extension_point", "status", "profile"),
            buckets=exponential_buckets(0.0001, 2, 12),
            registry=registry,
        )
        self._preemption_attempts = Counter(
            "scheduler_preemption_attempts_total",
            "Preemption attempts, with or without victims",
            registry=registry,
        )
        self._preemption_victims = Histogram(
            "scheduler_preemption_victims",
            "Victims of one preemption",
            buckets=exponential_buckets(1, 2, 7),
            registry=registry,
        )
        self._plugin_errors = Counter(
            "lowtide_plugin_errors_total",
            "Errors of plugins that failed no attempt, by plugin; at most one per plugin and turn",
            ("plugin",),
            registry=registry,
        )

    def read_present_numbers_from(self, source: Callable[[], PresentNumbers]) -> None:
        """Until this is called, the gauges are absent."""
        self._present_gauges.source = source

    def pod_scheduled(
        self,
        profile: str,
        *,
        attempts: int,
        seconds_algorithm: float,
        seconds_attempt: float,
        seconds_since_first_seen: float,
    ) -> None:
        """A pod is bound. `seconds_attempt` is algorithm and binding together."""
        self._attempts.ended(profile, "scheduled", seconds_attempt)
        self._scheduled.scheduled(attempts, seconds_algorithm, seconds_since_first_seen)

    def pod_unschedulable(self, profile: str, *, seconds_attempt: float) -> None:
        """The pod fits no node for now."""
        self._attempts.ended(profile, "unschedulable", seconds_attempt)

    def attempt_failed(self, profile: str, *, seconds_attempt: float) -> None:
        """An error of Lowtide, a plugin or the API server ended the attempt."""
        self._attempts.ended(profile, "error", seconds_attempt)

    def plugins_asked(
        self, profile: str, seconds_by_method: Mapping[str, float], *, is_placed: bool
    ) -> None:
        """An extension point at which no plugin had to be asked is not counted."""
        rejecting = frozenset[str]() if is_placed else _rejecting(seconds_by_method)
        for method, seconds in seconds_by_method.items():
            point = _POINTS.get(method)
            if point is not None:
                status = "Unschedulable" if method in rejecting else "Success"
                self._point_seconds.observe(seconds, point, status, profile)

    def hooks_ran(self, profile: str, point: str, seconds: float, *, is_good: bool) -> None:
        """One extension point of one binding: PreBind, Bind or PostBind."""
        self._point_seconds.observe(seconds, point, "Success" if is_good else "Error", profile)

    def preemption_attempted(self) -> None:
        self._preemption_attempts.inc()

    def preempted(self, victims: int) -> None:
        self._preemption_victims.observe(victims)

    def plugin_failed(self, plugin_name: str) -> None:
        """The plugin raised, but failed no attempt, such as in `may_help`."""
        self._plugin_errors.labels(plugin_name).inc()


class ScheduledPodMetrics:
    """Times and attempts of the pods that were bound."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._algorithm_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Time from taking a pod to the node chosen for it, in seconds",
            buckets=exponential_buckets(0.001, 2, 15),
            registry=registry,
        )
        self._pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts that a scheduled pod took",
            buckets=exponential_buckets(1, 2, 5),
            registry=registry,
        )
        self._sli_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from first seeing a pod to its binding, in seconds, by attempts taken",
            ("attempts",),
            buckets=exponential_buckets(0.01, 2, 20),
            registry=registry,
        )

    def scheduled(
        self, attempts: int, seconds_algorithm: float, seconds_since_first_seen: float
    ) -> None:
        self._algorithm_seconds.observe(seconds_algorithm)
        self._pod_attempts.observe(attempts)
        is_open_ended = attempts >= _FIRST_OPEN_ENDED_ATTEMPT
        label = f"{_FIRST_OPEN_ENDED_ATTEMPT}+" if is_open_ended else str(attempts)
        self._sli_seconds.observe(seconds_since_first_seen, label)


class AttemptMetrics:
    """Number and duration of attempts, by result and profile."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("result", "profile")
        self._total = Counter(
            "scheduler_schedule_attempts_total",
            "Attempts to schedule a pod, by result; unschedulable: the pod fits no node, "
            "error: the scheduler itself had a problem",
            labels,
            registry=registry,
        )
        self._seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Time of one attempt in seconds, the algorithm and the binding together",
            labels,
            buckets=exponential_buckets(0.001, 2, 15),
            registry=registry,
        )
        self._totals: dict[tuple[str, str], Counter] = {}

    def ended(self, profile: str, result: str, seconds: float) -> None:
        total = self._totals.get((result, profile))
        if total is None:
            total = self._totals[result, profile] = self._total.labels(result, profile)
        total.inc()
        self._seconds.observe(seconds, result, profile)


def _rejecting(methods: Container[str]) -> frozenset[str]:
    """Those of these methods that rejected the pod. No later method is asked after a rejection, so
    it was the last one."""
    last = next((each for each in ("permit", "reserve") if each in methods), None)
    return _METHODS_THAT_FILTER if last is None else frozenset([last])
