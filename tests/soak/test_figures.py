"""What a soak makes of its samples, and what of it is a fault."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from soak.figures import MIB, Counts, Figures, counts_of, memory_of, warm_up_of
from soak.sampling import Sample, read_samples, write_samples

COUNTS = Counts(descriptors=40, tasks=30, threads=8)
EVERY_SECONDS = 5.0


def course(seconds: float, mib: Callable[[float], float], tasks: int = 30) -> list[Sample]:
    return [
        Sample(
            seconds=number * EVERY_SECONDS,
            memory_bytes=round(mib(number * EVERY_SECONDS) * MIB),
            descriptors=40,
            threads=8,
            tasks=tasks,
            bindings=0,
            nodes=200,
            pods=2000,
            changes=number,
            cpu_seconds=float(number),
        )
        for number in range(int(seconds / EVERY_SECONDS))
    ]


def figures(samples: list[Sample], seconds: float = 3600.0, **others: object) -> Figures:
    first, last = counts_of(samples, seconds)
    good = Figures(
        seconds=seconds,
        changes_per_second=50.0,
        nodes_came=9,
        pods_came=9,
        samples=len(samples),
        memory=memory_of(samples, seconds),
        at_rest_before=COUNTS,
        after_warm_up=first,
        at_end=last,
        at_rest_after=COUNTS,
        comparisons=7,
        differences=0,
        unbound_pods=0,
        cpu_percent=8.0,
    )
    return replace(good, **others)  # type: ignore[arg-type]


FLAT = course(3600.0, lambda at: 130.0)


@pytest.mark.parametrize(
    ("mib", "growth_percent", "mib_per_hour", "fault_count"),
    [
        pytest.param(lambda at: 130.0, 0.0, 0.0, 0, id="what is flat has not grown"),
        pytest.param(
            lambda at: 100.0 if at < 600 else 200.0, 0.0, 0.0, 0, id="the warm-up does not count"
        ),
        pytest.param(
            lambda at: 100.0 + at / 3600, 0.75, 1.0, 0, id="a little is no fault, and is told"
        ),
        pytest.param(lambda at: 100.0 + at / 360, 7.35, 10.0, 1, id="a tenth an hour is too much"),
        pytest.param(
            lambda at: 130.0 + 60.0 * (at % 300 == 0), 0.0, 0.0, 0, id="peaks are not growth"
        ),
    ],
)
def test_growth(
    mib: Callable[[float], float], growth_percent: float, mib_per_hour: float, fault_count: int
) -> None:
    found = figures(course(3600.0, mib))
    assert found.memory.growth_percent == pytest.approx(growth_percent, abs=0.01)
    assert found.memory.mib_per_hour == pytest.approx(mib_per_hour, abs=1.0)
    assert len(found.faults) == fault_count, found.faults


@pytest.mark.parametrize(
    ("others", "fault"),
    [
        pytest.param({}, [], id="all is well"),
        pytest.param(
            {"at_rest_after": replace(COUNTS, descriptors=49)},
            ["at rest there were 40 descriptors before, and 49 after"],
            id="descriptors at rest",
        ),
        pytest.param({"at_rest_after": replace(COUNTS, descriptors=48)}, [], id="kept connections"),
        pytest.param(
            {"at_end": replace(COUNTS, tasks=35)},
            ["amid the churn there were 30 tasks before, and 35 after"],
            id="tasks amid the churn",
        ),
        pytest.param(
            {"at_rest_after": replace(COUNTS, threads=11)},
            ["at rest there were 8 threads before, and 11 after"],
            id="threads",
        ),
        pytest.param(
            {"differences": 2},
            ["2 times what was believed was not so; see the log"],
            id="what is believed is not so",
        ),
        pytest.param(
            {"comparisons": 0},
            ["what is believed was never compared with the API server"],
            id="nobody looked",
        ),
        pytest.param(
            {"unbound_pods": 3},
            ["3 pods that fit were not bound in the end"],
            id="pods are left",
        ),
    ],
)
def test_faults(others: dict[str, object], fault: list[str]) -> None:
    assert figures(FLAT, **others).faults == fault


def test_counts_are_those_after_the_warm_up_and_in_the_end() -> None:
    samples = [
        replace(each, tasks=99 if each.seconds < 600 else 30 + int(each.seconds >= 3240) * 7)
        for each in FLAT
    ]
    first, last = counts_of(samples, 3600.0)
    assert (first.tasks, last.tasks) == (30, 37)


@pytest.mark.parametrize(
    ("seconds", "warm_up"),
    [
        pytest.param(3600.0, 600.0, id="of an hour ten minutes"),
        pytest.param(7200.0, 600.0, id="nor of more"),
        pytest.param(60.0, 10.0, id="of less a sixth"),
    ],
)
def test_warm_up(seconds: float, warm_up: float) -> None:
    assert warm_up_of(seconds) == warm_up


def test_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_samples(tmp_path / "samples.csv", FLAT[:3])
    assert read_samples(tmp_path / "samples.csv") == FLAT[:3]
