"""The model of Prometheus: by hand, and beside the embedded cluster's on the same traffic."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowtide.localcluster import Background, Faults, Link, TrafficModel
from lowtide.localcluster.prometheus import PrometheusServer
from lowtide.localcluster.promql import QueryError
from lowtide.simulator.prometheus_model import PrometheusModel, Targets
from lowtide.simulator.world import UPTIME_SECONDS, World
from lowtide.testing import ManualClock

BEGAN_AT = 1_767_225_600.0
RECEIVE = "node_network_receive_bytes_total"
TRANSMIT = "node_network_transmit_bytes_total"
POD_RECEIVE = "container_network_receive_bytes_total"
A = {"instance": "10.0.0.0:9100", "job": "node-exporter", "node": "a", "device": "eth0"}
B = {"instance": "10.0.0.1:9100", "job": "node-exporter", "node": "b", "device": "eth0"}


class Model:
    """Two nodes with 1000 B/s links and 100 and 200 B/s of background, scraped every 10 s: a at
    0 and b at 5 s of each ten."""

    def __init__(self, *, delay_seconds: float = 0.0) -> None:
        self.world = World(np.full(2, 1000.0), np.array([0.1, 0.2]), began_at=BEGAN_AT)
        targets = Targets(np.array([0.0, 0.5]), 10.0)
        self.prometheus = PrometheusModel(
            self.world,
            exporters=targets,
            kubelets=targets,
            node_labels=[{key: each[key] for key in each if key != "device"} for each in (A, B)],
            device="eth0",
            delay_seconds=delay_seconds,
        )

    def advance(self, seconds: float) -> None:
        """To so long after the beginning."""
        self.prometheus.scrape(BEGAN_AT + seconds)
        self.world.advance(BEGAN_AT + seconds)

    def start(self, name: str, node: int, receive: float, transmit: float) -> None:
        self.world.add_pod(node, receive, transmit)
        labels = {"namespace": "default", "pod": name}
        now = self.world.now
        self.prometheus.pod_started(name, labels, node, (receive, transmit), now)

    def query(self, promql: str, at: float) -> list[tuple[dict[str, str], float]]:
        found = self.prometheus.query(promql, BEGAN_AT + at)
        assert {one.at for one in found} <= {BEGAN_AT + at}
        return [(one.labels, round(one.value, 6)) for one in found]

    def by_node(self, promql: str, at: float) -> dict[str, float]:
        return {labels["node"]: value for labels, value in self.query(promql, at)}


def test_a_steady_rate_is_found() -> None:
    model = Model()
    model.advance(100)
    assert model.query(f"rate({RECEIVE}[30s])", 100) == [(A, 100.0), (B, 200.0)]
    assert model.query(f"increase({TRANSMIT}[30s])", 100) == [(A, 3000.0), (B, 6000.0)]


def test_a_new_rate_is_seen_scrape_by_scrape() -> None:
    """Node a has 300 B/s more from 102 s on; its scrapes are at 80, 90, 100, 110, 120, 130 s."""
    model = Model()
    model.advance(102)
    model.start("p", 0, 300.0, 0.0)
    seen = {}
    for at in (109, 111, 121, 131, 141):
        model.advance(at)
        seen[at] = model.by_node(f"rate({RECEIVE}[30s])", at)["a"]
    assert seen == {
        109: 100.0,
        # 90, 100, 110: 1000 + 1000 + 8 * 300 over 20 s
        111: 220.0,
        # 100, 110, 120: 2000 + 18 * 300 over 20 s
        121: 370.0,
        # 110, 120, 130
        131: 400.0,
        141: 400.0,
    }
    assert model.by_node(f"rate({TRANSMIT}[30s])", 131) == {"a": 100.0, "b": 200.0}


def test_a_range_leaves_its_left_edge_out() -> None:
    """Samples at 80, 90 and 100 s are in the range to 100 s, the one at 70 s is not."""
    model = Model()
    model.advance(100)
    ages = [UPTIME_SECONDS + at for at in (80, 90, 100)]
    sums = model.by_node(f"sum_over_time({RECEIVE}[30s])", 100)
    assert sums["a"] == sum(100.0 * age for age in ages)


@pytest.mark.parametrize(
    ("delay_seconds", "rate"),
    [
        # 80, 90, 100: (1000 + 1000 + 4 * 300) * (20 + 6 + 4) / 20 / 30
        pytest.param(0.0, 160.0, id="at once"),
        # 80, 90, as if the series had ended soon after: 1000 * (10 + 6 + 5) / 10 / 30
        pytest.param(5.0, 70.0, id="after the delay"),
    ],
)
def test_a_sample_can_be_asked_for(delay_seconds: float, rate: float) -> None:
    model = Model(delay_seconds=delay_seconds)
    model.advance(96)
    model.start("p", 0, 300.0, 300.0)
    model.advance(104)
    assert model.by_node(f"rate({RECEIVE}[30s])", 104)["a"] == rate


def test_there_is_nothing_before_the_first_scrapes() -> None:
    """Node b is scraped at 5 and 15 s for the first times; a at 10 and 20 s."""
    model = Model()
    model.advance(21)
    assert model.query(f"rate({RECEIVE}[1m])", 4) == []
    # 2000 * (10 + 5 + 1) / 10 / 60
    assert model.by_node(f"rate({RECEIVE}[1m])", 16) == {"b": 53.333333}
    assert model.by_node("node_network_speed_bytes", 6) == {"b": 1000.0}


@pytest.mark.parametrize(
    ("promql", "want"),
    [
        pytest.param(RECEIVE, [259210000, 518419000], id="a counter's newest sample"),
        pytest.param("up", [1, 1], id="what is up"),
        pytest.param("node_uname_info", [1, 1], id="what nodes are called"),
        pytest.param("node_network_speed_bytes", [1000, 1000], id="how fast links are"),
        pytest.param("node_network_flags", [0x1003, 0x1003], id="what devices are"),
        pytest.param(f'{RECEIVE}{{node="b"}}', [518419000], id="of the nodes that match"),
        pytest.param(f'{RECEIVE}{{device!~"eth.*"}}', [], id="nothing where none matches"),
        pytest.param("node_load1", [], id="nothing of a metric that there is not"),
        pytest.param(f"sum(rate({RECEIVE}[30s]))", [300], id="sums"),
        pytest.param(f"max by (job) (rate({RECEIVE}[30s]))", [200], id="the highest"),
        pytest.param(
            f"max by (node, device) (rate({RECEIVE}[30s]) and {RECEIVE})",
            [100, 200],
            id="the rates of series that are there",
        ),
        pytest.param(f'rate({RECEIVE}[30s]) and {RECEIVE}{{node="b"}}', [200], id="of those alone"),
        pytest.param(f"rate({RECEIVE}[30s]) and up", [], id="of none with other labels"),
    ],
)
def test_it_answers(promql: str, want: list[float]) -> None:
    model = Model()
    model.advance(100)
    assert [value for _, value in model.query(promql, 100)] == [
        pytest.approx(value, rel=1e-6) for value in want
    ]


def test_labels_are_those_that_prometheus_has() -> None:
    model = Model()
    model.advance(100)
    uname = {key: A[key] for key in A if key != "device"} | {"nodename": "a", "sysname": "Linux"}
    assert model.query('node_uname_info{nodename="a"}', 100) == [
        ({"__name__": "node_uname_info", **uname}, 1.0)
    ]
    assert model.query('node_network_speed_bytes{node="a"}', 100) == [
        ({"__name__": "node_network_speed_bytes", **A}, 1000.0)
    ]
    assert model.query(f"sum by (node, zone) (rate({RECEIVE}[30s]))", 100) == [
        ({"node": "a"}, 100.0),
        ({"node": "b"}, 200.0),
    ]


BY_POD = f'sum by (namespace, pod) (rate({POD_RECEIVE}{{pod!="",interface!="lo"}}[30s]))'
P = {"namespace": "default", "pod": "p"}


def test_a_pod_counts_from_zero() -> None:
    """It starts at 102 s with 300 B/s on node a, whose kubelet is scraped at 110, 120, 130 s."""
    model = Model()
    model.advance(102)
    model.start("p", 0, 300.0, 30.0)
    assert model.query(BY_POD, 115) == []
    assert model.query(BY_POD, 121) == [
        # 2400 and 5400 bytes: zero is 8 s before the first, and half an interval is nearer:
        # 3000 * (10 + 5 + 1) / 10 / 30
        (P, 160.0)
    ]
    assert model.query(BY_POD, 141) == [(P, 300.0)]
    assert model.query(BY_POD.replace("receive", "transmit"), 141) == [(P, 30.0)]


def test_a_pod_that_ended_is_seen_while_a_range_reaches_it() -> None:
    """Its samples are of 110 to 150 s, the newest of which the range holds."""
    model = Model()
    model.advance(102)
    model.start("p", 0, 300.0, 300.0)
    model.advance(155)
    model.prometheus.pod_ended("p", BEGAN_AT + 155)
    assert model.query(POD_RECEIVE, 156) == []
    # 140 and 150: 3000 * (10 + 7 + 5) / 10 / 30
    assert model.query(BY_POD, 163) == [(P, 220.0)]
    assert model.query(BY_POD, 171) == []
    assert model.query(BY_POD, 300) == []


def test_a_pod_that_ended_is_not_there_although_a_range_reaches_it() -> None:
    model = Model()
    model.advance(102)
    model.start("p", 0, 300.0, 300.0)
    model.advance(155)
    counter = f'{POD_RECEIVE}{{pod!=""}}'
    there = f"sum by (namespace, pod) (rate({counter}[30s]) and {counter})"
    assert [labels for labels, _ in model.query(there, 155)] == [P]
    model.prometheus.pod_ended("p", BEGAN_AT + 155)
    assert model.query(there, 163) == []


@pytest.mark.parametrize(
    ("promql", "problem"),
    [
        pytest.param(
            f"rate({RECEIVE}[2h])",
            f"'rate({RECEIVE}[2h])' asks for 7200 s, and the simulated Prometheus keeps 3600 s",
            id="more than it keeps",
        ),
        pytest.param(
            f"{RECEIVE}[1m]",
            f"'{RECEIVE}[1m]' gives ranges, and one value per series is wanted",
            id="for ranges",
        ),
        pytest.param(
            f"irate({RECEIVE}[1m])",
            "the function irate is not answered here; rate, increase, sum_over_time, sum and max "
            "are",
            id="for a function that it does not know",
        ),
    ],
)
def test_it_rejects_to_be_asked(promql: str, problem: str) -> None:
    model = Model()
    model.advance(100)
    with pytest.raises(QueryError) as caught:
        model.query(promql, 100)
    assert str(caught.value) == problem


def test_an_hour_of_samples_is_kept() -> None:
    model = Model()
    model.advance(10_000)
    sums = model.by_node(f"sum_over_time({RECEIVE}[1h])", 10_000)
    ages = [UPTIME_SECONDS + at for at in range(6410, 10_001, 10)]
    assert sums["a"] == math.fsum(100.0 * age for age in ages)


changes = st.lists(
    st.tuples(st.floats(0.01, 40.0), st.integers(0, 1), st.integers(0, 300)), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(changes=changes, range_seconds=st.integers(3, 12).map(lambda scrapes: 10 * scrapes))
def test_rates_are_those_of_the_embedded_cluster(
    changes: list[tuple[float, int, int]], range_seconds: int
) -> None:
    """The same pods start on the same nodes; asked at a scrape of both, the same is measured.

    The embedded cluster scrapes every node at once and does not stretch to edges, so here every
    phase is zero and the range begins and ends at scrapes."""
    clock = ManualClock(BEGAN_AT)
    traffic = TrafficModel(clock=clock, history_seconds=1000.0)
    world = World(np.full(2, 1e6), np.array([0.1, 0.2]), began_at=BEGAN_AT - 1000)
    targets = Targets(np.zeros(2), 10.0)
    names = ("a", "b")
    labels = [{"node": name, "instance": name} for name in names]
    model = PrometheusModel(
        world, exporters=targets, kubelets=targets, node_labels=labels, device="eth0"
    )
    for name, share in zip(names, (0.1, 0.2), strict=True):
        traffic.add_node(name, [Link("eth0", 1_000_000)], Background(share), instance=name)
    for number, (seconds, node, rate) in enumerate(changes):
        clock.advance(seconds)
        model.scrape(clock.now)
        world.advance(clock.now)
        traffic.start_pod(str(number), names[node], rate, named=("default", str(number)))
        world.add_pod(node, rate, rate)
    clock.now = BEGAN_AT + 500.0
    model.scrape(clock.now)
    server = PrometheusServer(traffic=traffic, faults=Faults(), clock=clock, scrape_seconds=10.0)
    for function in ("rate", "increase"):
        promql = f"{function}({RECEIVE}[{range_seconds}s])"
        theirs = [float(each["value"][1]) for each in server.answer(promql, clock.now)["result"]]
        ours = [one.value for one in model.query(promql, clock.now)]
        # Each cuts its counters to whole bytes.
        tolerance = 1.0 if function == "increase" else 1.0 / range_seconds
        assert ours == [pytest.approx(value, abs=2 * tolerance) for value in theirs]
