"""All checks together, on clusters that are spoiled in one way each: what is found, where, and
nothing else beside it."""

import math
import time

import pytest
import yaml
from tests.doctor.conftest import (
    ALL,
    NAMES,
    NOW,
    Exporter,
    Told,
    exporter_on,
    findings_of,
    fixes_of,
    make_evidence,
    make_request,
    nodes_named,
    texts_of,
)

from lowtide.doctor.checks import examined
from lowtide.doctor.evidence import ScrapedPod
from lowtide.doctor.questions import LOOKED_AT, METRICS, SEEN, probes, traffic_metric
from lowtide.readings.request import POD_RECEIVE, RECEIVE, SPEED, TRANSMIT, VALUE
from lowtide.readings.series import Series
from lowtide.telemetry.errors import Fault, PrometheusError


def test_nothing_is_found_where_all_is_well() -> None:
    examination = examined(make_evidence())
    assert examination.findings == ()
    assert [(row.node, row.state.value) for row in examination.rows] == [
        ("east", "fresh"),
        ("north", "fresh"),
        ("south", "fresh"),
    ]


def on_pods(**changes: object) -> list[Exporter]:
    """As exporters look without hostNetwork."""
    return [
        exporter_on(
            number,
            **{
                "instance": f"10.244.0.{number}:9100",
                "nodename": f"exporter-{number}",
                "devices": ("lo", "eth0"),
                "rate": 900.0,
                "on_host": False,
                **changes,
            },
        )
        for number in (1, 2, 3)
    ]


PODS = [
    ScrapedPod("monitoring", f"exporter-{number}", name, False, (f"10.244.0.{number}",))
    for number, name in enumerate(NAMES, start=1)
]
HOST_PODS = [
    ScrapedPod("monitoring", f"exporter-{number}", name, True, (f"10.0.0.{number}",))
    for number, name in enumerate(NAMES, start=1)
]


@pytest.mark.parametrize(
    ("exporters", "pods", "found"),
    [
        pytest.param(
            on_pods(),
            PODS,
            [("fault", "pod-network", ALL)],
            id="are found at the addresses of pods, though no label leads to a node",
        ),
        pytest.param(
            [
                exporter_on(
                    number, instance=f"10.244.0.{number}:9100", labels={"node": NAMES[number - 1]}
                )
                for number in (1, 2, 3)
            ],
            PODS,
            [("fault", "pod-network", ALL)],
            id="are found at the addresses of pods, whatever their devices are",
        ),
        pytest.param(
            [
                exporter_on(
                    number,
                    instance=NAMES[number - 1],
                    labels={"namespace": "monitoring", "pod": f"exporter-{number}"},
                )
                for number in (1, 2, 3)
            ],
            PODS,
            [("fault", "pod-network", ALL)],
            id="are found by the pod that their labels name",
        ),
        pytest.param(
            [
                exporter_on(
                    number,
                    instance=NAMES[number - 1],
                    devices=("lo", "eth0"),
                    rate=900.0,
                    on_host=False,
                    labels={"namespace": "monitoring", "pod": f"exporter-{number}"},
                )
                for number in (1, 2, 3)
            ],
            HOST_PODS,
            [],
            id="are not suspected where their pods are on the host's network",
        ),
        pytest.param(
            [
                each
                for number, name in enumerate(NAMES, start=1)
                for each in on_pods(labels={"node": name})[number - 1 : number]
            ],
            [],
            [("fault", "pod-network", ALL)],
            id="are suspected by devices and traffic where pods may not be listed",
        ),
        pytest.param(
            [
                each
                for number, name in enumerate(NAMES, start=1)
                for each in on_pods(labels={"node": name}, rate=2e6)[number - 1 : number]
            ],
            [],
            [],
            id="are not suspected where there is traffic",
        ),
        pytest.param(
            [
                each
                for number, name in enumerate(NAMES, start=1)
                for each in on_pods(labels={"node": name}, on_host=True)[number - 1 : number]
            ],
            [],
            [],
            id="are not suspected where they show devices that only a host has",
        ),
        pytest.param(
            [
                each
                for number, name in enumerate(NAMES, start=1)
                for each in on_pods(labels={"node": name}, devices=("lo", "ens5"))[
                    number - 1 : number
                ]
            ],
            [],
            [],
            id="are not suspected where they show another device than a pod's",
        ),
        pytest.param(
            [
                exporter_on(number, devices=("lo", "eth0"), rate=900.0, on_host=False)
                for number in (1, 2, 3)
            ],
            [],
            [],
            id="are not suspected at the address of their node",
        ),
        pytest.param(
            on_pods(),
            [],
            [("fault", "label-mismatch", ALL), ("note", "pod-network", ())],
            id="are suspected in a note where they belong to no node",
        ),
    ],
)
def test_exporters_in_the_pod_network(
    exporters: list[Exporter], pods: list[ScrapedPod], found: Told
) -> None:
    evidence = make_evidence(exporters, pods=pods)
    assert findings_of(evidence) == found
    if found and found[0][1] == "pod-network":
        assert yaml.safe_load(fixes_of(evidence)[0])["spec"]["hostNetwork"] is True


