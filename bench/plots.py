"""`make bench-plots`: draws what is in bench/results.json, as pictures for docs/performance.md.

A picture is only written where there are rows for it; the others stay as they are."""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from plot_svg import (
    Axis,
    Group,
    Line,
    Spread,
    bar_chart,
    line_chart,
    linear_marks,
    logarithmic_marks,
)

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
DOCS = HERE.parent / "docs"

Row = Mapping[str, Any]

KINDS = {
    "one-shape": "plain, of one shape",
    "replicaset": "of one ReplicaSet",
    "all-different": "all different",
    "anti-affinity": "anti-affinity by host",
    "affinity": "affinity by zone",
}
SCHEDULERS = {
    "none": "raw limit",
    "lowtide": "lowtide",
    "kube-scheduler": "kube-scheduler",
    "kube-scheduler-all-nodes": "kube-scheduler, all nodes",
}
# Whose names say too little in a picture.
WORKLOADS = {"fair": "basic, fairness on"}
DRAIN_NODES = 5000


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-plots", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="rows of `make bench`")
    parser.add_argument("--into", type=Path, default=DOCS, metavar="FOLDER")
    options = parser.parse_args()
    if not options.results.exists():
        sys.exit(f"bench-plots: there is no {options.results}; `make bench ONLY=growth` writes it")
    rows = json.loads(options.results.read_text())
    for name, draw in PLOTS.items():
        picture = draw(rows)
        if picture is None:
            print(f"{name}: no rows, left as it is")
            continue
        (options.into / name).write_text(picture)
        print(f"{name}: written")


def nodes_plot(rows: Sequence[Row]) -> str | None:
    return _growth_plot(
        [row for row in rows if row.get("workload") == "growth/nodes"],
        count="nodes",
        title="What a decision costs, by nodes",
        subtitle="all plugins, two pods on each node; both axes are logarithmic",
        x_title="nodes",
        is_logarithmic=True,
    )


def pods_plot(rows: Sequence[Row]) -> str | None:
    return _growth_plot(
        [row for row in rows if row.get("workload") == "growth/pods"],
        count="pods_before",
        title="What a decision costs, by pods that are there before",
        subtitle="5000 nodes, all plugins; the upright axis is logarithmic",
        x_title="pods on the 5000 nodes",
    )


def plugins_plot(rows: Sequence[Row]) -> str | None:
    return _growth_plot(
        [row for row in rows if row.get("workload") == "growth/plugins"],
        count="plugins",
        title="What a decision costs, by plugins that judge nodes",
        subtitle="5000 nodes, 10,000 pods; the upright axis is logarithmic",
        x_title="plugins, in the order in which the text has them join",
    )


def drain_plot(rows: Sequence[Row]) -> str | None:
    """Pods/s to the last binding, by workload."""
    found = [
        row
        for row in rows
        if str(row.get("bench", "")).startswith("drain/") and row["nodes"] == DRAIN_NODES
    ]
    if not found:
        return None
    groups = [
        Group(
            WORKLOADS.get(workload, workload),
            _bars([row for row in found if row["workload"] == workload]),
        )
        for workload in dict.fromkeys(row["workload"] for row in found)
    ]
    highest = max(spread.highest for group in groups for spread in group.bars.values())
    return bar_chart(
        "Pods bound per second, from the first binding to the last",
        "5000 nodes; bars and numbers: medians; thin lines: from the lowest round to the highest",
        # A little more, for the number beside the longest bar.
        Axis("pods/s", linear_marks(1.05 * highest), _whole),
        groups,
        pale=SCHEDULERS["none"],
    )


PLOTS: Mapping[str, Callable[[Sequence[Row]], str | None]] = {
    "performance-nodes.svg": nodes_plot,
    "performance-pods.svg": pods_plot,
    "performance-rules.svg": plugins_plot,
    "performance-drains.svg": drain_plot,
}


def _growth_plot(
    rows: Sequence[Row],
    *,
    count: str,
    title: str,
    subtitle: str,
    x_title: str,
    is_logarithmic: bool = False,
) -> str | None:
    if not rows:
        return None
    lines = list(_lines(rows, count))
    values = [value for line in lines for _, spread in line.points for value in spread]
    counts = sorted({row[count] for row in rows})
    return line_chart(
        title,
        f"{subtitle}; medians, upright strokes go from lowest to highest",
        Axis(x_title, counts, _whole, is_logarithmic),
        Axis("CPU per decision", logarithmic_marks(values), _time, is_logarithmic=True),
        lines,
    )


def _lines(rows: Sequence[Row], count: str) -> Iterator[Line]:
    for kind, name in KINDS.items():
        of_kind = [row for row in rows if row["kind"] == kind]
        counts = sorted({row[count] for row in of_kind})
        points = [
            (each, _spread(row["us_per_pod"] for row in of_kind if row[count] == each))
            for each in counts
        ]
        if points:
            yield Line(name, points)


def _bars(rows: Sequence[Row]) -> dict[str, Spread]:
    present = {row["scheduler"] for row in rows}
    return {
        name: _spread(row["pods_per_second"] for row in rows if row["scheduler"] == scheduler)
        for scheduler, name in SCHEDULERS.items()
        if scheduler in present
    }


def _spread(values: Iterator[float]) -> Spread:
    known = list(values)
    return Spread(min(known), statistics.median(known), max(known))


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _time(microseconds: float) -> str:
    if microseconds < 1000:
        return f"{microseconds:g} µs"
    return f"{microseconds / 1000:g} ms"


if __name__ == "__main__":
    main()
