"""`lowtide simulate`: every configuration on every draw of a simulation, on all cores."""

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry, recommended_config, requests_of
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
    """The rule of the first NetworkTraffic plugins, alone, as their users wrote it."""
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
    return load_config(json.dumps(config), file="the seeds' rule")


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
    run_one = partial(_run_one, simulation, dict(plugins))
    results = []
    with _side_by_side(len(tasks)) as mapped:
        for result in mapped(run_one, tasks):
            on_run()
            results.append(result)
    count = len(seeds)
    return [
        ConfigRuns(named.name, tuple(results[number * count : (number + 1) * count]))
        for number, named in enumerate(configs)
    ]


def _run_one(simulation: Simulation, plugins: Plugins, task: tuple[NamedConfig, int]) -> RunResult:
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


Mapped = Callable[[Callable[[Any], RunResult], Sequence[Any]], Iterator[RunResult]]

# A process of its own takes longer to start than a few runs take.
_FEW_RUNS = 6


@contextmanager
def _side_by_side(count: int) -> Iterator[Mapped]:
    """A `map` on as many processes as there are cores; on this one where that is as fast."""
    processes = min(os.cpu_count() or 1, count)
    if processes == 1 or count <= _FEW_RUNS:
        yield map
        return
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:

        def mapped(
            run_one: Callable[[Any], RunResult], tasks: Sequence[Any]
        ) -> Iterator[RunResult]:
            with _interrupts_ignored():  # by the processes too, from their very beginning
                return pool.map(run_one, tasks)

        try:
            yield mapped
        except BaseException:
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal's group; one of them is to answer it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
