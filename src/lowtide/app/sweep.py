"""`lowtide sweep`: many configurations on many draws and recordings, each run on its own: in local
processes, or on an existing Dask cluster where one machine is not enough."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lowtide.app.on_dask import on_dask
from lowtide.app.registry import make_registry
from lowtide.app.replay import compared_with
from lowtide.app.side_by_side import side_by_side
from lowtide.app.simulate import NamedConfig, Plugins, run_one
from lowtide.scenario.simulation import Simulation

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One run. A recording is carried along as its bytes: a worker may be on another machine."""

    source: str
    config: NamedConfig
    seed: int
    simulation: Simulation | None = None
    recording: bytes = b""


@dataclass(frozen=True, slots=True)
class SweepRun:
    source: str
    config: str
    seed: int
    figures: Figures
    warnings: Sequence[str] = ()


def run_tasks(
    tasks: Sequence[SweepTask],
    *,
    plugins: Plugins,
    dask_address: str | None,
    on_run: Callable[[], None],
) -> list[SweepRun]:
    """In the order of the tasks, wherever and in whatever order they ran."""
    found = []
    make = partial(_run, dict(plugins))
    where = side_by_side(len(tasks)) if dask_address is None else on_dask(dask_address)
    with where as mapped:
        for result in mapped(make, tasks):
            on_run()
            found.append(result)
    return found


def _run(plugins: Plugins, task: SweepTask) -> SweepRun:
    if task.simulation is None:
        return _replayed(plugins, task)
    figures = _simulated(plugins, task)
    return SweepRun(task.source, task.config.name, task.seed, figures)


def _simulated(plugins: Plugins, task: SweepTask) -> Figures:
    assert task.simulation is not None
    figures = run_one(task.simulation, plugins, (task.config, task.seed)).figures
    return {
        "peak": figures.peak,
        "p95": figures.p95,
        "fairness": figures.fairness,
        "cpu_imbalance": figures.cpu_imbalance,
        "pending": figures.pending,
    }


def _replayed(plugins: Plugins, task: SweepTask) -> SweepRun:
    with tempfile.TemporaryDirectory(prefix="lowtide-sweep-") as folder:
        file = Path(folder) / task.source
        file.write_bytes(task.recording)
        row, warnings = compared_with(file, make_registry(plugins), task.config)
    links = row.links
    known = {} if links is None else {"peak": links.peak, "p95": links.p95}
    if links is not None:
        known["fairness"] = links.fairness
        if links.cpu_imbalance is not None:
            known["cpu_imbalance"] = links.cpu_imbalance
    figures = {**known, "pending": row.pending, "moved_pods": len(row.moved_pods)}
    return SweepRun(task.source, task.config.name, task.seed, figures, tuple(warnings))
