"""The nodes and pods that readings are matched to, as the watches tell of them."""

from lowtide.app.known_cluster import BelievedCluster, WatchedCluster
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.readings.usage import Allocatable
from lowtide.scheduler.events import Event
from lowtide.testing import make_node, make_pod, make_state

A, B = make_node("a", cpu="4", memory="8Gi"), make_node("b", cpu="2", memory="1Gi")
ON_A, ON_B = make_pod("on-a", on="a"), make_pod("on-b", on="b")


def watched(*events: Event) -> WatchedCluster:
    cluster = WatchedCluster()
    for event in events:
        cluster.handle(event)
    return cluster


def test_both_say_the_same() -> None:
    pending = make_pod("pending")
    seen = watched(Added(A), Added(B), Added(ON_A), Added(ON_B), Added(pending))
    believed = BelievedCluster(make_state([A, B], [ON_A, ON_B]))
    has = {"a": Allocatable(4000, 8 * 2**30), "b": Allocatable(2000, 2**30)}
    for cluster in (seen, believed):
        assert cluster.nodes() == [A, B]
        assert list(cluster.pods()) == [ON_A, ON_B]
        assert cluster.allocatable() == has


def test_what_goes_is_forgotten() -> None:
    ended = make_pod("on-b", on="b", phase="Succeeded")
    cluster = watched(
        Added(A), Added(B), Added(ON_A), Added(ON_B), Deleted(B), Deleted(ON_A), Modified(ended)
    )
    assert (cluster.nodes(), list(cluster.pods())) == ([A], [])
    assert cluster.allocatable() == {"a": Allocatable(4000, 8 * 2**30)}


def test_what_a_node_has_may_change_and_may_be_unreadable() -> None:
    cluster = watched(Added(A), Added(B))
    cluster.handle(Modified(make_node("a", cpu="8", memory="8Gi")))
    cluster.handle(Modified(make_node("b", cpu="lots")))
    assert cluster.allocatable() == {
        "a": Allocatable(8000, 8 * 2**30),
        "b": Allocatable(0, 8 * 2**30),
    }
