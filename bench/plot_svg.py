"""Charts as the text of an SVG file: lines over a count, and bars in groups. Used by plots.

They stand on a ground of their own and follow the reader's light or dark scheme, so that they can
be read on any page."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH = 900
LEFT, RIGHT, TOP = 90, 190, 78
LINES_HEIGHT = 480
BOTTOM = 64
BAR, BAR_GAP, GROUP_GAP = 13, 2, 16
BARS_LEFT = 140
BARS_RIGHT = 30

# Told apart by the color-blind too; those of the dark scheme are the lighter ones.
COLORS = ("#0072b2", "#c04d00", "#007a5a", "#a3477f", "#8a6100")
COLORS_IN_THE_DARK = ("#56b4e9", "#f08a4b", "#2fc79a", "#dd9ac0", "#e6b422")


class Spread(NamedTuple):
    lowest: float
    median: float
    highest: float


class Line(NamedTuple):
    name: str
    points: Sequence[tuple[float, Spread]]


class Group(NamedTuple):
    """Bars that belong together, by the name of what each is of."""

    name: str
    bars: dict[str, Spread]


@dataclass(frozen=True, slots=True)
class Axis:
    """From the first mark to the last."""

    title: str
    marks: Sequence[float]
    written: Callable[[float], str]
    is_logarithmic: bool = False

    def share(self, value: float) -> float:
        first, last, at = map(self._scaled, (self.marks[0], self.marks[-1], value))
        return (at - first) / (last - first) if last > first else 0.5

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.is_logarithmic else value


def logarithmic_marks(values: Iterable[float]) -> list[float]:
    """1, 2 and 5 times powers of ten, so many that all values lie between the outermost."""
    known = list(values)
    lowest, highest = min(known), max(known)
    marks = [
        part * 10.0**power
        for power in range(math.floor(math.log10(lowest)) - 1, math.ceil(math.log10(highest)) + 2)
        for part in (1, 2, 5)
    ]
    first = max(number for number, mark in enumerate(marks) if mark <= lowest)
    last = min(number for number, mark in enumerate(marks) if mark >= highest)
    return marks[first : max(last, first + 1) + 1]


def linear_marks(highest: float) -> list[float]:
    """From zero in four to ten round steps to the highest value or beyond."""
    power = 10.0 ** math.floor(math.log10(highest))
    step = next(power * part for part in (0.1, 0.2, 0.5, 1.0) if highest / (power * part) <= 10)
    return [number * step for number in range(math.ceil(highest / step) + 1)]


def line_chart(title: str, subtitle: str, x: Axis, y: Axis, lines: Sequence[Line]) -> str:
    def place(count: float, value: float) -> tuple[float, float]:
        across = LEFT + x.share(count) * (WIDTH - LEFT - RIGHT)
        down = LINES_HEIGHT - BOTTOM - y.share(value) * (LINES_HEIGHT - BOTTOM - TOP)
        return round(across, 1), round(down, 1)

    def drawn() -> Iterator[str]:
        yield from _grid_of_lines(x, y, place)
        for number, line in enumerate(lines):
            yield f'<g class="c{number}">'
            medians = " ".join(
                "{},{}".format(*place(count, spread.median)) for count, spread in line.points
            )
            yield f'<polyline class="line" points="{medians}"/>'
            for count, spread in line.points:
                (across, down), (_, low), (_, high) = (
                    place(count, value) for value in (spread.median, spread.lowest, spread.highest)
                )
                yield f'<path class="spread" d="M{across} {low}V{high}"/>'
                yield f'<circle class="fill" cx="{across}" cy="{down}" r="4"/>'
            yield "</g>"
        yield from _names_beside(lines, place)

    return _page(LINES_HEIGHT, title, subtitle, drawn())


def bar_chart(title: str, subtitle: str, x: Axis, groups: Sequence[Group], pale: str) -> str:
    """Bars lie, one below the other; `x` is their length. Those of the name `pale` have no color:
    they are what the others are held against."""
    names = list(dict.fromkeys(name for group in groups for name in group.bars))
    colored = [name for name in names if name != pale]
    colors = {name: f"c{number}" for number, name in enumerate(colored)} | {pale: "no-color"}
    rows = sum(len(group.bars) for group in groups)
    top = TOP + 26
    bottom = top + rows * (BAR + BAR_GAP) + len(groups) * GROUP_GAP

    def across(value: float) -> float:
        return round(BARS_LEFT + x.share(value) * (WIDTH - BARS_LEFT - BARS_RIGHT), 1)

    def drawn() -> Iterator[str]:
        yield from _names_above(names, colors)
        for mark in x.marks:
            at = across(mark)
            yield f'<path class="grid" d="M{at} {top}V{bottom}"/>'
            yield _text(at, bottom + 18, x.written(mark), anchor="middle")
        middle = (BARS_LEFT + WIDTH - BARS_RIGHT) / 2
        yield _text(middle, bottom + 42, x.title, anchor="middle")
        down = top + GROUP_GAP / 2
        for group in groups:
            height = len(group.bars) * (BAR + BAR_GAP)
            yield _text(BARS_LEFT - 10, down + height / 2 + 4, group.name, anchor="end")
            for name, spread in group.bars.items():
                yield from _bar(colors[name], spread, across, down, x.written)
                down += BAR + BAR_GAP
            down += GROUP_GAP
        yield f'<path class="axis" d="M{BARS_LEFT} {top}V{bottom}"/>'

    return _page(round(bottom + BOTTOM), title, subtitle, drawn())


def _bar(
    color: str,
    spread: Spread,
    across: Callable[[float], float],
    down: float,
    written: Callable[[float], str],
) -> Iterator[str]:
    begin, end, middle = across(0.0), across(spread.median), down + BAR / 2
    low, high = across(spread.lowest), across(spread.highest)
    yield f'<g class="{color}">'
    width = round(end - begin, 1)
    yield f'<rect class="fill" x="{begin}" y="{down}" width="{width}" height="{BAR}"/>'
    yield "</g>"
    yield f'<path class="whisker" d="M{low} {middle}H{high}"/>'
    yield _text(max(end, high) + 6, middle + 4, written(spread.median), size=11)


def _grid_of_lines(
    x: Axis, y: Axis, place: Callable[[float, float], tuple[float, float]]
) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, LINES_HEIGHT - BOTTOM
    for mark in y.marks:
        _, down = place(x.marks[0], mark)
        yield f'<path class="grid" d="M{LEFT} {down}H{right}"/>'
        yield _text(LEFT - 8, down + 4, y.written(mark), anchor="end")
    for mark in x.marks:
        across, _ = place(mark, y.marks[0])
        yield f'<path class="axis" d="M{across} {bottom}v5"/>'
        yield _text(across, bottom + 20, x.written(mark), anchor="middle")
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    yield _text((LEFT + right) / 2, bottom + 46, x.title, anchor="middle")
    middle = (TOP + bottom) / 2
    yield (
        f'<text x="20" y="{middle}" text-anchor="middle" transform="rotate(-90 20 {middle})">'
        f"{escape(y.title)}</text>"
    )


def _names_beside(
    lines: Sequence[Line], place: Callable[[float, float], tuple[float, float]]
) -> Iterator[str]:
    """Each line's name where it ends, moved down as far as the name above it takes."""
    ends = [(place(*_last_median(line))[1], number) for number, line in enumerate(lines)]
    free_from = 0.0
    for down, number in sorted(ends):
        at = max(down, free_from)
        free_from = at + 20
        across = WIDTH - RIGHT + 14
        yield f'<g class="c{number}"><path class="line" d="M{across} {at}h18"/></g>'
        yield _text(across + 26, at + 4, lines[number].name)