def test_a_reading_from_a_pods_network_is_not_called_fresh() -> None:
    exporters = [
        exporter_on(number, instance=f"10.244.0.{number}:9100", labels={"node": NAMES[number - 1]})
        for number in (1, 2, 3)
    ]
    rows = examined(make_evidence(exporters, pods=PODS)).rows
    assert {row.state.value for row in rows} == {"implausible"}


@pytest.mark.parametrize(
    ("speed", "rate", "compares_with_links", "found"),
    [
        pytest.param(1.25e9, 2e6, True, [], id="nothing where speeds are plausible"),
        pytest.param(
            -125_000.0,
            2e6,
            True,
            [("note", "link-capacity", ALL)],
            id="a note where the busiest node stands in for virtual devices",
        ),
        pytest.param(
            -125_000.0,
            0.0,
            True,
            [("fault", "link-capacity", ALL)],
            id="a fault where nothing at all is known",
        ),
        pytest.param(
            None,
            0.0,
            True,
            [("fault", "link-capacity", ALL)],
            id="a fault where there is no speed and no traffic",
        ),
        pytest.param(
            -125_000.0,
            0.0,
            False,
            [("note", "link-capacity", ALL)],
            id="a note where nodes are compared with each other only",
        ),
    ],
)
def test_of_capacities_is_told(
    speed: float | None, rate: float, compares_with_links: bool, found: Told
) -> None:
    exporters = [exporter_on(number, speed=speed, rate=rate) for number in (1, 2, 3)]
    assert findings_of(make_evidence(exporters, compares_with_links=compares_with_links)) == found


def test_a_capacity_that_is_annotated_is_as_good_as_a_speed() -> None:
    nodes = nodes_named(*NAMES, annotations={"lowtide.dev/link-capacity": "10G"})
    exporters = [exporter_on(number, speed=-125_000.0) for number in (1, 2, 3)]
    evidence = make_evidence(exporters, nodes=nodes)
    assert findings_of(evidence) == []
    assert {row.capacity_source.value for row in examined(evidence).rows} == {"node annotation"}


def test_sums_over_time_need_no_capacity() -> None:
    request = make_request(measure="sumOverTime", learns_from_pods=False)
    exporters = [exporter_on(number, speed=-125_000.0, rate=0.0) for number in (1, 2, 3)]
    assert findings_of(make_evidence(exporters, request=request)) == []


