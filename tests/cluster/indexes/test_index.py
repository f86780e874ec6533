"""The protocol of indexes: who hears which event."""

import pytest

from lowtide.cluster.indexes.index import Index, handlers
from lowtide.cluster.placed import PlacedPod
from lowtide.cluster.table import Table
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.testing import make_node, make_pod, make_state


class HearsNodes(Index):
    def node_added(self, row: int, node: Node) -> None: ...


class HearsPods(Index):
    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        return 0


def test_an_index_hears_the_events_that_it_handles() -> None:
    nodes, pods = HearsNodes(Table()), HearsPods(Table())
    assert handlers([nodes, pods], Index.node_added) == (nodes,)
    assert handlers([nodes, pods], Index.pod_added) == (pods,)
    assert handlers([nodes, pods], Index.node_removed) == ()


EVERY_POD = {"PodTotals", "PodsMatching", "Ledgers"}
TERM = {"topologyKey": "zone", "labelSelector": {}}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}


@pytest.mark.parametrize(
    ("pod", "also"),
    [
        pytest.param(make_pod(cpu="1"), set(), id="is plain"),
        pytest.param(make_pod(host_ports=[80]), {"HostPorts"}, id="has a host port"),
        pytest.param(
            make_pod(spec={"affinity": APART}), {"ExistingAffinityTerms"}, id="has affinity terms"
        ),
        pytest.param(
            make_pod(spec={"volumes": [{"name": "v"}]}),
            {"VolumeUsers", "AttachedVolumes"},
            id="has volumes",
        ),
    ],
)
def test_only_concerned_indexes_receive_events_of_a_pod_that(pod: Pod, also: set[str]) -> None:
    state = make_state([make_node("a")])
    state.assume(pod, "a")
    placed = state.placed(pod.uid)
    assert placed is not None
    assert {type(each).__name__ for each in placed.footprint.indexes} == EVERY_POD | also


def test_an_index_that_is_idle_hears_of_no_pod() -> None:
    state = make_state([make_node("a")])
    state.pods_matching.pod_added = None  # type: ignore[method-assign, assignment]
    state.assume(make_pod("first"), "a")
    state.remove_pod("default/first")
    assert state.pods_matching.is_idle
