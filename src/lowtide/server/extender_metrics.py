"""What the extender counts, in the registry that /metrics serves."""

from prometheus_client import CollectorRegistry, Counter, Histogram

# From half a millisecond on; the budgets of 50 ms and 500 ms are among them.
_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class ExtenderMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "lowtide_extender_requests_total",
            "Requests of schedulers, by verb and status code",
            ("verb", "code"),
            registry=registry,
        )
        self._seconds = Histogram(
            "lowtide_extender_request_duration_seconds",
            "Time from the first byte of a request to its answer, in seconds",
            ("verb",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._neutral = Counter(
            "lowtide_extender_neutral_answers_total",
            "Answers in which no plugin counted; slow: they took longer than the budget, "
            "failed: Lowtide itself had a problem",
            ("verb", "reason"),
            registry=registry,
        )
        self._rejected = Counter(
            "lowtide_extender_rejected_requests_total",
            "Requests that are rejected, by reason: host, origin, content-type, path, method, "
            "no-bind, not-ready, busy, too-large, too-slow, content-encoding, broken-off, "
            "unreadable",
            ("reason",),
            registry=registry,
        )
        self._plugin_errors = Counter(
            "lowtide_extender_plugin_errors_total",
            "Answers without a plugin that failed, by plugin",
            ("plugin",),
            registry=registry,
        )

    def observe(self, verb: str, status: str, seconds: float) -> None:
        self._requests.labels(verb, status).inc()
        self._seconds.labels(verb).observe(seconds)

    def neutral_answer(self, verb: str, reason: str) -> None:
        self._neutral.labels(verb, reason).inc()

    def rejected(self, reason: str) -> None:
        self._rejected.labels(reason).inc()

    def plugin_error(self, plugin_name: str) -> None:
        self._plugin_errors.labels(plugin_name).inc()
