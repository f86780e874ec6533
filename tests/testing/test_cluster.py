"""A cluster on a manual clock: pods come, wait, are bound, rejected and evicted in a test."""

from collections.abc import Hashable, Iterator

import numpy as np
import pytest

from lowtide.framework.change import Change
from lowtide.framework.plugin import (
    Allow,
    IntArray,
    Nodes,
    PluginError,
    Pod,
    Reject,
    Rejection,
    Wait,
)
from lowtide.objects.kinds import Namespace
from lowtide.objects.meta import ObjectMeta
from lowtide.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.testing import Cluster, ManualClock, make_node, make_pod, make_reading

FIT = NodeResourcesFit(NodeResourcesFitArgs())


class Patient:
    """Makes pods wait by their label, and lets them go with the pod called last."""

    name = "Patient"

    def permit(self, pod: Pod, node_name: str, nodes: Nodes) -> Allow | Reject | Wait:
        if pod.name == "last":
            return Allow(also=frozenset({"default/first"}))
        if pod.name == "never":
            return Reject("not today")
        seconds = pod.labels.get("waits")
        return Wait(float(seconds)) if seconds else Allow()


def test_a_pod_is_bound_when_it_has_had_its_turn() -> None:
    cluster = Cluster([FIT], [make_node("a")])
    cluster.add(make_pod("web", cpu="1"), make_pod("db", namespace="data"))
    assert (cluster.bound, cluster.waiting, cluster.rejected) == ({}, {}, {})
    decisions = cluster.take_turns()
    assert [(each.pod.name, each.node_name) for each in decisions] == [("web", "a"), ("db", "a")]
    assert cluster.bound == {"web": "a", "data/db": "a"}
    assert cluster.take_turns() == []


def test_a_pod_waits_until_another_lets_it_go() -> None:
    cluster = Cluster([Patient()], [make_node("a")])
    cluster.add(make_pod("first", labels={"waits": "30"}))
    cluster.take_turns()
    assert (cluster.waiting, cluster.bound) == ({"first": "a"}, {})
    cluster.add(make_pod("last"))
    cluster.take_turns()
    assert (cluster.waiting, cluster.bound) == ({}, {"first": "a", "last": "a"})


def test_a_pod_waits_no_longer_than_its_plugin_said() -> None:
    clock = ManualClock(50.0)
    cluster = Cluster([Patient()], [make_node("a")], clock=clock)
    cluster.add(make_pod("slow", labels={"waits": "30"}))
    cluster.pass_time(29)
    assert (cluster.waiting, clock.now) == ({"slow": "a"}, 79.0)
    cluster.pass_time(1)
    assert (cluster.waiting, cluster.bound) == ({}, {})
    assert cluster.rejected == {
        "slow": "0/1 nodes are available: 1 rejected due to timeout after waiting 30s "
        "at plugin Patient."
    }


def test_a_rejected_pod_is_told_why_and_tried_again_when_something_changed() -> None:
    cluster = Cluster([FIT, Patient()], [make_node("small", cpu="1")])
    cluster.add(make_pod("never"), make_pod("big", cpu="2"))
    cluster.take_turns()
    assert cluster.rejected == {
        "never": "0/1 nodes are available: 1 not today.",
        "big": "0/1 nodes are available: 1 Insufficient cpu.",
    }
    cluster.change(make_node("small", cpu="3"))
    cluster.take_turns()
    assert (cluster.bound, list(cluster.rejected)) == ({"big": "small"}, ["never"])


def test_what_is_removed_is_gone() -> None:
    web = make_pod("web", cpu="3")
    cluster = Cluster([FIT], [make_node("a", cpu="4")])
    cluster.add(web, make_pod("next", cpu="3"))
    cluster.take_turns()
    assert (cluster.bound, list(cluster.rejected)) == ({"web": "a"}, ["next"])
    cluster.remove(web)
    cluster.pass_time(10)
    assert (cluster.bound, cluster.rejected) == ({"next": "a"}, {})


def test_time_lets_a_pod_come_back_though_nothing_changed() -> None:
    cluster = Cluster([Patient()], [make_node("a")])
    cluster.add(make_pod("never"))
    assert [len(cluster.pass_time(seconds)) for seconds in (1, 298, 2)] == [1, 0, 1]


def test_all_that_time_brings_happens_at_its_time() -> None:
    cluster = Cluster([Patient()], [make_node("a")])
    cluster.add(make_pod("never"))
    # At once, and each time five minutes after it was parked.
    assert [each.pod.name for each in cluster.pass_time(1000)] == ["never"] * 4


class Calm:
    name = "Calm"
    readings: tuple[Hashable, ...] = ("calm",)

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        column = nodes.reading("calm").get("points")
        return None if column is None else np.nan_to_num(column).astype(np.int64)


def test_readings_are_what_was_published_last() -> None:
    cluster = Cluster([Calm()], [make_node("a"), make_node("b")])
    for number, best in enumerate("aba"):
        cluster.publish("calm", make_reading({best: {"points": 9.0}}))
        cluster.add(make_pod(f"p{number}"))
        cluster.take_turns()
    assert cluster.bound == {"p0": "a", "p1": "b", "p2": "a"}


def test_weights_decide_between_plugins() -> None:
    class Likes:
        def __init__(self, name: str, node_name: str) -> None:
            self.name = name
            self._node_name = node_name

        def score(self, pod: Pod, nodes: Nodes) -> IntArray:
            return np.array([100 * (name == self._node_name) for name in nodes.names], np.int64)

    plugins = [Likes("One", "a"), Likes("Other", "b")]
    for weights, want in (({"One": 2}, "a"), ({"Other": 2}, "b")):
        cluster = Cluster(plugins, [make_node("a"), make_node("b")], weights=weights)
        cluster.add(make_pod("web"))
        cluster.take_turns()
        assert cluster.bound == {"web": want}


def test_evicted_pods_go_and_make_room() -> None:
    plugins = [FIT, DefaultPreemption(DefaultPreemptionArgs())]
    cluster = Cluster(plugins, [make_node("a", cpu="1")])
    cluster.add(make_pod("low", cpu="1", on="a"), make_pod("high", cpu="1", priority=9))
    assert cluster.bound == {"low": "a"}
    cluster.pass_time(10)
    assert cluster.bound == {"high": "a"}


def test_a_plugin_sees_objects_of_its_kinds() -> None:
    class Open:
        name = "Open"
        kinds = (Namespace,)

        def permit(self, pod: Pod, node_name: str, nodes: Nodes) -> Allow | Reject:
            is_open = ("", pod.namespace) in nodes.objects(Namespace)
            return Allow() if is_open else Reject("it is closed")

    cluster = Cluster([Open()], [make_node("a")])
    cluster.add(make_pod("web", namespace="n"))
    cluster.take_turns()
    assert list(cluster.rejected) == ["n/web"]
    cluster.add(Namespace(ObjectMeta(name="n")))
    cluster.pass_time(10)
    assert cluster.bound == {"n/web": "a"}


class BadHint:
    """Rejects every node, and raises when asked whether a change may help."""

    name = "BadHint"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield Rejection(np.ones(len(nodes), np.bool_), "not today")

    def may_help(self, pod: Pod, change: Change) -> bool:
        raise RuntimeError("no idea")


def test_a_hint_that_fails_raises() -> None:
    cluster = Cluster([BadHint()], [make_node("a")])
    cluster.add(make_pod("web"))
    cluster.take_turns()
    cluster.add(make_node("b"))
    with pytest.raises(PluginError, match=r"^BadHint\.may_help failed"):
        cluster.pass_time(10)
