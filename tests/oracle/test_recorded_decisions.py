"""What kube-scheduler v1.36.4 decided for recorded scenarios, and what Lowtide decides for them.

`data/` holds one family per file: gzipped JSON lines of `id`, `scenario` and `expected`, as they
were recorded. DIFFERENCES names every case that Lowtide answers otherwise on purpose.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.recorded import Case, cases_in

from lowtide.app.offline import Decider
from lowtide.config.load import load_default
from lowtide.framework.registry import Registry
from lowtide.plugins import BUILT_IN
from lowtide.scenario.scenario import scenario_from

DATA = Path(__file__).parent / "data"
KEYS = (
    "preenqueue",
    "profile",
    "filter",
    "total",
    "best",
    "selected_by_nomination",
    "fit_error",
    "fit_error_final",
)
# Of these two, what is left out says how the answer was found: which plugins skipped, which nodes
# were tried in vain.
PREFILTER_KEYS = ("code", "plugin", "reasons", "nodes")
POSTFILTER_KEYS = ("status", "plugin", "message", "candidates", "tied_nodes")

CASES_BY_FAMILY = {
    "declared_features": 50,
    "gates": 35,
    "images": 90,
    "mixed": 120,
    "node_affinity": 170,
    "nominated": 70,
    "nominated_excluded": 4,
    "pod_affinity": 190,
    "ports": 110,
    "preemption": 240,
    "profiles": 130,
    "recorded_clusters": 30,
    "resources": 180,
    "scoring": 150,
    "spread_defaults": 110,
    "taints": 130,
    "topology_spread": 180,
    "volume_limits": 150,
    "volumes": 200,
    "without_pre_score": 20,
}


@dataclass(frozen=True)
class Difference:
    """Where Lowtide differs on purpose: which plugins it says left out which nodes, and why."""

    excluded_by: dict[str, list[str]]
    reason: str


DIFFERENCES = {
    "p-node_affinity-0138": Difference(
        excluded_by={name: ["NodeAffinity"] for name in ("node-02", "node-03", "node-05")},
        reason=(
            "an artefact of the recorder, which also lists NodeResourcesFit; that plugin never "
            "narrows the nodes, and the recorded reason names NodeAffinity alone"
        ),
    ),
    "p-topology_spread-0008": Difference(
        excluded_by={name: ["NodeAffinity"] for name in ("worker-01", "worker-02", "worker-03")},
        reason="the same artefact",
    ),
    "p-topology_spread-0179": Difference(
        excluded_by={"worker-05": ["NodeAffinity"]},
        reason="the same artefact with PodTopologySpread, which never narrows the nodes either",
    ),
}


CASES = tuple(cases_in(DATA))


@pytest.fixture(scope="module")
def decider() -> Decider:
    return Decider(Registry(BUILT_IN), load_default())


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_decides_as_recorded(decider: Decider, case: Case) -> None:
    expected = with_differences(case)
    assert compared(answer_to(case, decider), expected) == compared(expected, expected)


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id) for case in CASES if case.id in DIFFERENCES]
)
def test_a_difference_is_still_one(decider: Decider, case: Case) -> None:
    assert answer_to(case, decider)["filter"] != case.expected["filter"]


def test_every_recorded_case_is_here() -> None:
    assert Counter(case.family for case in CASES) == CASES_BY_FAMILY
    assert set(DIFFERENCES) <= {case.id for case in CASES}


def answer_to(case: Case, decider: Decider) -> dict[str, Any]:
    return decider.answer(scenario_from({"scenario": case.scenario}, name=case.id))


def with_differences(case: Case) -> dict[str, Any]:
    difference = DIFFERENCES.get(case.id)
    if difference is None:
        return case.expected
    changed = {
        name: {**case.expected["filter"][name], "excluded_by": plugins}
        for name, plugins in difference.excluded_by.items()
    }
    return {**case.expected, "filter": {**case.expected["filter"], **changed}}


def compared(result: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Of a recorded result or of an answer, what both must agree on.

    Without a plugin that scores, a recorded result has no `scores`.
    """
    return {
        **{key: result.get(key) for key in KEYS},
        "prefilter": part_of(result.get("prefilter"), PREFILTER_KEYS),
        "scores": result.get("scores") or {},
        "postfilter": postfilter_of(result.get("postfilter"), expected.get("postfilter")),
    }


def postfilter_of(
    result: dict[str, Any] | None, expected: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Any of the equally good nodes may be nominated, if its own victims are named with it."""
    if result is None:
        return None
    node, victims = result.get("nominated_node"), result.get("victims")
    if expected and node in expected.get("tied_nodes", ()):
        is_right = victims == expected["candidates"][node]["victims"]
        node, victims = ("any of the tied", "its own") if is_right else (node, victims)
    return {**part_of(result, POSTFILTER_KEYS), "nominated_node": node, "victims": victims}


def part_of(result: dict[str, Any] | None, keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: (result or {}).get(key) for key in keys}
