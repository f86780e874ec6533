"""The rendered metrics against kube-scheduler v1.36's names, labels and buckets."""

import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from lowtide.scheduler.gauges import PresentGauges, PresentNumbers
from lowtide.scheduler.metrics import SchedulerMetrics

NUMBERS = PresentNumbers(
    pending_pods={"active": 3, "backoff": 1, "unschedulable": 2, "gated": 0},
    incoming_pods={("active", "UnschedulablePodAdd"): 1, ("backoff", "NodeUpdate"): 3},
    unschedulable_pods={("NodeResourcesFit", "lowtide"): 2},
    cached_nodes=12,
    cached_pods=30,
    assumed_pods=4,
    clamped_objects={"node": 1, "pod": 2},
    bindings_in_flight=4,
    is_leader=True,
)


def rendered(registry: CollectorRegistry) -> dict[str, Metric]:
    text = generate_latest(registry).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    return {name: family for name, family in families.items() if not name.endswith("_created")}


def samples(registry: CollectorRegistry, *, without: str = "_bucket") -> dict[str, float]:
    return {
        sample.name + "".join(f" {key}={value}" for key, value in sample.labels.items()): (
            sample.value
        )
        for family in rendered(registry).values()
        for sample in family.samples
        if not sample.name.endswith(without)
    }


def schedule_one(metrics: SchedulerMetrics, *, attempts: int = 1) -> None:
    metrics.plugins_asked("lowtide", {"filter": 0.125}, is_placed=True)
    metrics.pod_scheduled(
        "lowtide",
        attempts=attempts,
        seconds_algorithm=0.25,
        seconds_attempt=0.5,
        seconds_since_first_seen=2.0,
    )


def test_names_types_and_labels_are_kube_schedulers() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry)
    metrics.read_present_numbers_from(lambda: NUMBERS)
    schedule_one(metrics)
    metrics.plugin_failed("Broken")
    # The parser takes _total off the name of a counter.
    assert {
        (family.type, family.name, *sorted(family.samples[0].labels.keys() - {"le"}))
        for family in rendered(registry).values()
    } == {
        ("counter", "scheduler_schedule_attempts", "profile", "result"),
        ("histogram", "scheduler_scheduling_attempt_duration_seconds", "profile", "result"),
        ("histogram", "scheduler_scheduling_algorithm_duration_seconds"),
        ("gauge", "scheduler_pending_pods", "queue"),
        ("histogram", "scheduler_pod_scheduling_attempts"),
        (
            "histogram",
            "scheduler_framework_extension_point_duration_seconds",
            *("extension_point", "profile", "status"),
        ),
        ("counter", "scheduler_queue_incoming_pods", "event", "queue"),
        ("histogram", "scheduler_pod_scheduling_sli_duration_seconds", "attempts"),
        ("counter", "scheduler_preemption_attempts"),
        ("histogram", "scheduler_preemption_victims"),
        ("gauge", "scheduler_unschedulable_pods", "plugin", "profile"),
        ("gauge", "scheduler_cache_size", "type"),
        ("gauge", "lowtide_clamped_objects", "kind"),
        ("gauge", "lowtide_bindings_in_flight"),
        ("gauge", "lowtide_leader"),
        ("counter", "lowtide_plugin_errors", "plugin"),
    }


def test_buckets_are_kube_schedulers() -> None:
    registry = CollectorRegistry()
    schedule_one(SchedulerMetrics(registry))
    buckets = {
        name: [
            float(sample.labels["le"])
            for sample in family.samples
            if sample.name.endswith("_bucket")
        ]
        for name, family in rendered(registry).items()
        if family.type == "histogram"
    }
    tenth_of_a_millisecond_and_up = [
        0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.0128,
        0.0256, 0.0512, 0.1024, 0.2048, float("inf"),
    ]  # fmt: skip
    millisecond_to_16_seconds = [
        0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128,
        0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384, float("inf"),
    ]  # fmt: skip
    assert buckets == {
        "scheduler_scheduling_attempt_duration_seconds": millisecond_to_16_seconds,
        "scheduler_scheduling_algorithm_duration_seconds": millisecond_to_16_seconds,
        "scheduler_pod_scheduling_attempts": [1, 2, 4, 8, 16, float("inf")],
        "scheduler_framework_extension_point_duration_seconds": tenth_of_a_millisecond_and_up,
        "scheduler_preemption_victims": [1, 2, 4, 8, 16, 32, 64, float("inf")],
        "scheduler_pod_scheduling_sli_duration_seconds": [
            0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12,
            10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36, 1310.72, 2621.44, 5242.88,
            float("inf"),
        ],
    }  # fmt: skip


