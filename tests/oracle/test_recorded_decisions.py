"""What kube-scheduler v1.36.4 decided for recorded scenarios, and what Lowtide decides for them.

`data/` holds one family per file: gzipped JSON lines of `id`, `scenario` and `expected`. A case in
which a rule that is not built yet refuses a node first is not comparable; how many are is asserted.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lowtide.app.offline import Decider
from lowtide.config.load import load_default
from lowtide.framework.registry import Registry
from lowtide.plugins import BUILT_IN
from lowtide.scenario.scenario import scenario_from

DATA = Path(__file__).parent / "data"
BUILT = frozenset(row.name for row in BUILT_IN if row.rule is not None)
PREFILTER_KEYS = ("code", "plugin", "reasons", "nodes")


@dataclass(frozen=True)
class Counts:
    """Of one family: cases, those whose verdicts are compared, those whose best nodes are too."""

    cases: int
    comparable: int
    best: int


COUNTS = {
    "gates": Counts(cases=35, comparable=35, best=0),
    "node_affinity": Counts(cases=170, comparable=170, best=125),
    "nominated": Counts(cases=70, comparable=60, best=48),
    "ports": Counts(cases=110, comparable=110, best=97),
    "resources": Counts(cases=180, comparable=180, best=128),
    "scoring": Counts(cases=150, comparable=150, best=114),
    "spread_defaults": Counts(cases=110, comparable=110, best=97),
    "taints": Counts(cases=130, comparable=130, best=113),
    "topology_spread": Counts(cases=180, comparable=180, best=148),
}


@dataclass(frozen=True)
class Difference:
    """Where Lowtide differs on purpose: which rules it says left out which nodes, and why."""

    excluded_by: dict[str, list[str]]
    reason: str


DIFFERENCES = {
    "p-node_affinity-0138": Difference(
        excluded_by={name: ["NodeAffinity"] for name in ("node-02", "node-03", "node-05")},
        reason=(
            "an artefact of the recorder, which also lists NodeResourcesFit; that rule never "
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


@dataclass(frozen=True)
class Case:
    id: str
    family: str
    scenario: dict[str, Any]
    expected: dict[str, Any]

    @property
    def is_comparable(self) -> bool:
        """Whether every verdict comes from rules that are built."""
        by = {(self.expected.get("prefilter") or {}).get("plugin")}
        by |= set(self.expected.get("preenqueue") or {})
        for verdict in (self.expected.get("filter") or {}).values():
            if verdict != "ok":
                by |= {verdict["plugin"], *verdict.get("excluded_by", ())}
        return by <= BUILT | {None, ""}

    @property
    def has_comparable_best(self) -> bool:
        """Whether what is not built gives every feasible node the same."""
        scores = self.expected.get("scores") or {}
        return bool(scores) and all(
            rule in BUILT or len({score["weighted"] for score in by_node.values()}) == 1
            for rule, by_node in scores.items()
        )


def read_cases() -> Iterator[Case]:
    for path in sorted(DATA.glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            for line in lines:
                yield Case(**json.loads(line))


CASES = tuple(read_cases())


@pytest.fixture(scope="module")
def decider() -> Decider:
    return Decider(Registry(BUILT_IN), load_default())


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id) for case in CASES if case.is_comparable]
)
def test_decides_as_recorded(decider: Decider, case: Case) -> None:
    answer = decider.answer(scenario_from({"scenario": case.scenario}, name=case.id))
    assert compared(case, answer) == compared(case, with_differences(case))


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id) for case in CASES if case.id in DIFFERENCES]
)
def test_a_difference_is_still_one(decider: Decider, case: Case) -> None:
    answer = decider.answer(scenario_from({"scenario": case.scenario}, name=case.id))
    assert compared(case, answer) != compared(case, case.expected)


def test_as_many_cases_are_compared_as_before() -> None:
    assert {family: counts_of(family) for family in {case.family for case in CASES}} == COUNTS
    assert set(DIFFERENCES) <= {case.id for case in CASES if case.is_comparable}


def counts_of(family: str) -> Counts:
    cases = [case for case in CASES if case.family == family]
    comparable = [case for case in cases if case.is_comparable]
    return Counts(
        cases=len(cases),
        comparable=len(comparable),
        best=sum(case.has_comparable_best for case in comparable),
    )


def with_differences(case: Case) -> dict[str, Any]:
    difference = DIFFERENCES.get(case.id)
    if difference is None:
        return case.expected
    changed = {
        name: {**case.expected["filter"][name], "excluded_by": rules}
        for name, rules in difference.excluded_by.items()
    }
    return {**case.expected, "filter": {**case.expected["filter"], **changed}}


def compared(case: Case, result: dict[str, Any]) -> dict[str, Any]:
    """Of a recorded result or of an answer, what both must agree on."""
    prefilter = result.get("prefilter") or {}
    keys = ["preenqueue", "fit_error", "selected_by_nomination"]
    if case.has_comparable_best:
        keys.append("best")
    return {
        **{key: result.get(key) for key in keys},
        "prefilter": {key: prefilter.get(key) for key in PREFILTER_KEYS},
        "filter": {name: built_part(v) for name, v in (result.get("filter") or {}).items()},
        "scores": {
            rule: by_node for rule, by_node in (result.get("scores") or {}).items() if rule in BUILT
        },
    }


def built_part(verdict: Any) -> Any:
    """A verdict on a node without what rules that are not built say besides."""
    if verdict == "ok":
        return verdict
    also = {rule: said for rule, said in verdict.get("also", {}).items() if rule in BUILT}
    return {**verdict, "also": also}
