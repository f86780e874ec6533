"""A table of how soon schedulers were ready, beside what was aimed at; for `make bench`."""

import statistics
from collections.abc import Sequence

from rich.table import Table

from ready import ReadyResult
from report_lines import Compared, Report, spread

READY_SECONDS = 5.0
MEMORY_MB = 400.0


def ready_report(results: Sequence[ReadyResult]) -> Report:
    table = Table()
    for heading in ("start at", "pods", "round"):
        table.add_column(heading)
    for heading in ("/readyz s", "first binding s", "CPU s", "memory MB", "at its peak"):
        table.add_column(heading, justify="right")
    for each in results:
        table.add_row(
            *(f"{each.nodes} nodes", str(each.pods), str(each.round)),
            f"{each.ready_seconds:.1f}",
            f"{each.first_binding_seconds:.1f}",
            f"{each.cpu_seconds:.1f}",
            f"{each.rss_mb:.0f}",
            f"{each.peak_rss_mb:.0f}",
        )
    yield table
    one = results[0]
    yield (
        f"ready: the pods take {1000 * one.list_mb / one.pods:.1f} kB each in the API server's "
        f"list; to create them all took {one.create_seconds:.0f} s"
    )
    seconds = [each.first_binding_seconds for each in results]
    memory_mb = [each.rss_mb for each in results]
    yield _line("seconds from start to the first binding", seconds, READY_SECONDS, digits=1)
    yield _line("MB of resident memory then", memory_mb, MEMORY_MB, digits=0)


def _line(what: str, figures: Sequence[float], goal: float, *, digits: int) -> Compared:
    is_met = statistics.median(figures) <= goal
    return Compared(
        f"ready: {spread(figures, digits)} {what}", f"at most {goal:g} in the median", is_met
    )
