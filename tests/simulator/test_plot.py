"""The chart: an SVG that can be read, with its lines where the numbers are."""

import xml.etree.ElementTree as ET

import pytest

from lowtide.simulator.plot import HEIGHT, WIDTH, chart, chart_of_courses
from lowtide.simulator.report import Figures, RunResult

SVG = "{http://www.w3.org/2000/svg}"


def run(*course: tuple[float, float], reference: float = 0.5) -> RunResult:
    return RunResult(Figures(1, 0.0, 1.0, 0.0, 1.0, 1.0, 1, 0), course, reference)


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg).iter(f"{SVG}text")]


def lines(svg: str) -> list[list[tuple[float, float]]]:
    found = []
    for each in ET.fromstring(svg).iter(f"{SVG}polyline"):
        points = [point.split(",") for point in each.attrib["points"].split()]
        found.append([(float(x), float(y)) for x, y in points])
    return found


def test_it_names_what_it_shows() -> None:
    svg = chart({"one": [run((0, 0.2), (100, 0.8))], "<two>": [run((0, 0.4), (100, 1.0))]}, "a & b")
    assert texts(svg) == [
        "a & b",
        *("0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"),
        *("0 s", "15 s", "30 s", "45 s", "60 s", "75 s", "90 s"),
        "time",
        "utilisation of the busiest link",
        "reference",
        "one",
        "<two>",
    ]


def test_it_names_what_was_measured_instead() -> None:
    svg = chart_of_courses({"one": [(5.0, 120.0), (65.0, 125.0)]}, "t", "MiB & more")
    assert "MiB & more" in texts(svg)
    assert "utilisation of the busiest link" not in texts(svg)


def test_lines_are_where_the_numbers_are() -> None:
    """From 0 at the bottom, 60 from the edge, to 1.0 at the top, 50 from the edge."""
    (line,) = lines(chart({"one": [run((0, 0.5), (40, 1.0), (100, 1.0))]}, "t"))
    left, right, top, bottom = 70, WIDTH - 190, 50, HEIGHT - 60
    assert (line[0], line[-1]) == ((left, (top + bottom) / 2), (right, top))
    assert {y for x, y in line if x > left + 0.41 * (right - left)} == {top}


def test_draws_are_shown_by_their_median() -> None:
    runs = [run((0, value), (10, value)) for value in (0.1, 0.4, 1.0)]
    (line,) = lines(
        chart(
            {
                "one": runs,
            },
            "t",
        )
    )
    (alone,) = lines(chart({"one": runs[1:2]}, "t"))
    # Alone its axis ends at 0.5, the reference.
    assert line == alone


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        pytest.param((0.5, 60.0), ["0.1", "1", "10", "100"], id="powers of ten where far apart"),
        pytest.param((0.5, 2.0), ["0", "0.2", "0.4", "0.6"], id="even steps where near"),
    ],
)
def test_the_axis_goes_in(values: tuple[float, float], marks: list[str]) -> None:
    svg = chart({"one": [run((0, values[0]), (60, values[1]))]}, "t")
    assert texts(svg)[1 : 1 + len(marks)] == marks


@pytest.mark.parametrize(
    ("seconds", "marks"),
    [
        pytest.param(0.0, ["0 s"], id="a moment"),
        pytest.param(5.0, ["0 s", "1 s", "2 s", "3 s", "4 s", "5 s"], id="seconds"),
        pytest.param(1800.0, ["0 min", "5 min", "10 min", "15 min"], id="minutes"),
        pytest.param(86_400.0, ["0 h", "4 h", "8 h", "12 h"], id="hours"),
        pytest.param(400_000.0, ["0 h", "24 h", "48 h", "72 h"], id="days"),
    ],
)
def test_time_is_told_in(seconds: float, marks: list[str]) -> None:
    found = texts(chart({"one": [run((0, 1.0), (seconds, 1.0))]}, "t"))
    first = found.index(marks[0], found.index("1"))
    assert found[first : first + len(marks)] == marks
