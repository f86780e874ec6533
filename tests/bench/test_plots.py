"""The pictures that are drawn of what `make bench` found."""

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from decide_report import KINDS as DECIDED_KINDS
from drain import TURNS
from plot_svg import BARS_LEFT, BARS_RIGHT, LEFT, RIGHT, WIDTH, linear_marks, logarithmic_marks
from plots import KINDS, PLOTS, SCHEDULERS, drain_plot, nodes_plot

SVG = "{http://www.w3.org/2000/svg}"


def test_every_kind_and_scheduler_that_is_measured_has_a_name() -> None:
    assert list(KINDS) == list(DECIDED_KINDS)
    assert sorted(SCHEDULERS) == sorted(TURNS)


@pytest.mark.parametrize("name", PLOTS)
def test_without_rows_there_is_no_picture(name: str) -> None:
    others = [{"bench": "extender/names", "nodes": 5000}, {"bench": "page"}]
    assert PLOTS[name](others) is None


def test_a_line_goes_through_the_medians_and_shows_lowest_and_highest() -> None:
    rows = [
        _decided(nodes=nodes, us_per_pod=us)
        for nodes, found in ((100, (1000, 100, 200)), (10_000, (1000, 1000, 1000)))
        for us in found
    ]
    picture = ElementTree.fromstring(nodes_plot(rows) or "")
    (first, last) = [
        tuple(map(float, one.split(","))) for one in _of(picture, "polyline", "points")
    ]
    assert (first[0], last[0]) == (LEFT, WIDTH - RIGHT)
    # The axis goes from 100 to 1000 µs.
    heights = {
        float(mark.attrib["y"]) - 4: mark.text
        for mark in picture.iter(f"{SVG}text")
        if mark.attrib["text-anchor"] == "end"
    }
    assert (heights[first[1]], heights[last[1]]) == ("200 µs", "1 ms")
    spread = re.findall(r"[\d.]+", _of(picture, "path", "d", cls="spread")[0])
    assert [heights[float(height)] for height in spread[1:]] == ["100 µs", "1 ms"]


def test_a_bar_is_as_long_as_its_median_pods_per_second() -> None:
    rows = [
        _drained("basic", scheduler, pods_per_second)
        for scheduler, pods_per_second in (
            ("lowtide", 700.0),
            ("lowtide", 800.0),
            ("lowtide", 1000.0),
            ("kube-scheduler", 200.0),
            ("none", 900.0),
        )
    ]
    rows.append(_drained("basic", "lowtide", 1.0) | {"nodes": 100, "bench": "drain/basic/100"})
    picture = ElementTree.fromstring(drain_plot(rows) or "")
    lengths = [float(bar.attrib["width"]) for bar in picture.iter(f"{SVG}rect")]
    # The ground, three small ones in the legend, and in the order of the legend the bars.
    raw, ours, theirs = lengths[-3:]
    assert raw / ours == pytest.approx(900 / 800, rel=0.01)
    assert theirs / ours == pytest.approx(200 / 800, rel=0.01)
    assert raw < WIDTH - BARS_LEFT - BARS_RIGHT
    written = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"raw limit", "lowtide", "kube-scheduler", "basic", "900", "800", "200"} < set(written)
    assert "kube-scheduler, all nodes" not in written


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param([3.0, 40.0], [2, 5, 10, 20, 50], id="take all values in"),
        pytest.param([100.0, 1000.0], [100, 200, 500, 1000], id="end at a value that is one"),
        pytest.param([100.0], [100, 200], id="are two where there is one value"),
    ],
)
def test_logarithmic_marks(values: list[float], want: list[float]) -> None:
    assert logarithmic_marks(values) == pytest.approx(want)


@pytest.mark.parametrize(
    ("highest", "want"),
    [
        pytest.param(930.0, [0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000], id="by 100"),
        pytest.param(1200.0, [0, 200, 400, 600, 800, 1000, 1200], id="by 200, and no further"),
    ],
)
def test_linear_marks(highest: float, want: list[float]) -> None:
    assert linear_marks(highest) == pytest.approx(want)


def _decided(*, nodes: int, us_per_pod: float) -> dict[str, Any]:
    return {
        "workload": "growth/nodes",
        "kind": "one-shape",
        "nodes": nodes,
        "us_per_pod": us_per_pod,
    }


def _drained(workload: str, scheduler: str, pods_per_second: float) -> dict[str, Any]:
    return {
        "bench": f"drain/{workload}/5000",
        "workload": workload,
        "nodes": 5000,
        "scheduler": scheduler,
        "pods_per_second": pods_per_second,
    }


def _of(picture: ElementTree.Element, tag: str, attribute: str, *, cls: str = "line") -> list[str]:
    """The parts of that attribute of the first such element."""
    found = next(each for each in picture.iter(f"{SVG}{tag}") if each.attrib["class"] == cls)
    text = found.attrib[attribute]
    return text.split() if attribute == "points" else [text]
