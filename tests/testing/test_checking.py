"""`check_plugin` passes plugins that keep the plugins, and reports which plugin one breaks."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from lowtide.framework.plugin import (
    MAX_SCORE,
    IntArray,
    Nodes,
    OneNode,
    PluginError,
    Pod,
    PodRejection,
    Rejection,
    score_each,
)
from lowtide.objects.kinds import Namespace
from lowtide.objects.meta import ObjectMeta
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.plugins.pod_topology_spread import PodTopologySpread
from lowtide.plugins.pod_topology_spread_constraints import PodTopologySpreadArgs
from lowtide.plugins.taint_toleration import TaintToleration
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.prometheus_query import PrometheusQuery
from lowtide.testing import check_plugin, make_node, make_pod


class BelowAverage:
    """Rejects nodes with more pods than the average of all."""

    name = "BelowAverage"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        average = nodes.everything.pod_count.mean()
        yield Rejection(nodes.pod_count > average, "too many pods", eviction_helps=True)


class BelowAverageOfAsked(BelowAverage):
    """The same, but it takes the asked nodes for all there are."""

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield Rejection(nodes.pod_count > nodes.pod_count.mean(), "too many pods")


class FirstIsBest:
    """Prefers the first of the asked nodes: in another order, another one."""

    name = "FirstIsBest"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        return (np.arange(len(nodes)) == 0).astype(np.int64)


class ByUid:
    name = "ByUid"

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        return len(pod.uid)


class Counts:
    """Scores by how many questions it was asked before: nothing that `nodes` could tell."""

    name = "Counts"

    def __init__(self) -> None:
        self._questions = 0

    def concerns(self, pod: Pod) -> bool:
        self._questions += 1
        return True

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        return np.full(len(nodes), self._questions, np.int64)


class NarrowsByName:
    name = "NarrowsByName"

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | None:
        return PodRejection("no such name") if pod.name == "another" else None


DEGREES = PrometheusQuery(access=PrometheusAccess(addresses=("http://p:9090",)), promql="degrees")


class Cool:
    """Compares what is measured of each asked node with the highest of these."""

    name = "Cool"
    readings = (DEGREES,)

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        degrees = DEGREES.values(nodes)
        if np.isnan(degrees).all():
            return None
        hottest: IntArray = (degrees == np.nanmax(degrees)).astype(np.int64)
        return hottest


class NamespacesMatter:
    name = "NamespacesMatter"
    kinds = (Namespace,)

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        if ("", "closed") in nodes.objects(Namespace):
            yield Rejection(nodes.pod_count > 0, "closed")


@pytest.mark.parametrize(
    ("plugin", "more"),
    [
        pytest.param(BelowAverage(), {}, id="reads all nodes through nodes.everything"),
        pytest.param(NodeResourcesFit(NodeResourcesFitArgs()), {}, id="NodeResourcesFit"),
        pytest.param(TaintToleration(), {}, id="TaintToleration"),
        pytest.param(
            PodTopologySpread(PodTopologySpreadArgs()),
            {
                "pods": [
                    make_pod(
                        "spread",
                        labels={"app": "a"},
                        spec={
                            "topologySpreadConstraints": [
                                {
                                    "maxSkew": 1,
                                    "topologyKey": "zone",
                                    "whenUnsatisfiable": "DoNotSchedule",
                                    "labelSelector": {"matchLabels": {"app": "a"}},
                                }
                            ]
                        },
                    )
                ]
            },
            id="PodTopologySpread",
        ),
        pytest.param(
            NamespacesMatter(),
            {"objects": [Namespace(ObjectMeta(name="closed"))]},
            id="reads objects of its kinds",
        ),
    ],
)
def test_passes_a_plugin_that(plugin: Any, more: Mapping[str, Any]) -> None:
    check_plugin(plugin, **more)


ANY_ANSWER = r"(no rejection|'[^']*'|-?\d+|None|PodRejection\(.*\))"


@pytest.mark.parametrize(
    ("plugin", "told"),
    [
        pytest.param(
            BelowAverageOfAsked(),
            r"BelowAverage\.filter answers about node node-\d and pod \w+: 'too many pods' when it "
            r"is asked about all \d nodes, and no rejection when it is asked about it alone; the "
            r"answer about a node must not depend on which others it is asked about: read other "
            r"nodes from `nodes\.everything`",
            id="takes the asked nodes for all nodes",
        ),
        pytest.param(
            FirstIsBest(),
            rf"FirstIsBest\.score answers .*: {ANY_ANSWER} when it is asked about all \d nodes, "
            rf"and {ANY_ANSWER} when .*",
            id="depends on the order of nodes",
        ),
        pytest.param(
            Cool(),
            rf"Cool\.score answers .*: {ANY_ANSWER} when it is asked about all \d nodes, and .*",
            id="compares readings of the given nodes",
        ),
        pytest.param(
            ByUid(),
            r"ByUid\.score answers about node node-\d and pod \w+: \d+, and 7 for a pod that "
            r"differs only in name, uid, times and status; .*",
            id="depends on the pod's uid",
        ),
        pytest.param(
            NarrowsByName(),
            r"NarrowsByName\.pre_filter answers .*: None, and PodRejection\(.*\) for a pod that .*",
            id="narrows nodes by the pod's name",
        ),
        pytest.param(
            Counts(),
            r"Counts\.score answers .*: \d+ when it is asked now, and \d+ when it was asked "
            r"before, and nothing that it read from `nodes` has changed since; read everything "
            r"from `nodes` and `pod`, and keep no state",
            id="counts how often it is asked",
        ),
    ],
)
def test_reports_a_plugin_that(plugin: Any, told: str) -> None:
    with pytest.raises(AssertionError, match=f"^{told}$"):
        check_plugin(plugin)


def test_the_same_seed_finds_the_same() -> None:
    found = set()
    for _ in range(2):
        with pytest.raises(AssertionError) as caught:
            check_plugin(BelowAverageOfAsked(), seed=7)
        found.add(str(caught.value))
    assert len(found) == 1


class OnlyOfRareLabels(BelowAverageOfAsked):
    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        if "rare" in pod.labels:
            rare = np.array(["rare" in nodes.node(at).labels for at in range(len(nodes))])
            yield Rejection(rare & (len(nodes) > 1), "rare")


def test_it_is_tried_with_what_the_author_gives() -> None:
    check_plugin(OnlyOfRareLabels())
    rare = {"rare": ""}
    with pytest.raises(AssertionError, match="and pod given: 'rare'"):
        check_plugin(
            OnlyOfRareLabels(),
            pods=[make_pod("given", labels=rare)],
            nodes=[make_node(labels=rare)],
        )


class NoMask(BelowAverage):
    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield Rejection(np.zeros(1, np.bool_), "of the wrong length")


def test_an_answer_that_is_none_is_reported_as_ever() -> None:
    with pytest.raises(PluginError, match="booleans, one per node"):
        check_plugin(NoMask())


class OnlyPermits:
    name = "OnlyPermits"

    def permit(self, pod: Pod, node_name: str, nodes: Nodes) -> Any: ...


def test_a_plugin_that_neither_filters_nor_scores_has_nothing_to_check() -> None:
    with pytest.raises(ValueError, match="OnlyPermits has no pre_filter, filter or score to check"):
        check_plugin(OnlyPermits())


def test_scores_may_be_any_whole_numbers() -> None:
    class Scaled:
        name = "Scaled"
        scale = "highest_best"

        def score(self, pod: Pod, nodes: Nodes) -> IntArray:
            return nodes.pod_count * 1000 * MAX_SCORE

    check_plugin(Scaled())
