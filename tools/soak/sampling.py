"""What the scheduler takes of its machine, from outside and from its own metrics, now and then."""

import os
import re
import urllib.request
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from realparts.process import Process

_SECONDS = 10.0
_SERIES = re.compile(r"^(\w+(?:\{[^}]*\})?) (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sample:
    """`seconds` since the churn began, below 0 before."""

    seconds: float
    memory_bytes: int
    descriptors: int
    threads: int
    tasks: int
    bindings: int  # under way
    nodes: int
    pods: int
    changes: int
    cpu_seconds: float


def sample(process: Process, *, seconds: float, changes: int) -> Sample:
    told = metrics(f"{process.url}/metrics")
    threads = len(os.listdir(f"/proc/{process.pid}/task"))
    return Sample(
        seconds=round(seconds, 1),
        memory_bytes=process.rss_bytes(),
        descriptors=len(os.listdir(f"/proc/{process.pid}/fd")),
        threads=threads,
        tasks=int(told["lowtide_tasks"]),
        bindings=int(told["lowtide_bindings_in_flight"]),
        nodes=int(told['scheduler_cache_size{type="nodes"}']),
        pods=int(told['scheduler_cache_size{type="pods"}']),
        changes=changes,
        cpu_seconds=round(process.cpu_seconds(), 2),
    )


def metrics(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url, timeout=_SECONDS) as response:
        return {name: float(value) for name, value in _SERIES.findall(response.read().decode())}


def write_samples(file: Path, samples: list[Sample]) -> None:
    """As CSV, a line each."""
    lines = [",".join(each.name for each in fields(Sample))]
    lines += [",".join(map(str, asdict(each).values())) for each in samples]
    file.write_text("\n".join(lines) + "\n")


def read_samples(file: Path) -> list[Sample]:
    names, *lines = file.read_text().splitlines()
    known: dict[str, Any] = {each.name: each.type for each in fields(Sample)}
    columns = names.split(",")
    return [
        Sample(
            **{name: known[name](text) for name, text in zip(columns, line.split(","), strict=True)}
        )
        for line in lines
    ]