def _last_median(line: Line) -> tuple[float, float]:
    count, spread = line.points[-1]
    return count, spread.median


def _names_above(names: Sequence[str], colors: Mapping[str, str]) -> Iterator[str]:
    across = float(BARS_LEFT)
    for name in names:
        yield f'<g class="{colors[name]}"><rect class="fill" x="{across}" y="{TOP - 9}" '
        yield f'width="{BAR}" height="{BAR}"/></g>'
        yield _text(across + BAR + 7, TOP + 2, name)
        across += BAR + 7 + 7.5 * len(name) + 24


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 13) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
    )


def _page(height: int, title: str, subtitle: str, parts: Iterable[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="13" '
            f'role="img" aria-label="{escape(title)}">',
            _style(),
            f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
            _text(20, 30, title, size=17),
            f'<g class="pale">{_text(20, 51, subtitle)}</g>',
            *parts,
            "</svg>",
            "",
        ]
    )


def _style() -> str:
    light = _scheme("#ffffff", "#1f2328", "#d1d9e0", "#59636e", COLORS)
    dark = _scheme("#0d1117", "#e6edf3", "#30363d", "#9198a1", COLORS_IN_THE_DARK)
    return (
        f"<style>:root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        ".ground{fill:var(--ground)}text{fill:var(--ink)}.pale text{fill:var(--pale)}"
        ".grid{stroke:var(--grid);fill:none}.axis,.whisker{stroke:var(--ink);fill:none}"
        ".line{stroke:var(--own);stroke-width:2;fill:none}.fill{fill:var(--own)}"
        ".spread{stroke:var(--own);stroke-width:2;stroke-opacity:.5;fill:none}"
        + "".join(f".c{number}{{--own:var(--c{number})}}" for number in range(len(COLORS)))
        + ".no-color{--own:#8c959f}</style>"
    )


def _scheme(ground: str, ink: str, grid: str, pale: str, colors: Sequence[str]) -> str:
    own = "".join(f";--c{number}:{color}" for number, color in enumerate(colors))
    return f"--ground:{ground};--ink:{ink};--grid:{grid};--pale:{pale}{own}"
