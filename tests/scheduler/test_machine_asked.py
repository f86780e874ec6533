"""What the machine says of a pod when somebody asks why: nothing of it changes what comes."""

from tests.scheduler.conftest import Bench, binds, small_node

from lowtide.objects.events import Added
from lowtide.testing import make_node, make_pod

WEB = make_pod("web", cpu="500m")


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


def test_why_a_waiting_pod_is_refused_on_a_node() -> None:
    bench = Bench(small_node("small"), make_node("cordoned", unschedulable=True))
    pod = make_pod("big", cpu="2")
    bench.give(Added(pod))
    bench.take_turns()
    refused = {name: bench.machine.rejection_of(pod, name) for name in ("small", "cordoned", "no")}
    assert {name: each and (each.plugin, each.reasons) for name, each in refused.items()} == {
        "small": ("NodeResourcesFit", ("Insufficient cpu",)),
        "cordoned": ("NodeUnschedulable", ("node(s) were unschedulable",)),
        "no": None,
    }
