"""`lowtide sweep`: many configurations on many draws and recordings, each run on its own: in local
processes, or on an existing Dask cluster where one machine is not enough."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lowtide.app.registry import make_registry
from lowtide.app.replay import compared_with
from lowtide.app.side_by_side import Mapped, side_by_side
from lowtide.app.simulate import NamedConfig, Plugins, run_one
from lowtide.scenario.scenario import ScenarioError
from lowtide.scenario.simulation import Simulation

Figures = Mapping[str, float]


class SweepError(ScenarioError):
    """The sweep cannot be run; the sentence says why."""


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
    where = side_by_side(len(tasks)) if dask_address is None else _on_dask(dask_address)
    with where as mapped:
        for result in mapped(make, tasks):
            on_run()
            found.append(result)
    return found


def _run(plugins: Plugins, task: SweepTask) -> SweepRun:
    figures = _simulated(plugins, task) if task.simulation is not None else _replayed(plugins, task)
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


def _replayed(plugins: Plugins, task: SweepTask) -> Figures:
    with tempfile.TemporaryDirectory(prefix="lowtide-sweep-") as folder:
        file = Path(folder) / task.source
        file.write_bytes(task.recording)
        row = compared_with(file, make_registry(plugins), task.config)
    links = row.links
    known = {} if links is None else {"peak": links.peak, "p95": links.p95}
    if links is not None:
        known |= {"fairness": links.fairness, "cpu_imbalance": links.cpu_imbalance}
    return {**known, "pending": row.pending, "elsewhere": len(row.elsewhere)}


@contextmanager
def _on_dask(address: str) -> Iterator[Mapped]:
    """What a worker was at when it was lost is run again by another, and nothing else."""
    try:
        from distributed import Client
    except ImportError:
        raise SweepError(
            "--dask needs Dask's client, which is not installed: pip install 'lowtide[sweep]'"
        ) from None
    try:
        client: Any = Client(address, timeout="10s", set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise SweepError(
            f"no Dask scheduler answers at {address}: {error}; right would be tcp://HOST:8786"
        ) from None
    with client:

        def mapped(run_task: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
            futures = client.map(run_task, tasks, pure=False)
            for future in futures:
                yield future.result()

        yield mapped
