"""How the cost of decisions is seen to grow: with nodes, with pods on them, with plugins."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from decide import Decide, DecideWorkload, anti_affinity_pod, different_pod, plain_pod
from decide_report import KINDS
from growth import PLUGINS, growth_report, growth_workloads
from many_nodes import make_machine, plugins_that_judge

ROUNDS = 5


def test_the_plugins_that_join_are_all_that_judge_nodes() -> None:
    (profile,) = make_machine("http://127.0.0.1:9090", []).profiles.values()
    assert sorted(PLUGINS) == sorted(plugins_that_judge(profile))


def test_plugins_that_are_not_named_do_not_judge() -> None:
    named = ("NodeName", "TaintToleration")
    machine = make_machine("http://127.0.0.1:9090", [], judging=named)
    (profile,) = machine.profiles.values()
    assert plugins_that_judge(profile) == set(named)
    assert {"PrioritySort", "DefaultBinder"} < {plugin.name for plugin in profile.plugins}


def test_what_grows_is_one_thing_at_a_time() -> None:
    sizes = {
        name: {(each.nodes, each.pods_before, len(each.judging or PLUGINS)) for each in workloads}
        for name, workloads in growth_workloads()
    }
    assert sizes == {
        "growth/nodes/100": {(100, None, 17)},
        "growth/nodes/1000": {(1000, None, 17)},
        "growth/nodes/5000": {(5000, None, 17)},
        "growth/nodes/15000": {(15_000, None, 17)},
        "growth/nodes/50000": {(50_000, None, 17)},
        "growth/pods/0": {(5000, 0, 17)},
        "growth/pods/10000": {(5000, 10_000, 17)},
        "growth/pods/30000": {(5000, 30_000, 17)},
        "growth/pods/100000": {(5000, 100_000, 17)},
        "growth/plugins/1": {(5000, None, 1)},
        "growth/plugins/2": {(5000, None, 2)},
        "growth/plugins/5": {(5000, None, 5)},
        "growth/plugins/10": {(5000, None, 10)},
        "growth/plugins/17": {(5000, None, 17)},
    }


def test_a_row_says_what_there_was_of_each() -> None:
    workload = DecideWorkload(
        "growth/pods",
        20,
        5,
        different_pod,
        pods_before=30,
        judging=("NetworkTraffic", "NodeUnschedulable"),
    )
    row = Decide(workload).run(1)
    assert (row.nodes, row.pods, row.pods_before, row.plugins) == (20, 5, 30, 2)
    assert sorted(row.p50_us_by_plugin) == ["NetworkTraffic", "NodeUnschedulable"]
    assert 0 < row.p50_us_by_plugin["NodeUnschedulable"] < row.p50_us_by_plugin["NetworkTraffic"]


def test_other_pods_find_the_cluster_as_the_first_found_it() -> None:
    """A hundred hosts hold 60 pods that keep apart once, and not twice."""
    first = DecideWorkload("growth/nodes", 100, 60, anti_affinity_pod, pods_before=0)
    decide = Decide(first)
    decide.run(1)
    decide.change_to(replace(first, kind="again"))
    result = decide.run(1)
    assert (result.kind, result.pods) == ("again", 60)


@pytest.mark.parametrize("kind", ["anti-affinity", "affinity"])
def test_pods_that_go_not_everywhere_fit_on_few_nodes_for_all_rounds(kind: str) -> None:
    by_name = dict(growth_workloads())
    (workload,) = (each for each in by_name["growth/nodes/100"] if each.kind == kind)
    decide = Decide(workload)
    assert [decide.run(number).pods for number in range(ROUNDS)] == [workload.pods] * ROUNDS


def test_the_report_has_a_row_for_each_size_and_a_column_for_each_kind() -> None:
    text = StringIO()
    rows = [
        Decide(DecideWorkload("growth/nodes", nodes, 2, plain_pod, "one-shape")).run(1)
        for nodes in (30, 20)
    ]
    (table,) = growth_report(rows)
    Console(file=text, width=160).print(table)
    lines = text.getvalue().splitlines()
    assert [word for word in KINDS if any(word in line for line in lines)] == list(KINDS)
    assert [line.split()[1] for line in lines if line.startswith("│")] == ["20", "30"]
