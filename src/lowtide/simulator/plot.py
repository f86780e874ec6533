"""A chart of the busiest link over time, one line per configuration, as the text of an SVG file.

`lowtide simulate --plot` writes it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

import numpy as np

from lowtide.cluster.columns import FloatArray
from lowtide.simulator.report import RunResult

WIDTH: Final = 900
HEIGHT: Final = 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 190, 50, 60
_POINTS: Final = 300
_COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_UNITS: Final = ((3600, "h"), (60, "min"), (1, "s"))
Course = Sequence[tuple[float, float]]  # (seconds, utilisation of the busiest link)

# Beyond this ratio of highest to lowest the axis counts in powers of ten.
_WIDE: Final = 10.0
_LOWEST: Final = 1e-3
_UTILIZATION: Final = "utilisation of the busiest link"


def chart(runs_by_name: Mapping[str, Sequence[RunResult]], title: str) -> str:
    """Each line is the median over the draws of the busiest link's utilisation."""
    runs = [run for of_one in runs_by_name.values() for run in of_one]
    ends_at = max(run.course[-1][0] for run in runs)
    moments = np.linspace(0.0, ends_at, _POINTS)
    lines = {
        name: np.median([_at(run.course, moments) for run in of_one], axis=0)
        for name, of_one in runs_by_name.items()
    }
    reference = float(np.median([run.reference for run in runs]))
    return _drawn(lines, moments, title, reference)


def chart_of_courses(
    courses_by_name: Mapping[str, Course], title: str, measure: str = _UTILIZATION
) -> str:
    """The same of courses that are known from a first moment of each on, such as readings; of
    another `measure` than utilisation where that is said."""
    known = {name: course for name, course in courses_by_name.items() if course}
    began_at = min(course[0][0] for course in known.values())
    shifted = {
        name: [(0.0, course[0][1]), *((at - began_at, share) for at, share in course)]
        for name, course in known.items()
    }
    moments = np.linspace(0.0, max(course[-1][0] for course in shifted.values()), _POINTS)
    lines = {name: _at(course, moments) for name, course in shifted.items()}
    return _drawn(lines, moments, title, None, measure)


def _drawn(
    lines: Mapping[str, FloatArray],
    moments: FloatArray,
    title: str,
    reference: float | None,
    measure: str = _UTILIZATION,
) -> str:
    compared = [] if reference is None else [np.array([reference])]
    axes = _Axes.fitted_to([*lines.values(), *compared], float(moments[-1]))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            f'<text x="{_LEFT}" y="28" font-size="16">{escape(title)}</text>',
            *_grid(axes, measure),
            *([] if reference is None else _reference(axes, reference)),
            *(
                part
                for number, (name, values) in enumerate(lines.items())
                for part in _line(axes, moments, values, name, number)
            ),
            "</svg>",
            "",
        ]
    )


def _at(course: Course, moments: FloatArray) -> FloatArray:
    """The utilisation stays what it is until the next change."""
    times, values = (np.array(column) for column in zip(*course, strict=True))
    found: FloatArray = values[np.searchsorted(times, moments, side="right") - 1]
    return found


@dataclass(frozen=True, slots=True)
class _Axes:
    ends_at: float
    lowest: float
    highest: float
    is_logarithmic: bool

    @classmethod
    def fitted_to(cls, lines: Sequence[FloatArray], ends_at: float) -> "_Axes":
        highest = max(float(line.max()) for line in lines) or 1.0
        lowest = max(min(float(line.min()) for line in lines), highest * _LOWEST)
        if highest / lowest <= _WIDE:
            step = _round_step(highest)
            return cls(ends_at, 0.0, math.ceil(highest / step) * step, is_logarithmic=False)
        floor, ceiling = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
        return cls(ends_at, 10.0**floor, 10.0**ceiling, is_logarithmic=True)

    def x(self, seconds: float) -> float:
        share = seconds / self.ends_at if self.ends_at > 0 else 0.0
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, utilization: float) -> float:
        if self.is_logarithmic:
            span = math.log10(self.highest / self.lowest)
            share = math.log10(max(utilization, self.lowest) / self.lowest) / span
        else:
            share = utilization / self.highest
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    def utilization_marks(self) -> list[float]:
        if self.is_logarithmic:
            powers = range(round(math.log10(self.lowest)), round(math.log10(self.highest)) + 1)
            return [10.0**power for power in powers]
        step = _round_step(self.highest)
        return [number * step for number in range(round(self.highest / step) + 1)]

    def time_marks(self) -> list[tuple[float, str]]:
        """Moments and how they are written, all in one unit."""
        steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
        step = next((each for each in steps if self.ends_at / each <= 8), 86400)
        length, unit = next(each for each in _UNITS if step >= each[0])
        moments = range(0, math.floor(self.ends_at) + 1, step)
        return [(float(moment), f"{moment / length:g} {unit}") for moment in moments]


def _round_step(highest: float) -> float:
    """A step of 1, 2 or 5 times a power of ten that makes four to ten of them."""
    power = 10.0 ** math.floor(math.log10(highest))
    return next(power * part for part in (0.1, 0.2, 0.5, 1.0) if highest / (power * part) <= 10)


def _grid(axes: _Axes, measure: str) -> list[str]:
    left, right, bottom = _LEFT, WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts = []
    for mark in axes.utilization_marks():
        y = axes.y(mark)
        parts.append(f'<line x1="{left}" y1="{y}" x2="{right}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{mark:.6g}</text>')
    for moment, text in axes.time_marks():
        x = axes.x(moment)
        parts.append(f'<line x1="{x}" y1="{bottom}" x2="{x}" y2="{bottom + 5}" stroke="#333"/>')
        parts.append(f'<text x="{x}" y="{bottom + 20}" text-anchor="middle">{text}</text>')
    middle = (_TOP + bottom) / 2
    return [
        *parts,
        f'<path d="M{left} {_TOP}V{bottom}H{right}" fill="none" stroke="#333"/>',
        f'<text x="{(left + right) / 2}" y="{bottom + 42}" text-anchor="middle">time</text>',
        f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">'
        f"{escape(measure)}</text>",
    ]


def _reference(axes: _Axes, reference: float) -> list[str]:
    right, y = WIDTH - _RIGHT, axes.y(reference)
    return [
        f'<line x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}" stroke="#777" stroke-dasharray="6 4"/>',
        *_legend(-1, "reference", '#777" stroke-dasharray="6 4'),
    ]


def _line(
    axes: _Axes, moments: FloatArray, values: FloatArray, name: str, number: int
) -> list[str]:
    points = " ".join(
        f"{axes.x(moment)},{axes.y(value)}"
        for moment, value in zip(moments.tolist(), values.tolist(), strict=True)
    )
    color = _COLORS[number % len(_COLORS)]
    return [
        f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>',
        *_legend(number, name, color),
    ]


def _legend(number: int, name: str, stroke: str) -> list[str]:
    x, y = WIDTH - _RIGHT + 16, _TOP + 34 + 22 * number
    return [
        f'<line x1="{x}" y1="{y - 4}" x2="{x + 24}" y2="{y - 4}" stroke="{stroke}" '
        'stroke-width="2"/>',
        f'<text x="{x + 32}" y="{y}">{escape(name)}</text>',
    ]
