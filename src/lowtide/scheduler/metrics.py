"""What the scheduler counts: kube-scheduler's metrics under its names, and Lowtide's own.

scheduler/live reports what happened; app hands in where the present numbers are read.
"""

from collections.abc import Callable, Container, Mapping

from prometheus_client import CollectorRegistry, Counter

from lowtide.scheduler.gauges import PresentGauges, PresentNumbers
from lowtide.scheduler.histogram import Histogram

_FIRST_OPEN_ENDED_ATTEMPT = 15

# As kube-scheduler calls what plugins are asked.
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
            "Attempts to make room for a pod by evicting others, with or without success",
            registry=registry,
        )
        self._preemption_victims = Histogram(
            "scheduler_preemption_victims",
            "Pods chosen to be evicted for one",
            buckets=exponential_buckets(1, 2, 7),
            registry=registry,
        )
        self._plugin_errors = Counter(
            "lowtide_plugin_errors_total",
            "Errors of plugins that ended no attempt, by plugin; each at most once per turn",
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
        """A pod is bound; seconds_attempt is algorithm and binding together."""
        self._attempts.ended(profile, "scheduled", seconds_attempt)
        self._scheduled.scheduled(attempts, seconds_algorithm, seconds_since_first_seen)

    def pod_unschedulable(self, profile: str, *, seconds_attempt: float) -> None:
        """No node suits the pod for now."""
        self._attempts.ended(profile, "unschedulable", seconds_attempt)

    def attempt_failed(self, profile: str, *, seconds_attempt: float) -> None:
        """An error of ours, of a plugin or of the API server ended the attempt."""
        self._attempts.ended(profile, "error", seconds_attempt)

    def plugins_asked(
        self, profile: str, seconds_by_method: Mapping[str, float], *, is_placed: bool
    ) -> None:
        """A point at which no plugin had to be asked took no time and is not counted."""
        rejecting = frozenset[str]() if is_placed else _rejecting(seconds_by_method)
        for method, seconds in seconds_by_method.items():
            point = _POINTS.get(method)
            if point is not None:
                status = "Unschedulable" if method in rejecting else "Success"
                self._point_seconds.observe(seconds, point, status, profile)

    def hooks_ran(self, profile: str, point: str, seconds: float, *, is_good: bool) -> None:
        """Of one binding: PreBind, Bind or PostBind."""
        self._point_seconds.observe(seconds, point, "Success" if is_good else "Error", profile)

    def preemption_attempted(self) -> None:
        self._preemption_attempts.inc()

    def preempted(self, victims: int) -> None:
        self._preemption_victims.observe(victims)

    def plugin_failed(self, plugin_name: str) -> None:
        """It raised where no attempt fails by it, such as in `may_help`."""
        self._plugin_errors.labels(plugin_name).inc()


class ScheduledPodMetrics:
    """What it took to schedule the pods that are bound."""

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
        told = f"{_FIRST_OPEN_ENDED_ATTEMPT}+" if is_open_ended else str(attempts)
        self._sli_seconds.observe(seconds_since_first_seen, told)


class AttemptMetrics:
    """Number and duration of attempts, by result and profile."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("result", "profile")
        self._total = Counter(
            "scheduler_schedule_attempts_total",
            "Attempts to schedule a pod, by result; unschedulable: no node suits the pod, "
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
    """By which a pod was rejected that was asked about by these: after a rejection nobody is
    asked."""
    last = next((each for each in ("permit", "reserve") if each in methods), None)
    return _METHODS_THAT_FILTER if last is None else frozenset([last])
