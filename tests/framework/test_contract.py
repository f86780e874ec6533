"""The contract of plugins: what a type checker says of a class, and what registration does."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lowtide.framework.contract import broken_contract
from lowtide.framework.log_words import LogsScores
from lowtide.framework.plugin import (
    IntArray,
    Nodes,
    OneNode,
    Pod,
    Rejection,
    Reserved,
    filter_each,
    score_each,
)
from lowtide.framework.registry import BuiltIn
from lowtide.plugins import BUILT_IN

TYPED = """
from collections.abc import Iterator

import numpy as np

from lowtide.framework.plugin import (
    Allow, BindOutcome, BindPlugin, FilterPlugin, IntArray, Nodes, OneNode, PermitPlugin, Pod,
    PodRejection, PostBindPlugin, PostFilterPlugin, PostFiltered, PreBindPlugin, PreEnqueuePlugin,
    PreFilterPlugin, Queued, QueueSortPlugin, PostFilterContext, Rejection, Reserved, ReservePlugin,
    ScorePlugin, Wait, filter_each, score_each,
)
from lowtide.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from lowtide.plugins.priority_sort import PrioritySort


class Does:
    name = "Does"

    def may_enqueue(self, pod: Pod) -> PodRejection | None:
        return None

    def sort_key(self, queued: Queued) -> float:
        return queued.queued_at

    def pre_filter(self, pod: Pod, nodes: Nodes) -> frozenset[str]:
        return frozenset(nodes.names)

    def filter(self, a_pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield Rejection(nodes.unschedulable, "cordoned")

    def post_filter(self, pod: Pod, nodes: Nodes, rejected: PostFilterContext) -> PostFiltered:
        return PostFiltered()

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        return np.zeros(len(nodes), np.int64)

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> Reserved:
        return Reserved(memory=len(nodes))

    def permit(
        self, pod: Pod, node_name: str, nodes: Nodes, *, memory: int | None = None
    ) -> Allow | Wait:
        return Allow()

    async def pre_bind(self, pod: Pod, node_name: str, *, memory: int | None = None) -> None: ...

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        return BindOutcome()

    async def post_bind(self, pod: Pod, node_name: str) -> None: ...


class OneByOne:
    name = "OneByOne"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        return None

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        return 0


class Mistaken:
    name = "Mistaken"

    def score(self, pod: Pod, nodes: Nodes, feasible: IntArray) -> IntArray:
        return feasible

    def permit(self, pod: Pod, node_name: str, nodes: Nodes) -> bool:
        return True


enqueues: PreEnqueuePlugin = Does()
sorts: QueueSortPlugin = Does()
narrows: PreFilterPlugin = Does()
filters: FilterPlugin = Does()
preempts: PostFilterPlugin = Does()
scores: ScorePlugin = Does()
reserves: ReservePlugin = Does()
permits: PermitPlugin = Does()
prepares: PreBindPlugin = Does()
binds: BindPlugin = Does()
follows: PostBindPlugin = Does()
filters_each: FilterPlugin = OneByOne()
scores_each: ScorePlugin = OneByOne()
sorts_built_in: QueueSortPlugin = PrioritySort()
filters_built_in: FilterPlugin = InterPodAffinity(InterPodAffinityArgs())

wrong_parameters: ScorePlugin = Mistaken()
wrong_answer: PermitPlugin = Mistaken()
not_there: FilterPlugin = Mistaken()
"""


def test_a_type_checker_compares_a_plugin_with_its_protocol(tmp_path: Path) -> None:
    file = tmp_path / "typed_plugins.py"
    file.write_text(TYPED)
    options = ["--strict", "--config-file=", "--no-error-summary", "--hide-error-context"]
    # In a process of its own: it changes how deeply this one may call functions.
    command = [sys.executable, "-m", "mypy", *options, f"--cache-dir={tmp_path}", str(file)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    wrong = [line for line in told.stdout.splitlines() if ": error: " in line]
    lines = TYPED.splitlines()
    named = [lines[int(line.split(":")[1]) - 1].partition(":")[0] for line in wrong]
    assert (named, told.stderr) == (["wrong_parameters", "wrong_answer", "not_there"], "")


@pytest.mark.parametrize("row", BUILT_IN, ids=lambda row: row.name)
def test_a_built_in_plugin_keeps_to_the_contract(row: BuiltIn) -> None:
    assert broken_contract(row.plugin) is None


class Keeps:
    """Has what is its own in private, in other attributes, and in its args."""

    name = "Keeps"
    label = "example.com/rack"
    kinds = ()

    class Inner:
        pass

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        return self._why(node)

    @staticmethod
    def score(pod: Pod, nodes: Nodes) -> IntArray | None:
        return None

    @classmethod
    def concerns(cls, pod: Pod) -> bool:
        return True

    def permit(self, *asked: Any, **named: Any) -> Any: ...

    def _why(self, node: OneNode) -> str | None:
        return None


def test_a_plugin_that_keeps_to_the_contract() -> None:
    assert broken_contract(Keeps) is None


def test_a_plugin_that_inherits_log_lines_keeps_to_the_contract() -> None:
    own = type("Own", (LogsScores,), {"name": "Own", "filter": method, "score_log_lines": logs})
    assert broken_contract(own) is None


def method(self: Any, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
    return iter(())


async def filters_later(self: Any, pod: Pod, nodes: Nodes) -> list[Rejection]:
    return []


def permits_as_before(self: Any, pod: Pod, node_name: str) -> None: ...


def permits_with_memory(
    self: Any, pod: Pod, node_name: str, nodes: Nodes, *, memory: object
) -> None: ...


def logs(self: Any, scores: Any, nodes: Nodes, *, brief: bool = False) -> Iterator[str]:
    return iter(())


def binds_at_once(self: Any, pod: Pod, node_name: str) -> None: ...


def reserves_with_more(self: Any, pod: Pod, node_name: str, nodes: Nodes, why: str) -> Reserved:
    return Reserved()


@score_each
def scores_each_of_two(self: Any, pod: Pod, node: OneNode) -> int:
    return 0


@pytest.mark.parametrize(
    ("members", "told"),
    [
        pytest.param(
            {"filtr": method},
            'its public method "filtr" is not in the contract, and names of its own methods must '
            'start with an underscore, did you mean "filter"?',
            id="a method that is misspelled",
        ),
        pytest.param(
            {"PreFilter": method},
            'its public method "PreFilter" is not in the contract, and names of its own methods '
            'must start with an underscore, did you mean "pre_filter"?',
            id="a method spelled as in Go",
        ),
        pytest.param(
            {"weather": staticmethod(method)},
            'its public method "weather" is not in the contract, and names of its own methods must '
            "start with an underscore",
            id="a public method that is not in the contract",
        ),
        pytest.param(
            {"reads": 3},
            "delete `reads`, which is no longer needed: what a plugin reads is recorded",
            id="the attribute reads of earlier versions",
        ),
        pytest.param(
            {"reads_about": method},
            "delete `reads_about`, which is no longer needed: what a plugin reads is recorded",
            id="the method reads_about of earlier versions",
        ),
        *(
            pytest.param(
                {name: ()},
                f'its public attribute "{name}" is not in the contract, and is spelled too much '
                f'like one that is, did you mean "{meant}"?',
                id=f"the attribute {name}",
            )
            for name, meant in (
                ("retry_onn", "retry_on"),
                ("kind", "kinds"),
                ("Readings", "readings"),
            )
        ),
        pytest.param(
            {"permit": permits_as_before},
            "its method `permit` takes (pod, node_name) and must take (pod, node_name, nodes)",
            id="a permit that is not given nodes",
        ),
        pytest.param(
            {"reserve": reserves_with_more},
            "its method `reserve` takes (pod, node_name, nodes, why) and must take "
            "(pod, node_name, nodes)",
            id="a parameter too many",
        ),
        pytest.param(
            {"permit": permits_with_memory},
            "the parameter `memory` of its method `permit` must be a keyword with a default, such "
            "as `*, memory=None`: it is passed only where `reserve` returned some",
            id="a memory that it demands",
        ),
        pytest.param(
            {"score_log_lines": logs},
            'its public method "score_log_lines" is not in the contract, and names of its own '
            "methods must start with an underscore",
            id="log lines without inheriting LogsScores",
        ),
        pytest.param(
            {"normalize": scores_each_of_two},
            "its method `normalize` takes (pod, node) and must take (pod, nodes, raw)",
            id="a lifted method in the wrong place",
        ),
        pytest.param(
            {"filter": filters_later}, "its method `filter` must not be async", id="async"
        ),
        pytest.param(
            {"pre_bind": binds_at_once}, "its method `pre_bind` must be async", id="not async"
        ),
    ],
)
def test_a_class_breaks_the_contract_by(members: dict[str, Any], told: str) -> None:
    own = type("Own", (), {"name": "Own", **members})
    assert broken_contract(own) == told
    assert broken_contract(type("Heir", (own,), {})) == told
