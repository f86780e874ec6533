"""Why nodes have no reading: each is put down to one cause."""

import pytest
import yaml
from tests.doctor.conftest import (
    ALL,
    JOB,
    NAMES,
    NOW,
    WELL,
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

from lowtide.doctor.coverage import is_selected
from lowtide.doctor.questions import DOWN, JOBS, METRICS, traffic_metric
from lowtide.readings.request import RECEIVE, TRANSMIT, VALUE, VIRTUAL_DEVICES
from lowtide.readings.series import Series
from lowtide.telemetry.errors import Fault, PrometheusError
from lowtide.testing import make_node


def down(instance: str, job: str = JOB) -> Series:
    return Series({"__name__": "up", "instance": instance, "job": job}, 0, NOW)


@pytest.mark.parametrize(
    ("exporters", "answers", "found"),
    [
        pytest.param(
            WELL[:2],
            {},
            [("fault", "exporter-missing", ("south",))],
            id="has no target at all",
        ),
        pytest.param(
            WELL[:2],
            {DOWN: [down("10.0.0.3:9100")]},
            [("fault", "target-down", ("south",))],
            id="has a target that is down",
        ),
        pytest.param(
            WELL[:2],
            {DOWN: [down("10.0.0.3:10250", "kubelet")]},
            [("fault", "exporter-missing", ("south",))],
            id="has a target that is down, but of another job",
        ),
        pytest.param(
            [*WELL[:2], exporter_on(3, has_network=False)],
            {},
            [("fault", "metric-missing", ("south",))],
            id="has an exporter without the collector",
        ),
        pytest.param(
            [exporter_on(number, has_network=False) for number in (1, 2, 3)],
            {},
            [("fault", "metric-missing", ALL)],
            id="is one of many whose exporters lack the collector",
        ),
        pytest.param(
            [],
            {JOBS: [Series({"job": "kubelet"}, 3, NOW)]},
            [("fault", "metric-missing", ALL)],
            id="is one of many without any exporter",
        ),
        pytest.param(
            [],
            {DOWN: [down(f"10.0.0.{number}:9100") for number in (1, 2)]},
            [("fault", "target-down", ("east", "north")), ("fault", "metric-missing", ("south",))],
            id="is one of many whose targets are all down",
        ),
        pytest.param(
            [*WELL[:2], Exporter("10.9.9.9:9100", "elsewhere")],
            {},
            [("fault", "exporter-missing", ("south",))],
            id="has nothing to do with a machine outside of the cluster",
        ),
        pytest.param(
            [*WELL[:2], exporter_on(3, rate=None)],
            {},
            [],
            id="has a target that is a matter of time, which other checks tell",
        ),
    ],
)
def test_a_node_without_a_reading(
    exporters: list[Exporter], answers: dict[str, list[Series]], found: Told
) -> None:
    assert findings_of(make_evidence(exporters, answers=answers)) == found


def test_the_direction_that_is_missing_is_named() -> None:
    only_received = [
        Series({"__name__": name}, 1, NOW)
        for name in (traffic_metric(RECEIVE), "node_network_speed_bytes")
    ]
    evidence = make_evidence(answers={TRANSMIT: [], METRICS: only_received})
    assert findings_of(evidence) == [("fault", "metric-missing", ALL)]
    assert "no series of node_network_transmit_bytes_total, although" in texts_of(evidence)[0]


def test_a_collector_is_switched_on_where_exporters_are_known() -> None:
    exporters = [exporter_on(number, has_network=False) for number in (1, 2, 3)]
    assert yaml.safe_load(fixes_of(make_evidence(exporters))[0])["args"] == [
        "--collector.netdev",
        "--collector.netclass",
    ]


def test_no_cause_is_sought_where_the_query_itself_was_rejected() -> None:
    rejected = {RECEIVE: PrometheusError("rejected", Fault.QUERY)}
    evidence = make_evidence(WELL[:2], rejected=rejected)
    assert findings_of(evidence) == [("fault", "query-rejected", ())]


def test_jobs_are_told_where_no_exporter_is_known() -> None:
    jobs = [Series({"job": job}, 3, NOW) for job in ("kubelet", "api")]
    evidence = make_evidence([], answers={JOBS: jobs})
    assert "it scrapes the jobs api, kubelet" in texts_of(evidence)[0]
    assert yaml.safe_load(fixes_of(evidence)[0])[0]["kubernetes_sd_configs"] == [{"role": "node"}]


def test_taints_and_strangers_are_told_where_no_exporter_runs() -> None:
    nodes = nodes_named("north", "east")
    nodes.append(make_node("south", taints=[{"key": "gpu", "effect": "NoSchedule"}]))
    stranger = Exporter("10.9.9.9:9100", "elsewhere")
    evidence = make_evidence([*WELL[:2], stranger], nodes=nodes)
    (text,) = texts_of(evidence)
    assert "1 of them have taints" in text
    assert 'instance="10.9.9.9:9100"' in text


@pytest.mark.parametrize(
    ("exporters", "label", "fix"),
    [
        pytest.param(
            WELL,
            "kubernetes_node",
            {"nodeLabel": "auto"},
            id="another nodeLabel where that would match",
        ),
        pytest.param(
            [exporter_on(n, nodename="", labels={"node": NAMES[n - 1]}) for n in (1, 2, 3)],
            "nodename",
            {"nodeLabel": "auto"},
            id="auto rather than one label",
        ),
        pytest.param(
            [
                Exporter(f"192.0.2.{n}:9100", labels={"host": name})
                for n, name in enumerate(NAMES, start=1)
            ],
            "auto",
            {"metric_relabel_configs": [{"source_labels": ["host"], "target_label": "node"}]},
            id="the label that holds the nodes' names",
        ),
        pytest.param(
            [
                Exporter(f"192.0.2.{n}:9100", labels={"host": f"{name}.example.org"})
                for n, name in enumerate(NAMES, start=1)
            ],
            "auto",
            {
                "metric_relabel_configs": [
                    {"source_labels": ["host"], "regex": "([^.:]+).*", "target_label": "node"}
                ]
            },
            id="what of a label is before the first dot",
        ),
    ],
)
def test_labels_that_match_nothing_are_fixed_by(
    exporters: list[Exporter], label: str, fix: object
) -> None:
    evidence = make_evidence(exporters, request=make_request(match_label=label))
    assert findings_of(evidence) == [("fault", "label-mismatch", ALL)]
    assert yaml.safe_load(fixes_of(evidence)[0]) == fix


def test_short_labels_are_given_the_domain_of_the_nodes() -> None:
    nodes = [make_node(f"{name}.sea.example") for name in NAMES]
    exporters = [
        Exporter(f"192.0.2.{n}:9100", labels={"host": name})
        for n, name in enumerate(NAMES, start=1)
    ]
    evidence = make_evidence(exporters, nodes=nodes)
    assert yaml.safe_load(fixes_of(evidence)[0]) == {
        "metric_relabel_configs": [
            {
                "source_labels": ["host"],
                "regex": "([^.:]+).*",
                "replacement": "$1.sea.example",
                "target_label": "node",
            }
        ]
    }


def test_without_any_clue_labels_and_names_are_shown_side_by_side() -> None:
    exporters = [Exporter(f"192.0.2.{n}:9100", f"vm-{n}") for n in (1, 2, 3)]
    evidence = make_evidence(exporters)
    assert findings_of(evidence) == [("fault", "label-mismatch", ALL)]
    assert texts_of(evidence) == [
        'no series belongs to any node: they have instance="192.0.2.1:9100", '
        'job="node-exporter", nodename="vm-1" and the like, while the nodes are called '
        "north (10.0.0.1), east (10.0.0.2)"
    ]
    assert yaml.safe_load(fixes_of(evidence)[0])["relabel_configs"][0]["target_label"] == "node"


def test_only_the_nodes_that_are_missing_are_named() -> None:
    exporters = [*WELL[:2], Exporter("192.0.2.3:9100", labels={"host": "south"})]
    assert findings_of(make_evidence(exporters)) == [("fault", "label-mismatch", ("south",))]


@pytest.mark.parametrize(
    ("exporters", "found", "fix"),
    [
        pytest.param(
            [Exporter("10.0.0.1:9100"), exporter_on(3)],
            [("fault", "ambiguous-match", ("twin-a", "twin-b"))],
            "relabel_configs",
            id="is a fault, fixed by a label that tells them apart",
        ),
        pytest.param(
            [
                Exporter("10.0.0.1:9100"),
                Exporter("192.0.2.1:9100", "twin-a"),
                Exporter("192.0.2.2:9100", "twin-b"),
                exporter_on(3),
            ],
            [("note", "ambiguous-match", ("twin-a", "twin-b"))],
            "nodeLabel",
            id="is a note where each has a series of its own besides",
        ),
    ],
)
def test_a_series_that_two_nodes_claim(exporters: list[Exporter], found: Told, fix: str) -> None:
    nodes = [
        make_node("twin-a", addresses=["10.0.0.1"]),
        make_node("twin-b", addresses=["10.0.0.1"]),
        make_node("south", addresses=["10.0.0.3"]),
    ]
    evidence = make_evidence(exporters, nodes=nodes)
    assert findings_of(evidence) == found
    assert list(yaml.safe_load(fixes_of(evidence)[0])) == [fix]


@pytest.mark.parametrize(
    ("devices", "asked", "found", "fix"),
    [
        pytest.param(
            [("lo", "ens5")] * 3,
            ("ens192",),
            [("fault", "device-mismatch", ALL)],
            {"devices": ["ens5"]},
            id="on no node",
        ),
        pytest.param(
            [("lo", "eth0"), ("lo", "eth0"), ("lo", "ens5", "ens6")],
            ("eth0",),
            [("fault", "device-mismatch", ("south",))],
            {"devices": ["ens5", "ens6"]},
            id="not on every node",
        ),
        pytest.param(
            [("lo", "eth0"), ("lo", "eth0"), ("lo",)],
            (),
            [("fault", "device-mismatch", ("south",))],
            None,
            id="all but virtual ones, on a node that has no other",
        ),
    ],
)
def test_devices_that_are(
    devices: list[tuple[str, ...]], asked: tuple[str, ...], found: Told, fix: object
) -> None:
    exporters = [exporter_on(n, devices=each) for n, each in enumerate(devices, start=1)]
    evidence = make_evidence(exporters, request=make_request(devices=asked))
    assert findings_of(evidence) == found
    if fix is not None:
        assert yaml.safe_load(fixes_of(evidence)[0]) == fix


@pytest.mark.parametrize(
    ("asked", "device", "selected"),
    [
        pytest.param((), "ens5", True, id="a real one by default"),
        pytest.param((), "veth12", False, id="no virtual one by default"),
        pytest.param(("eth0.100",), "eth0x100", False, id="an exact name only"),
        pytest.param(("e(th|ns).*",), "ens5", True, id="what an expression matches"),
        pytest.param(("e(th|ns)",), "ens5", False, id="what an expression matches as a whole"),
    ],
)
def test_a_request_selects(asked: tuple[str, ...], device: str, selected: bool) -> None:
    assert is_selected(make_request(devices=asked), device) is selected
    assert len(VIRTUAL_DEVICES) > 20


@pytest.mark.parametrize(
    ("values", "found"),
    [
        pytest.param({}, [("fault", "query-empty", ALL)], id="gives nothing"),
        pytest.param(
            {"north": 1.0, "east": 2.0},
            [("fault", "query-empty", ("south",))],
            id="gives nothing for a node",
        ),
    ],
)
def test_a_query_of_the_users_own(values: dict[str, float], found: Told) -> None:
    answers = {VALUE: [Series({"node": name}, value, NOW) for name, value in values.items()]}
    request = make_request(template="mine", learns_from_pods=False)
    evidence = make_evidence(request=request, answers=answers, compares_with_links=False)
    faults = [each for each in findings_of(evidence) if each[0] == "fault"]
    assert faults == found
