"""The plots of a soak, of its samples: memory; and descriptors, tasks and threads."""

from collections.abc import Sequence
from pathlib import Path

from lowtide.simulator.plot import chart_of_courses
from soak.figures import MIB
from soak.sampling import Sample


def write_plots(folder: Path, samples: Sequence[Sample]) -> None:
    memory = [(each.seconds, each.memory_bytes / MIB) for each in samples]
    counted = {
        "descriptors": [(each.seconds, float(each.descriptors)) for each in samples],
        "tasks": [(each.seconds, float(each.tasks)) for each in samples],
        "threads": [(each.seconds, float(each.threads)) for each in samples],
    }
    title = "Memory while nodes and pods come and go"
    (folder / "memory.svg").write_text(
        chart_of_courses({"memory": memory}, title, "resident memory in MiB")
    )
    title = "Descriptors, tasks and threads while nodes and pods come and go"
    (folder / "counts.svg").write_text(chart_of_courses(counted, title, "number"))
