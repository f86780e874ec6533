"""Every configuration on every draw: order, names, what is shared and what is rejected."""

import json
from typing import Any

import pytest

from lowtide.app.simulate import NamedConfig, run_all, seeds_config, usual_configs, warnings_of
from lowtide.config.errors import ConfigError
from lowtide.config.load import LoadedConfig, load_config, load_default
from lowtide.framework.plugin import OneNode, Pod, score_each
from lowtide.scenario.scenario import ScenarioError
from lowtide.scenario.simulation import simulation_from

SMALL = simulation_from(
    """
nodes:
- {count: 4, links: [10G], background: {share: [0.05, 0.6]}}
owners:
- {count: 2, pods: 8, traffic: {median: 240M}}
arrivals: {over: 20s}
settle: 1s
""",
    file="small.yaml",
)


class First:
    """The first node is best."""

    name = "First"

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        return 100 if node.name == "node-0001" else 0


def config(score: str, args: dict[str, Any] | None = None) -> LoadedConfig:
    """Only that plugin scores."""
    written: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "mine",
                "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": score}]}},
                "pluginConfig": [{"name": score, "args": args}] if args else [],
            }
        ],
    }
    return load_config(json.dumps(written), file="mine.yaml")


def test_usage_that_a_plugin_reads_is_told_to_be_missing() -> None:
    configs = [NamedConfig("one", config("NodeUsage")), NamedConfig("two", config("NodeUsage"))]
    assert [each for each in warnings_of(configs, {}) if "NodeUsage" in each] == [
        "a simulation has no usage of cpu and memory: all nodes are equal to NodeUsage"
    ]
    assert not any("NodeUsage" in each for each in warnings_of(usual_configs(), {}))


def test_the_usual_configurations_in_their_order() -> None:
    calls: list[int] = []
    found = run_all(SMALL, usual_configs(), [3, 1], plugins={}, on_run=lambda: calls.append(1))
    assert [each.name for each in found] == ["recommended", "seeds", "default"]
    assert [[run.figures.seed for run in each.runs] for each in found] == [[3, 1]] * 3
    assert len(calls) == 6


def test_configurations_share_the_draw() -> None:
    found = run_all(SMALL, usual_configs(), [1], plugins={}, on_run=lambda: None)
    assert len({each.runs[0].reference for each in found}) == 1
    assert len({each.runs[0].course[0] for each in found}) == 1


def test_many_runs_in_processes_of_their_own_are_the_same() -> None:
    named = [NamedConfig("default", load_default())]
    apart = run_all(SMALL, named, range(1, 9), plugins={}, on_run=lambda: None)
    here = [
        run_all(SMALL, named, [seed], plugins={}, on_run=lambda: None)[0].runs[0]
        for seed in range(1, 9)
    ]
    assert list(apart[0].runs) == here


def test_plugins_of_an_outsider_take_part() -> None:
    named = [NamedConfig("mine", config("First"))]
    (found,) = run_all(SMALL, named, [1], plugins={"First": First}, on_run=lambda: None)
    assert found.runs[0].figures.nodes_used == 1


def test_the_seeds_plugin_herds() -> None:
    """A lifetime counter's sum does not change in a minute: all pods go to one node."""
    (found,) = run_all(
        SMALL, [NamedConfig("seeds", seeds_config())], [1], plugins={}, on_run=lambda: None
    )
    assert found.runs[0].figures.nodes_used == 1


def test_a_query_that_the_model_does_not_answer() -> None:
    named = NamedConfig("mine", config("NetworkTraffic", {"query": "irate(up[1m])"}))
    with pytest.raises(ScenarioError) as caught:
        run_all(SMALL, [named], [1], plugins={}, on_run=lambda: None)
    assert str(caught.value) == (
        "mine: the function irate is not answered here; rate, increase, sum_over_time, sum and max "
        "are"
    )


def test_a_configuration_that_cannot_be_built() -> None:
    named = NamedConfig("mine", config("NoSuchPlugin"))
    with pytest.raises(ConfigError, match="NoSuchPlugin"):
        warnings_of([named], {})


def test_warnings_come_once() -> None:
    named = NamedConfig("mine", config("NetworkTraffic", {"ip": "p:9090", "deviceName": "eth0"}))
    found = warnings_of([named, named], {})
    assert len(found) == len(set(found))
    assert [text for text in found if "older spelling" in text] != []
