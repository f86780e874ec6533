"""Runs of small worlds: what happens on virtual time, and what the levels of knowledge do."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lowtide.framework.plugin import Nodes, PluginError, Pod, Rejection
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import NetworkTrafficArgs
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.plugins.priority_sort import PrioritySort
from lowtide.readings.request import TrafficRequest
from lowtide.scenario.simulation import Simulation, simulation_from
from lowtide.simulator.draw import draw
from lowtide.simulator.reference import reference_peak
from lowtide.simulator.report import RunResult
from lowtide.simulator.run import Run, run_seconds
from lowtide.testing import make_profile

SMALL = """
nodes:
- {count: 6, links: [10G], background: {share: [0.05, 0.6]}}
owners:
- {count: 4, pods: 30, traffic: {median: 240M}}
arrivals: {over: 60s}
settle: 30s
"""


def small(*changes: tuple[str, str]) -> Simulation:
    text = SMALL
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return simulation_from(text, file="t.yaml")


def by_traffic(**args: Any) -> list[Any]:
    """Room on the node, and nothing but traffic to choose by."""
    return [NetworkTraffic(NetworkTrafficArgs(**args)), NodeResourcesFit(NodeResourcesFitArgs())]


def run(simulation: Simulation, plugins: Sequence[Any], seed: int = 1) -> RunResult:
    drawn = draw(simulation, seed)
    requests = [request for plugin in plugins for request in getattr(plugin, "readings", ())]
    assert all(isinstance(request, TrafficRequest) for request in requests)
    return Run(
        simulation,
        drawn,
        profiles={"lowtide": make_profile([PrioritySort(), *plugins], {"NodeResourcesFit": 0})},
        requests=requests,
        reference=reference_peak(drawn, run_seconds(simulation, drawn)),
    ).run()


def peaks(simulation: Simulation, plugins: Sequence[Any], seeds: int = 3) -> float:
    """The median of the peaks over their reference."""
    runs = [run(simulation, plugins, seed).figures for seed in range(1, seeds + 1)]
    return float(np.median([each.peak_over_reference for each in runs]))


class Always:
    """Wants the first node, whatever it carries."""

    name = "Always"

    def filter(self, pod: Pod, nodes: Nodes) -> list[Rejection]:
        return [Rejection(np.array([name != "node-0001" for name in nodes.names]), "not first")]


class Never:
    name = "Never"

    def filter(self, pod: Pod, nodes: Nodes) -> list[Rejection]:
        return [Rejection(np.ones(len(nodes), np.bool_), "never")]


class Broken:
    name = "Broken"

    def filter(self, pod: Pod, nodes: Nodes) -> list[Rejection]:
        raise ValueError("out of order")


def test_what_is_put_on_one_node_is_carried_there() -> None:
    simulation = small()
    drawn = draw(simulation, 1)
    result = run(simulation, [Always()])
    background, capacity = drawn.background.level, drawn.capacity
    at_the_end = background.copy()
    at_the_end[0] += drawn.pods.receive.sum() / capacity[0]
    assert result.figures.peak == pytest.approx(float(at_the_end.max()))
    assert result.course[0] == (0.0, pytest.approx(float(background.max())))
    assert result.course[-1] == (
        pytest.approx(run_seconds(simulation, drawn)),
        pytest.approx(float(at_the_end.max())),
    )
    assert result.figures.fairness == pytest.approx(
        at_the_end.sum() ** 2 / (6 * (at_the_end**2).sum())
    )
    assert (result.figures.nodes_used, result.figures.pending) == (1, 0)
    assert result.figures.cpu_imbalance == pytest.approx(6.0)


def test_a_run_is_the_same_each_time() -> None:
    assert run(small(), by_traffic()) == run(small(), by_traffic())
    assert run(small(), by_traffic(), seed=2) != run(small(), by_traffic(), seed=1)


def test_pods_that_find_no_node_are_pending() -> None:
    figures = run(small(), [Never()]).figures
    assert (figures.pending, figures.nodes_used, figures.cpu_imbalance) == (30, 0, 1.0)


def test_a_plugin_that_fails_ends_the_run() -> None:
    with pytest.raises(PluginError, match=r"Broken.filter failed: ValueError\('out of order'\)"):
        run(small(), [Broken()])


def test_pods_that_end_make_room() -> None:
    """One node with room for two of the pods at a time."""
    full = (("count: 6, links: [10G]", "count: 1, cpu: 1, links: [10G]"), ("60s", "10m"))
    stay = run(small(*full), by_traffic())
    leave = run(small(*full, ("240M}", "240M}, lifetime: 5s")), by_traffic())
    assert (stay.figures.pending, leave.figures.pending) == (28, 0)


def test_what_ended_is_not_carried_any_more() -> None:
    short = small(("240M}", "240M}, lifetime: 1s"), ("settle: 30s", "settle: 60s"))
    result = run(short, [Always()])
    background = float(draw(short, 1).background.level.max())
    assert result.figures.peak > background
    assert result.course[-1][1] == pytest.approx(background)


def test_a_long_run_of_comings_and_goings() -> None:
    day = small(
        ("0.6]}", "0.6], swing: 0.5, period: 10m, noise: 0.1}"),
        ("240M}", "240M}, lifetime: 5m"),
        ("over: 60s", "over: 15m"),
        ("30s", "15m"),
    )
    result = run(day, by_traffic())
    times = [moment for moment, _ in result.course]
    assert (times == sorted(times), times[-1] > 1700, result.figures.pending) == (True, True, 0)
    # 30 pods come and most go, and the background changes each minute of the half hour.
    assert len(times) > 70


def test_traffic_places_better_than_none() -> None:
    """Without a score every node is as good as another, and they take turns."""
    blind = [NodeResourcesFit(NodeResourcesFitArgs())]
    assert peaks(small(), by_traffic()) < peaks(small(), blind)


def test_what_is_known_before_helps() -> None:
    """A burst of pods of owners that differ much, so that what is known tells."""
    wild = (("30,", "40,"), ("240M}", "240M, sigma: 1.5, podSigma: 0.3}"), ("60s", "0s"))
    known = {
        level: peaks(small(*wild, ("settle: 30s", f"knowledge: {level}\nsettle: 1s")), by_traffic())
        for level in ("unknown", "seen", "annotated")
    }
    assert known["seen"] < known["unknown"]
    assert known["annotated"] < known["unknown"]


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({"devices": ["ens192"]}, id="what devices are called"),
        pytest.param({"node_label": "instance"}, id="that nodes are told by address"),
        pytest.param({"node_label": "nodename"}, id="that nodes are told by their own word"),
        pytest.param({"node_label": "kubernetes_node"}, id="that nodes are told by an older label"),
    ],
)
def test_a_run_does_not_depend_on(args: dict[str, Any]) -> None:
    assert run(small(), by_traffic(**args)) == run(small(), by_traffic())


@pytest.mark.parametrize(
    ("args", "changes"),
    [
        pytest.param({"measure": "increase"}, [], id="as an increase"),
        pytest.param({"window": "5m"}, [], id="over a long window"),
        pytest.param({}, [("settle:", "prometheus: {scrapeInterval: 30s}\nsettle:")], id="seldom"),
        pytest.param({}, [("settle:", "prometheus: {delay: 10s}\nsettle:")], id="late"),
    ],
)
def test_readings_help_when_they_are_taken(
    args: dict[str, Any], changes: list[tuple[str, str]]
) -> None:
    blind = [NodeResourcesFit(NodeResourcesFitArgs())]
    unlike = small(*changes, ("[10G]", "[1G, 10G]"))
    assert peaks(unlike, by_traffic(**args)) < 0.75 * peaks(unlike, blind)
