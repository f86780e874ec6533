"""Quantities that a plugin cannot read cost an attempt, and nothing else."""

import msgspec
import pytest
from tests.scheduler.conftest import (
    OUTCOME_ERROR,
    Bench,
    binds,
    conditions,
    default_profile,
    small_node,
)

from lowtide.framework.plugin import Allow, Nodes, Pod, Reserved
from lowtide.objects.events import Added, Modified
from lowtide.objects.quantity import QuantityError
from lowtide.objects.storage import PersistentVolumeClaim, StorageClass
from lowtide.testing import make_pod

WHY = "'much' is not a quantity"
UNREADABLE = make_pod("web", labels={"size": "much"})


class Reads:
    """Cannot read some pods where it is told so."""

    name = "Reads"

    def __init__(self, method: str) -> None:
        def read(pod: Pod, *more: object) -> Allow | None:
            if pod.labels.get("size") == "much":
                raise QuantityError(WHY)
            return Allow() if method == "permit" else None

        setattr(self, method, read)


class ReservesClass:
    """Reserves an object before another plugin fails."""

    name = "ReservesClass"
    kinds = (StorageClass,)

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> Reserved:
        (fast,) = nodes.objects(StorageClass).values()
        return Reserved([msgspec.structs.replace(fast, provisioner="reserved")])


@pytest.mark.parametrize("method", ["reserve", "permit"])
def test_pods_that_a_plugin_cannot_read_are_tried_again_and_their_place_is_free(
    method: str,
) -> None:
    """After a while: what is taken back for one does not wake the other, and so for ever."""
    plugins = (ReservesClass(), Reads(method))
    bench = Bench(small_node(), profiles=[default_profile(*plugins)])
    fast = msgspec.convert({"metadata": {"name": "fast"}}, StorageClass)
    bench.give(Added(fast), Added(UNREADABLE), Added(make_pod("db", labels={"size": "much"})))
    assert conditions(bench.take_turns()) == [("SchedulerError", WHY)] * 2
    assert (bench.lengths, bench.on_node("node-a")) == ({"backoff": 2}, {})
    assert list(bench.machine.state.objects(StorageClass).values()) == [fast]
    bench.give(Modified(make_pod("web")))
    bench.pass_time(20)
    assert binds(bench.take_turns()) == [("web", "node-a")]


def test_a_gate_that_cannot_be_read_stays_closed() -> None:
    bench = Bench(small_node(), profiles=[default_profile(Reads("may_enqueue"))])
    bench.give(Added(UNREADABLE), Added(make_pod("fine")))
    assert binds(bench.take_turns()) == [("fine", "node-a")]
    assert bench.lengths == {"gated": 1}
    bench.give(Modified(make_pod("web")))
    assert binds(bench.take_turns()) == [("web", "node-a")]


class ReservesAndReads(Reads):
    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> None:
        return None


def test_a_reservation_whose_undoing_cannot_be_read_ends_all_the_same() -> None:
    bench = Bench(small_node(), profiles=[default_profile(ReservesAndReads("unreserve"))])
    bench.place(UNREADABLE)
    actions = bench.end("web", OUTCOME_ERROR)
    assert conditions(actions) == [("SchedulerError", f"{OUTCOME_ERROR.error}; {WHY}")]
    assert (bench.lengths, bench.on_node("node-a")) == ({"backoff": 1}, {})


def claim(size: str) -> PersistentVolumeClaim:
    meta = {"name": "data", "namespace": "default"}
    spec = {"storageClassName": "made", "resources": {"requests": {"storage": size}}}
    return msgspec.convert({"metadata": meta, "spec": spec}, PersistentVolumeClaim)


def test_a_pod_whose_claim_cannot_be_read_is_tried_again_when_the_claim_is_fixed() -> None:
    made = {"provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    bench = Bench(small_node())
    bench.give(
        Added(msgspec.convert({"metadata": {"name": "made"}, **made}, StorageClass)),
        Added(claim("much")),
    )
    source = {"persistentVolumeClaim": {"claimName": "data"}}
    bench.give(Added(make_pod("web", spec={"volumes": [{"name": "data", **source}]})))
    ((reason, message),) = conditions(bench.take_turns())
    assert (reason, bench.lengths) == ("Unschedulable", {"unschedulable": 1})
    assert "persistentvolumeclaim default/data spec.resources.requests[storage]" in message
    bench.give(Modified(claim("1Gi")))
    assert binds(bench.take_turns()) == [("web", "node-a")]
