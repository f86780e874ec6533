"""`Cluster` is the real scheduler on a manual clock: pods come, wait and are bound in a test."""

from whole_group import WholeGroup, WholeGroupArgs

from lowtide.objects.pod import Pod
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.testing import Cluster, make_node, make_pod

PLUGINS = [NodeResourcesFit(NodeResourcesFitArgs()), WholeGroup(WholeGroupArgs())]


def member(name: str, size: str = "3") -> Pod:
    labels = {"example.com/group": "training", "example.com/group-size": size}
    return make_pod(name, cpu="2", labels=labels)


def cluster_of(*names: str) -> Cluster:
    """Each node has room for one member."""
    return Cluster(PLUGINS, [make_node(name, cpu="2") for name in names])


def test_the_group_is_bound_when_its_last_pod_has_a_node() -> None:
    cluster = cluster_of("a", "b", "c")
    cluster.add(member("one"), member("two"))
    cluster.take_turns()
    assert (sorted(cluster.waiting), cluster.bound) == (["one", "two"], {})
    cluster.add(member("three"))
    cluster.take_turns()
    assert (cluster.waiting, sorted(cluster.bound)) == ({}, ["one", "three", "two"])


def test_other_pods_do_not_wait() -> None:
    cluster = cluster_of("a")
    cluster.add(make_pod("alone", cpu="2"))
    cluster.take_turns()
    assert cluster.bound == {"alone": "a"}


def test_a_group_that_does_not_get_whole_gives_its_nodes_back() -> None:
    cluster = cluster_of("a", "b")
    cluster.add(member("one"), member("two"), member("three"))
    cluster.take_turns()
    assert sorted(cluster.waiting) == ["one", "two"]
    cluster.add(make_pod("alone", cpu="2"))
    cluster.take_turns()
    assert list(cluster.rejected) == ["three", "alone"]
    cluster.pass_time(599)
    assert cluster.bound == {}
    cluster.pass_time(2)
    assert list(cluster.bound) == ["alone"]


def test_a_pod_that_comes_late_is_waited_for() -> None:
    cluster = cluster_of("a", "b", "c")
    cluster.add(member("one"), member("two"))
    cluster.pass_time(700)
    # Both gave up after 600 s; when the second did, the first tried again.
    assert (list(cluster.waiting), list(cluster.rejected)) == (["one"], ["two"])
    cluster.add(member("three"))
    cluster.pass_time(300)
    assert sorted(cluster.bound) == ["one", "three", "two"]


def test_a_member_that_was_bound_before_counts() -> None:
    cluster = cluster_of("a", "b")
    bound = make_pod("one", cpu="2", on="a", labels=member("one").labels)
    cluster.add(bound, member("two", size="2"))
    cluster.take_turns()
    assert cluster.bound == {"one": "a", "two": "b"}


def test_a_size_that_is_no_number_is_told() -> None:
    cluster = cluster_of("a")
    cluster.add(member("one", size="few"))
    cluster.take_turns()
    assert cluster.rejected == {
        "one": "0/1 nodes are available: 1 the label example.com/group-size must be a number, "
        "not 'few'."
    }
