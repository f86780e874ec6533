"""`lowtide simulate`: every configuration on every draw of a simulation, on all cores."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry, recommended_config, requests_of
from lowtide.app.side_by_side import side_by_side
from lowtide.config.load import API_VERSION, LoadedConfig, load_config, load_default
from lowtide.framework.plugin import Binder, PluginError
from lowtide.framework.registry import Built
from lowtide.localcluster.promql import QueryError
from lowtide.readings.request import TrafficRequest
from lowtide.readings.usage import UsageRequest
from lowtide.scenario.scenario import ScenarioError
from lowtide.scenario.simulation import Simulation
from lowtide.simulator.draw import draw
from lowtide.simulator.reference import reference_peak
from lowtide.simulator.report import RunResult
from lowtide.simulator.run import Run, run_seconds

Plugins = Mapping[str, type[Any]]

_NO_USAGE = "a simulation has no usage of cpu and memory: all nodes are equal to NodeUsage"


@dataclass(frozen=True, slots=True)
class NamedConfig:
    name: str
    config: LoadedConfig


@dataclass(frozen=True, slots=True)
class ConfigRuns:
    """One configuration's runs, in the order of the seeds."""

    name: str
    runs: tuple[RunResult, ...]

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "runs": [run.figures.as_json() for run in self.runs]}


def usual_configs() -> list[NamedConfig]:
    """What is compared when no configuration is named."""
    return [
        NamedConfig("recommended", recommended_config()),
        NamedConfig("seeds", seeds_config()),
        NamedConfig("default", load_default()),
    ]


def seeds_config() -> LoadedConfig:
    """The plugin of the first NetworkTraffic plugins, alone, as their users wrote it."""
    score = {"enabled": [{"name": "NetworkTraffic"}], "disabled": [{"name": "*"}]}
    args = {"ip": "http://prometheus:9090", "deviceName": "eth0", "timeRange": 60}
    config = {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "sample-scheduler",
                "plugins": {"score": score},
                "pluginConfig": [{"name": "NetworkTraffic", "args": args}],
            }
        ],
    }
    return load_config(json.dumps(config), file="the seeds' plugin")


def warnings_of(configs: Sequence[NamedConfig], plugins: Plugins) -> list[str]:
    """What a user should know of them, each once; ConfigError where one cannot be built."""
    found: dict[str, None] = {}
    for named in configs:
        built = _built(named.config, plugins)
        found |= dict.fromkeys((*named.config.warnings, *built.warnings))
        if requests_of(built.profiles.values(), UsageRequest):
            found[_NO_USAGE] = None
    return list(found)


def run_all(
    simulation: Simulation,
    configs: Sequence[NamedConfig],
    seeds: Sequence[int],
    *,
    plugins: Plugins,
    on_run: Callable[[], None],
) -> list[ConfigRuns]:
    """`on_run` is called after each run. Results do not depend on how many cores there are."""
    tasks = [(named, seed) for named in configs for seed in seeds]
    with_simulation = partial(run_one, simulation, dict(plugins))
    results = []
    with side_by_side(len(tasks)) as mapped:
        for result in mapped(with_simulation, tasks):
            on_run()
            results.append(result)
    count = len(seeds)
    return [
        ConfigRuns(named.name, tuple(results[number * count : (number + 1) * count]))
        for number, named in enumerate(configs)
    ]


def run_one(simulation: Simulation, plugins: Plugins, task: tuple[NamedConfig, int]) -> RunResult:
    named, seed = task
    built = _built(named.config, plugins)
    drawn = draw(simulation, seed)
    requests = requests_of(built.profiles.values(), TrafficRequest)
    run = Run(
        simulation,
        drawn,
        profiles=built.profiles,
        requests=list(requests),
        reference=reference_peak(drawn, run_seconds(simulation, drawn)),
    )
    try:
        return run.run()
    except (QueryError, PluginError) as error:
        raise ScenarioError(f"{named.name}: {error}") from None


def _built(config: LoadedConfig, plugins: Plugins) -> Built:
    return make_registry(plugins).build(config, {Binder: NoBinder()})
