"""Scenarios of one rejected pod and one change: repeatable, and with something of everything."""

from typing import Any

from recorder.wakes import PLUGINS, make_wakes


def made(seed: int = 1) -> list[dict[str, Any]]:
    return make_wakes(seed=seed, cases=60)


def test_a_seed_makes_the_same_scenarios_again() -> None:
    assert made() == made()


def test_another_seed_makes_others() -> None:
    assert made(seed=1)[0]["scenario"] != made(seed=2)[0]["scenario"]


def test_every_plugin_rejects_and_everything_changes() -> None:
    steps = [case["scenario"]["steps"] for case in made()]
    assert {plugin for _, taken, _ in steps for plugin in taken["plugins"]} == set(PLUGINS)
    assert {changed["do"] for _, _, changed in steps} == {
        "nodeAdded",
        "nodeUpdated",
        "podAdded",
        "podDeleted",
    }


def test_a_pod_has_what_it_is_rejected_for() -> None:
    for case in made():
        added, taken, _ = case["scenario"]["steps"]
        spec = added["pod"]["spec"]
        if "PodTopologySpread" in taken["plugins"]:
            assert spec["topologySpreadConstraints"]
        if "NodePorts" in taken["plugins"]:
            assert spec["containers"][0]["ports"]
        if "NodeAffinity" in taken["plugins"]:
            assert spec["affinity"]["nodeAffinity"]
