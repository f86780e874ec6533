"""Scenarios of large clusters: repeatable, readable, and with something of every plugin."""

import json
from collections import Counter
from typing import Any

from lowtide.scenario.scenario import scenario_from
from recorder.clusters import make_clusters


def made(seed: int = 1, cases: int = 40) -> list[dict[str, Any]]:
    return make_clusters(seed=seed, cases=cases, nodes=40)


def test_a_seed_makes_the_same_scenarios_again() -> None:
    assert made() == made()


def test_more_cases_leave_the_first_as_they_are() -> None:
    assert made(cases=3) == made(cases=5)[:3]


def test_another_seed_makes_others() -> None:
    assert made(seed=1)[0]["scenario"] != made(seed=2)[0]["scenario"]


def test_every_scenario_can_be_read() -> None:
    for case in made():
        scenario = scenario_from({"scenario": case["scenario"]}, name=case["id"])
        assert len(scenario.nodes) == 40


def test_pods_and_claims_are_called_differently() -> None:
    for case in made():
        for key in ("pods", "persistentVolumeClaims", "persistentVolumes"):
            names = Counter(each["metadata"]["name"] for each in case["scenario"].get(key, ()))
            assert [name for name, count in names.items() if count > 1] == []


def test_the_pods_to_place_ask_something_of_every_plugin() -> None:
    asked = json.dumps([case["scenario"]["pod"]["spec"] for case in made()])
    words = (
        "nodeSelector",
        "matchFields",
        "podAffinity",
        "podAntiAffinity",
        "topologySpreadConstraints",
        "tolerations",
        "hostPort",
        "persistentVolumeClaim",
        "example.com/accelerator",
    )
    assert [word for word in words if f'"{word}"' not in asked] == []
