"""Runs that do not depend on each other, on as many processes as there are cores."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

Mapped = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]

# A process of its own takes longer to start than a few runs take.
_FEW_RUNS = 6


@contextmanager
def side_by_side(count: int) -> Iterator[Mapped]:
    """A `map` on as many processes as there are cores; on this one where that is as fast."""
    processes = min(os.cpu_count() or 1, count)
    if processes == 1 or count <= _FEW_RUNS:
        yield map
        return
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:

        def mapped(run_one: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
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
