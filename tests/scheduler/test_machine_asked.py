"""What the machine says of a pod when somebody asks why: nothing of it changes what comes."""

from typing import Any

import pytest
from tests.records.kept_decisions import Keeping
from tests.scheduler.conftest import START, Bench, binds, small_node

from lowtide.objects.events import Added
from lowtide.objects.quantity import QuantityError
from lowtide.testing import make_node, make_pod

WEB = make_pod("web", cpu="500m")
UNREADABLE = {"name": "main", "resources": {"requests": {"cpu": "much"}}}


def test_a_placed_pod_is_judged_as_if_it_had_no_node() -> None:
    bench = Bench(small_node("a"), small_node("b"))
    bench.give(Added(WEB))
    ((_, node_name),) = binds(bench.take_turns())
    bench.end("web")
    bench.confirm(WEB, node_name)
    fresh = Bench(small_node("a"), small_node("b"))
    for is_confirmed in (True, False):
        found = bench.machine.decided_now(WEB, bench.now)
        assert {each.node_name: each.total for each in found.best} == {
            each.node_name: each.total for each in fresh.machine.decided_now(WEB, 0.0).best
        }
        assert bench.on_node(node_name) == {"web": not is_confirmed}
        bench = Bench(small_node("a"), small_node("b"))
        bench.give(Added(WEB))
        ((_, node_name),) = binds(bench.take_turns())


def test_what_follows_is_as_if_nobody_had_asked() -> None:
    def placed(*, asks: bool) -> list[tuple[str, str]]:
        bench = Bench(*(small_node(name) for name in "abc"))
        found = []
        for number in range(6):
            pod = make_pod(f"pod-{number}", cpu="400m")
            bench.give(Added(pod))
            found += binds(bench.take_turns())
            if asks:
                bench.machine.decided_now(pod, bench.now)
                bench.machine.rejection_of(pod, "a")
        return found

    assert placed(asks=True) == placed(asks=False)
    assert len(placed(asks=True)) == 6


LIKES = {"app": "web"}
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": LIKES},
        }
    ]
}
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": LIKES}}
            ]
        }
    }
}


@pytest.mark.parametrize(
    ("spec", "feasible"),
    [
        # Zone y has one such pod, and zone x has none but the pod itself.
        pytest.param(SPREAD, {"a", "b"}, id="required topology spread"),
        # The pod rejects its own like in its zone, and so does the other one in zone y.
        pytest.param(APART, {"a", "b"}, id="required anti-affinity"),
    ],
)
def test_a_placed_pod_is_judged_everywhere_as_if_it_had_no_node(
    spec: dict[str, Any], feasible: set[str]
) -> None:
    zones = {"a": "x", "b": "x", "c": "y"}
    nodes = [make_node(name, cpu="1", labels={"zone": zone}) for name, zone in zones.items()]
    other = make_pod("other", on="c", labels=LIKES, spec=spec)
    pod = make_pod("pod", labels=LIKES, spec=spec)
    bench = Bench(*nodes)
    bench.give(Added(other), Added(make_pod("pod", on="a", labels=LIKES, spec=spec)))
    fresh = Bench(*nodes)
    fresh.give(Added(other))
    position = bench.machine.state.log.position
    found, wanted = (each.machine.decided_now(pod, each.now) for each in (bench, fresh))
    assert (found.best, found.rejections) == (wanted.best, wanted.rejections)
    assert {each.node_name for each in found.best} == feasible
    assert bench.machine.state.log.position == position


def test_why_a_waiting_pod_is_rejected_on_a_node() -> None:
    bench = Bench(small_node("small"), make_node("cordoned", unschedulable=True))
    pod = make_pod("big", cpu="2")
    bench.give(Added(pod))
    bench.take_turns()
    rejected = {name: bench.machine.rejection_of(pod, name) for name in ("small", "cordoned", "no")}
    assert {name: each and (each.plugin, each.reasons) for name, each in rejected.items()} == {
        "small": ("NodeResourcesFit", ("Insufficient cpu",)),
        "cordoned": ("NodeUnschedulable", ("node(s) were unschedulable",)),
        "no": None,
    }


def test_what_is_counted_of_its_traffic_stays_as_it_was() -> None:
    keeping = Keeping(make_node("a"))
    reading = {"a": {"receive": 1e6, "transmit": 1e6, "capacity": 1e9}}
    keeping.publish(reading, sampled_at=START)
    keeping.decide(WEB)
    machine, request = keeping.bench.machine, keeping.traffic.request
    keeping.bench.end("web")
    keeping.bench.confirm(WEB, "a")
    ledger = machine.state.ledgers.ledger(request)
    assert ledger is not None
    counted = ledger.counted(WEB.uid)
    assert counted is not None
    before = {name: float(column.array[0]) for name, column in ledger.columns.items()}
    machine.decided_now(WEB, START)
    assert {name: float(column.array[0]) for name, column in ledger.columns.items()} == before
    assert ledger.counted(WEB.uid) == counted


def test_a_plugin_that_fails_meanwhile_leaves_the_pod_where_it_is() -> None:
    bench = Bench(small_node("a"), small_node("b"))
    bench.give(Added(WEB))
    ((_, node_name),) = binds(bench.take_turns())
    broken = make_pod("web", uid=WEB.uid, spec={"containers": [UNREADABLE]})
    with pytest.raises(QuantityError):
        bench.machine.decided_now(broken, bench.now)
    assert bench.on_node(node_name) == {"web": True}
