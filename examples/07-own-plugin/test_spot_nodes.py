"""A plugin is tested without a cluster and without a configuration file."""

from spot_nodes import SpotNodes, SpotNodesArgs

from lowtide.testing import (
    check_plugin,
    make_node,
    make_pod,
    make_state,
    place,
    rejections,
    scores,
)

PLUGIN = SpotNodes(SpotNodesArgs())
NODES = [make_node("cheap", labels={"example.com/spot": "true"}), make_node("solid")]
STEADY = make_pod("database", labels={"example.com/steady": "true"})


def test_a_steady_pod_stays_off_spot_nodes() -> None:
    assert rejections(PLUGIN, STEADY, make_state(NODES)) == {"cheap": ["node(s) may be taken away"]}
    assert place([PLUGIN], STEADY, NODES).node_name == "solid"


def test_any_other_pod_prefers_them() -> None:
    assert scores(PLUGIN, make_pod("batch"), make_state(NODES)) == {"cheap": 100, "solid": 0}
    assert place([PLUGIN], make_pod("batch"), NODES).node_name == "cheap"


def test_its_answers_may_be_kept() -> None:
    check_plugin(PLUGIN, pods=[STEADY], nodes=NODES)