def test_capacities_are_stated_by_instance_type_where_there_is_one() -> None:
    nodes = nodes_named(*NAMES, labels={"node.kubernetes.io/instance-type": "m5.large"})
    exporters = [exporter_on(number, speed=-125_000.0) for number in (1, 2, 3)]
    (fix,) = fixes_of(make_evidence(exporters, nodes=nodes))
    assert yaml.safe_load(fix) == {
        "linkCapacities": [
            {
                "matchLabels": {"node.kubernetes.io/instance-type": "m5.large"},
                "capacity": "10G",
            }
        ]
    }


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        pytest.param([], "cAdvisor is not scraped", id="where there is no such metric"),
        pytest.param(
            ["container_network_receive_bytes_total"],
            "has no rate by pod",
            id="where its series have no pods",
        ),
    ],
)
def test_pods_that_cannot_be_learned_from_are_noted(metrics: list[str], said: str) -> None:
    known = [traffic_metric(RECEIVE), traffic_metric(TRANSMIT), "node_network_speed_bytes"]
    answers = {
        POD_RECEIVE: [],
        METRICS: [Series({"__name__": name}, 1, NOW) for name in (*known, *metrics)],
    }
    evidence = make_evidence(answers=answers)
    assert findings_of(evidence) == [("note", "no-pod-traffic", ())]
    assert said in texts_of(evidence)[0]
    assert "taken to carry 400Mbit/s until" in texts_of(evidence)[0]  # 8 * 5e7 bits


def test_values_that_are_no_numbers_are_a_fault() -> None:
    answers = {
        VALUE: [
            Series({"node": name}, value, NOW)
            for name, value in zip(NAMES, (1.0, math.nan, -5.0), strict=True)
        ]
    }
    request = make_request(template="mine", learns_from_pods=False)
    evidence = make_evidence(request=request, answers=answers, compares_with_links=False)
    assert ("fault", "implausible-value", ("east", "south")) in findings_of(evidence)


@pytest.mark.parametrize(
    ("name", "error", "found"),
    [
        pytest.param(
            RECEIVE,
            PrometheusError("rejected", Fault.QUERY),
            [("fault", "query-rejected", ())],
            id="is a fault where traffic is measured by it",
        ),
        pytest.param(
            RECEIVE,
            PrometheusError("late", Fault.TIMEOUT),
            [("fault", "timeout", ())],
            id="is told as what it is",
        ),
        pytest.param(
            POD_RECEIVE,
            PrometheusError("late", Fault.TIMEOUT),
            [("note", "timeout", ())],
            id="does not mean that there is nothing",
        ),
        pytest.param(
            METRICS,
            PrometheusError("rejected", Fault.QUERY),
            [("note", "query-rejected", ())],
            id="is a note where it is asked beside",
        ),
    ],
)
def test_a_query_without_an_answer(name: str, error: PrometheusError, found: Told) -> None:
    assert findings_of(make_evidence(rejected={name: error})) == found


def test_queries_that_fail_alike_are_told_once() -> None:
    error = PrometheusError("rejected", Fault.QUERY)
    assert findings_of(
        make_evidence(rejected=dict.fromkeys((RECEIVE, TRANSMIT, SPEED), error))
    ) == [("fault", "query-rejected", ())]
    beside = make_evidence(rejected=dict.fromkeys((METRICS, SPEED), error))
    assert texts_of(beside)[0] == (
        "metrics that are scraped, link speeds could not be checked: rejected"
    )
    rejected, unknown = examined(beside).findings
    assert rejected.unchecked == ("metrics that are scraped", "link speeds")
    assert rejected.fix == ""
    assert unknown.text.startswith("the query for node_network_speed_bytes has no answer; ")


def test_every_question_has_a_name_for_people() -> None:
    assert set(LOOKED_AT) >= set(probes(make_request()))


def test_a_probe_without_an_answer_leaves_no_false_alarm() -> None:
    rejected = {SEEN: PrometheusError("rejected", Fault.QUERY)}
    evidence = make_evidence(rejected=rejected)
    assert findings_of(evidence) == [("note", "query-rejected", ())]
    assert {row.state.value for row in examined(evidence).rows} == {"fresh"}


def test_five_thousand_nodes_are_examined_in_seconds() -> None:
    names = [f"node-{number}" for number in range(5000)]
    nodes = [
        each
        for number in range(0, 5000, 250)
        for each in nodes_named(*names[number : number + 250])
    ]
    exporters = [Exporter(f"{name}:9100", name, labels={"node": name}) for name in names]
    evidence = make_evidence(exporters, nodes=nodes)
    started = time.monotonic()
    examination = examined(evidence)
    assert (len(examination.rows), examination.findings) == (5000, ())
    assert time.monotonic() - started < 20