def test_what_happened_is_counted_under_its_result_and_profile() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry)
    schedule_one(metrics)
    schedule_one(metrics)
    metrics.pod_unschedulable("lowtide", seconds_attempt=0.125)
    metrics.attempt_failed("other", seconds_attempt=4.0)
    metrics.preemption_attempted()
    metrics.preemption_attempted()
    metrics.preempted(3)
    metrics.plugin_failed("Broken")
    attempt = "scheduler_scheduling_attempt_duration_seconds"
    assert samples(registry) == {
        "scheduler_framework_extension_point_duration_seconds_count "
        "extension_point=Filter profile=lowtide status=Success": 2,
        "scheduler_framework_extension_point_duration_seconds_sum "
        "extension_point=Filter profile=lowtide status=Success": 0.25,
        "scheduler_schedule_attempts_total profile=lowtide result=scheduled": 2,
        "scheduler_schedule_attempts_total profile=lowtide result=unschedulable": 1,
        "scheduler_schedule_attempts_total profile=other result=error": 1,
        f"{attempt}_count profile=lowtide result=scheduled": 2,
        f"{attempt}_sum profile=lowtide result=scheduled": 1.0,  # 2 * 0.5
        f"{attempt}_count profile=lowtide result=unschedulable": 1,
        f"{attempt}_sum profile=lowtide result=unschedulable": 0.125,
        f"{attempt}_count profile=other result=error": 1,
        f"{attempt}_sum profile=other result=error": 4.0,
        "scheduler_scheduling_algorithm_duration_seconds_count": 2,
        "scheduler_scheduling_algorithm_duration_seconds_sum": 0.5,  # 2 * 0.25
        "scheduler_pod_scheduling_attempts_count": 2,
        "scheduler_pod_scheduling_attempts_sum": 2,
        "scheduler_pod_scheduling_sli_duration_seconds_count attempts=1": 2,
        "scheduler_pod_scheduling_sli_duration_seconds_sum attempts=1": 4.0,  # 2 * 2.0
        "lowtide_plugin_errors_total plugin=Broken": 1,
        "scheduler_preemption_attempts_total": 2,
        "scheduler_preemption_victims_count": 1,
        "scheduler_preemption_victims_sum": 3,
    }


def test_attempts_from_15_on_share_one_label() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry)
    for attempts in (1, 14, 15, 16, 300):
        schedule_one(metrics, attempts=attempts)
    name = "scheduler_pod_scheduling_sli_duration_seconds_count attempts="
    assert {
        key.removeprefix(name): value
        for key, value in samples(registry).items()
        if key.startswith(name)
    } == {"1": 1, "14": 1, "15+": 3}


def test_present_numbers_are_read_at_each_scrape() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry)
    asked = []

    def source() -> PresentNumbers:
        asked.append("now")
        return NUMBERS

    metrics.read_present_numbers_from(source)
    assert asked == []
    gauges = {
        key: value
        for key, value in samples(registry).items()
        if not key.endswith(("_count", "_sum"))
    }
    assert asked == ["now"]
    assert gauges == {
        "scheduler_preemption_attempts_total": 0,
        "scheduler_pending_pods queue=active": 3,
        "scheduler_pending_pods queue=backoff": 1,
        "scheduler_pending_pods queue=unschedulable": 2,
        "scheduler_pending_pods queue=gated": 0,
        "scheduler_unschedulable_pods plugin=NodeResourcesFit profile=lowtide": 2,
        "scheduler_cache_size type=nodes": 12,
        "scheduler_cache_size type=pods": 30,
        "scheduler_cache_size type=assumed_pods": 4,
        "lowtide_clamped_objects kind=node": 1,
        "lowtide_clamped_objects kind=pod": 2,
        "lowtide_bindings_in_flight": 4,
        "lowtide_leader": 1,
        "scheduler_queue_incoming_pods_total event=UnschedulablePodAdd queue=active": 1,
        "scheduler_queue_incoming_pods_total event=NodeUpdate queue=backoff": 3,
    }


def test_a_second_scheduler_in_one_registry_is_rejected() -> None:
    registry = CollectorRegistry()
    registry.register(PresentGauges())
    with pytest.raises(ValueError, match="scheduler_pending_pods"):
        registry.register(PresentGauges())


@pytest.mark.parametrize(
    ("seconds_by_method", "is_placed", "sums"),
    [
        pytest.param(
            {"filter": 0.5, "score": 0.25, "reserve": 0.125, "permit": 2.0},
            True,
            {
                ("Filter", "Success"): 0.5,
                ("Score", "Success"): 0.25,
                ("Reserve", "Success"): 0.125,
                ("Permit", "Success"): 2.0,
            },
            id="with Success everywhere if the pod is placed",
        ),
        pytest.param(
            {"pre_filter": 1.0, "filter": 2.0, "post_filter": 3.0, "may_enqueue": 9.0},
            False,
            {
                ("PreFilter", "Unschedulable"): 1.0,
                ("Filter", "Unschedulable"): 2.0,
                ("PostFilter", "Success"): 3.0,
            },
            id="with Unschedulable at the filters if the pod fits nowhere",
        ),
        pytest.param(
            {"filter": 1.0, "score": 2.0, "reserve": 3.0},
            False,
            {
                ("Filter", "Success"): 1.0,
                ("Score", "Success"): 2.0,
                ("Reserve", "Unschedulable"): 3.0,
            },
            id="with Unschedulable at Reserve if a plugin rejects there",
        ),
        pytest.param(
            {"reserve": 3.0, "permit": 4.0},
            False,
            {("Reserve", "Success"): 3.0, ("Permit", "Unschedulable"): 4.0},
            id="with Unschedulable at Permit if a plugin rejects there",
        ),
    ],
)
def test_extension_points_are_called_as_in_kube_scheduler(
    seconds_by_method: dict[str, float], is_placed: bool, sums: dict[tuple[str, str], float]
) -> None:
    registry = CollectorRegistry()
    SchedulerMetrics(registry).plugins_asked("lowtide", seconds_by_method, is_placed=is_placed)
    assert seconds_at_points(registry) == sums


def test_hooks_are_extension_points_too() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry)
    metrics.hooks_ran("lowtide", "PreBind", 0.5, is_good=True)
    metrics.hooks_ran("lowtide", "PreBind", 0.25, is_good=True)
    metrics.hooks_ran("lowtide", "Bind", 2.0, is_good=False)
    assert seconds_at_points(registry) == {("PreBind", "Success"): 0.75, ("Bind", "Error"): 2.0}


def seconds_at_points(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    """By the names of extension points and their statuses."""
    name = "scheduler_framework_extension_point_duration_seconds"
    return {
        (each.labels["extension_point"], each.labels["status"]): each.value
        for each in rendered(registry)[name].samples
        if each.name.endswith("_sum")
    }
