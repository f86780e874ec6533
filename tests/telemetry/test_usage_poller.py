"""The poller of usage: what it publishes and says while metrics-server comes and goes."""

import asyncio
import io
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import pytest

from lowtide.cluster.reading import Reading
from lowtide.logs import LineHandler, TextFormatter
from lowtide.readings.usage import Allocatable, NoUsage, UsageRequest, UsageSample
from lowtide.telemetry.usage_poller import UsagePoller
from lowtide.testing import ManualClock

Result = TypeVar("Result")

ABSENT = NoUsage("metrics-server is not installed")
FAILED = (
    'W "metrics-server gives no usage; earlier readings count until they are stale, '
    'and NodeUsage has no opinion without any" '
    'err="metrics-server is not installed" staleAfterSeconds=300'
)


class Bench:
    """A poller, the metrics-server it asks, and what it published."""

    def __init__(self) -> None:
        self.clock = ManualClock(1000.0)
        self.used: dict[str, float] | NoUsage = {"a": 5.0, "b": 7.0}
        self.takes_seconds = 0.0
        self.ahead_seconds = 0.0  # its clock of ours
        self.published: list[Reading] = []
        self.slept: list[float] = []
        self.made_off_thread: list[object] = []
        self.nodes = ["a", "b"]
        self.poller = UsagePoller(
            request=UsageRequest(every_seconds=15.0, stale_after_seconds=300.0),
            fetch=self.fetch,
            allocatable=lambda: dict.fromkeys(self.nodes, Allocatable(4000.0, 1e9)),
            publish=self.published.append,
            clock=self.clock,
            sleep=self.sleep,
            off_thread=self.off_thread,
        )

    async def off_thread(self, work: Callable[[], Result], /) -> Result:
        result = work()
        self.made_off_thread.append(result)
        return result

    async def fetch(self) -> Mapping[str, UsageSample] | NoUsage:
        self.clock.advance(self.takes_seconds)
        if isinstance(self.used, NoUsage):
            return self.used
        at = self.clock.now + self.ahead_seconds
        return {name: UsageSample(cpu, at=at) for name, cpu in self.used.items()}

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == 3:
            raise asyncio.CancelledError
        self.clock.advance(seconds)

    def cpu(self) -> list[dict[str, float | None]]:
        """By node, of each reading; None where it is not known."""
        return [
            {
                name: None if math.isnan(cpu) else cpu
                for name, cpu in zip(each.names, each.columns["cpu_milli"].tolist(), strict=True)
            }
            for each in self.published
        ]


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = LineHandler(stream)
    handler.setFormatter(TextFormatter(clock=lambda: 0.0, pid=1))
    logger = logging.getLogger("telemetry")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(before)


def lines(stream: io.StringIO) -> list[str]:
    return [f"{line[0]} {line.partition('] ')[2]}" for line in stream.getvalue().splitlines()]


async def test_what_is_published(bench: Bench, log_lines: io.StringIO) -> None:
    assert not bench.poller.first_result.is_set()
    await bench.poller.poll()
    assert bench.poller.first_result.is_set()
    assert bench.cpu() == [{"a": 5, "b": 7}]
    assert (bench.published[0].sampled_at, bench.poller.polls) == (1000.0, {"success": 1})
    # The reading, and the nodes without a usage.
    assert bench.made_off_thread == [bench.published[0], ()]
    assert lines(log_lines) == []


@pytest.mark.parametrize(
    ("takes_seconds", "want"),
    [
        pytest.param(0.0, [15.0, 15.0, 15.0], id="polls at the interval"),
        pytest.param(4.0, [11.0, 11.0, 11.0], id="sleeps for what the poll left of it"),
        pytest.param(20.0, [0.0, 0.0, 0.0], id="polls again at once when it is late"),
    ],
)
async def test_run(bench: Bench, takes_seconds: float, want: list[float]) -> None:
    bench.takes_seconds = takes_seconds
    with pytest.raises(asyncio.CancelledError):
        await bench.poller.run()
    assert (bench.slept, len(bench.published)) == (want, 3)


async def test_what_is_known_ages_and_failing_is_said_once(
    bench: Bench, log_lines: io.StringIO
) -> None:
    await bench.poller.poll()
    bench.used = ABSENT
    for seconds in (100, 200, 1):
        bench.clock.advance(seconds)
        await bench.poller.poll()
    bench.used = {"a": 6.0, "b": 8.0}
    await bench.poller.poll()
    assert bench.cpu() == [
        {"a": 5, "b": 7},
        {"a": 5, "b": 7},
        {"a": 5, "b": 7},  # 300 s
        {"a": None, "b": None},  # 301 s
        {"a": 6, "b": 8},
    ]
    assert [each.sampled_at for each in bench.published] == [1000, 1000, 1000, 1000, 1301]
    assert lines(log_lines) == [FAILED, 'I "metrics-server answers" failedForSeconds=201']
    assert bench.poller.polls == {"success": 2, "failure": 3}


async def test_a_clock_ahead_of_ours_does_not_keep_what_is_known_for_longer(bench: Bench) -> None:
    bench.ahead_seconds = 1e9
    await bench.poller.poll()
    bench.used = ABSENT
    for seconds in (300, 1):
        bench.clock.advance(seconds)
        await bench.poller.poll()
    assert bench.cpu() == [{"a": 5, "b": 7}, {"a": 5, "b": 7}, {"a": None, "b": None}]
    assert [each.sampled_at for each in bench.published] == [1000, 1000, 1000]


async def test_each_outage_has_its_own_two_lines(bench: Bench, log_lines: io.StringIO) -> None:
    for used in (ABSENT, {"a": 1.0, "b": 1.0}, ABSENT, ABSENT, {"a": 1.0, "b": 1.0}):
        bench.used = used
        await bench.poller.poll()
    assert [line[:24] for line in lines(log_lines)] == [FAILED[:24], 'I "metrics-server answer'] * 2


async def test_where_metrics_server_is_absent_nothing_is_known(
    bench: Bench, log_lines: io.StringIO
) -> None:
    bench.used = ABSENT
    await bench.poller.poll()
    await bench.poller.poll()
    assert bench.poller.first_result.is_set()
    assert bench.cpu() == [{}, {}]
    assert lines(log_lines) == [FAILED]


async def test_nodes_without_usage_are_named_when_they_change(
    bench: Bench, log_lines: io.StringIO
) -> None:
    bench.used = {"b": 1.0}
    await bench.poller.poll()
    await bench.poller.poll()
    bench.nodes = [*(f"n{number}" for number in range(7)), "b"]
    await bench.poller.poll()
    bench.nodes = ["b"]
    await bench.poller.poll()
    said = 'W "Nodes without a usage; they count as average"'
    assert lines(log_lines) == [
        f'{said} unknown=1 nodes=["a"] of=2',
        f'{said} unknown=7 nodes=["n0","n1","n2","n3","n4"] of=8',
        'I "metrics-server knows the usage of every node" nodes=1',
    ]
