"""Pods that wait for what plugins prepare, volumes say: they hold up nobody, and may be
rejected."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.scheduler.conftest import OUTCOME_BOUND, OUTCOME_ERROR
from tests.scheduler.test_live import Bench, assigned, breathe

from lowtide.framework.plugin import BindOutcome, Pod
from lowtide.testing import ManualClock


class WaitsForVolumes:
    """Prepares pods that say so until the test lets them go, or says why it cannot."""

    name = "WaitsForVolumes"

    def __init__(self) -> None:
        self.answers: dict[str, asyncio.Future[str | None]] = {}

    async def pre_bind(self, pod: Pod, node_name: str) -> str | None:
        if pod.labels.get("waits") != "yes":
            return None
        self.answers[pod.name] = asyncio.get_running_loop().create_future()
        return await self.answers[pod.name]


async def test_pods_that_wait_for_volumes_hold_up_nobody() -> None:
    plugin = WaitsForVolumes()
    bench = Bench(plugin, most_bindings=1)
    names = [f"pod-{number}" for number in range(3)]
    async with bench.running():
        bench.add(*names, labels={"waits": "yes"})
        await bench.until(lambda: len(bench.writes.asked) == 3)
        await breathe()
        assert (sorted(plugin.answers), bench.live.is_busy) == (names, False)
        bench.add("plain")
        await bench.until(lambda: bench.writes.notes == [assigned("plain")])
        assert bench.live.machine.binding_count == 3
        for name in names:
            plugin.answers[name].set_result(None)
        await bench.until(lambda: len(bench.writes.notes) == 4)
    assert bench.writes.notes[1:] == [assigned(name) for name in names]


async def test_why_a_pod_cannot_be_prepared_is_told_and_the_pod_tried_again() -> None:
    plugin = WaitsForVolumes()
    bench = Bench(plugin)
    error = 'running PreBind plugin "WaitsForVolumes": no volume was made'
    async with bench.running():
        bench.add("web", labels={"waits": "yes"})
        await bench.until(lambda: bench.writes.asked == ["web"])
        await breathe()
        plugin.answers["web"].set_result("no volume was made")
        await bench.until(lambda: bench.writes.conditions == [("web", error)])
        assert bench.binder.started == []
        bench.clock.advance(2)
        bench.live.wake()
        await bench.until(lambda: len(bench.writes.asked) == 2)
        await breathe()
        plugin.answers["web"].set_result(None)
        await bench.until(lambda: bench.writes.notes == [error, assigned("web")])


class TellsOfBindings:
    """Takes a quarter of a second to tell."""

    name = "TellsOfBindings"

    def __init__(self) -> None:
        self.clock = ManualClock()

    async def post_bind(self, pod: Pod, node_name: str) -> None:
        self.clock.advance(0.25)


@pytest.mark.parametrize(
    ("problem", "outcome", "seconds"),
    [
        pytest.param(
            *(None, OUTCOME_BOUND),
            {"PreBind Success": 2.0, "Bind Success": 0.5, "PostBind Success": 0.25},
            id="of every extension point if the pod is bound",
        ),
        pytest.param(
            "no volume was made",
            OUTCOME_BOUND,
            {"PreBind Error": 2.0},
            id="up to PreBind if a plugin rejects",
        ),
        pytest.param(
            *(None, OUTCOME_ERROR),
            {"PreBind Success": 2.0, "Bind Error": 0.5},
            id="up to Bind if the binding fails",
        ),
    ],
)
async def test_the_time_of_hooks_is_counted(
    problem: str | None, outcome: BindOutcome, seconds: dict[str, float]
) -> None:
    plugin, telling = WaitsForVolumes(), TellsOfBindings()
    bench = Bench(plugin, telling, outcome=None)
    telling.clock = bench.clock
    async with bench.running():
        bench.add("web", labels={"waits": "yes"})
        await bench.until(lambda: bench.writes.asked == ["web"])
        await breathe()
        bench.clock.advance(2.0)
        plugin.answers["web"].set_result(problem)
        await breathe()
        bench.clock.advance(0.5)
        for name in list(bench.binder.under_way):
            bench.binder.end(name, outcome)
        await bench.until(lambda: bool(bench.writes.notes))
    name = "scheduler_framework_extension_point_duration_seconds_sum"
    found = {
        f"{point} {status}": bench.sample(
            name, extension_point=point, status=status, profile="lowtide"
        )
        for point in ("PreBind", "Bind", "PostBind")
        for status in ("Success", "Error")
    }
    assert {each: value for each, value in found.items() if value is not None} == seconds


async def test_drain_does_not_wait_for_volumes_and_tells_nothing_of_their_pods() -> None:
    plugin = WaitsForVolumes()
    bench = Bench(plugin, outcome=None)
    running = asyncio.create_task(bench.live.run())
    bench.add("waiting", labels={"waits": "yes"})
    bench.add("sent")
    await bench.until(lambda: bench.binder.started == ["sent"])
    await breathe()
    draining = asyncio.create_task(bench.live.drain(10))
    await breathe()
    assert (plugin.answers["waiting"].cancelled(), draining.done()) == (True, False)
    assert bench.live.machine.binding_count == 1
    bench.binder.end("sent")
    await asyncio.wait_for(asyncio.gather(draining, running), 10)
    assert bench.binder.started == ["sent"]
    assert (bench.writes.notes, bench.writes.conditions) == ([assigned("sent")], [])
    assert bench.live.machine.queue.lengths()["backoff"] == 1


async def test_drain_does_not_wait_for_a_condition_that_is_written_before_a_binding() -> None:
    bench = Bench()
    bench.writes.may_bind.clear()
    running = asyncio.create_task(bench.live.run())
    bench.add("web")
    await bench.until(lambda: bench.writes.asked == ["web"])
    await asyncio.wait_for(asyncio.gather(bench.live.drain(60), running), 10)
    assert (bench.binder.started, bench.writes.conditions) == ([], [])


class ToldToWait:
    """Binds, and is told by the server each time to send that again in an hour."""

    name = "ToldToWait"

    def __init__(self) -> None:
        self.pause: Callable[[float], Awaitable[None]] = asyncio.sleep
        self.is_sent = asyncio.Event()
        self.is_answered = asyncio.Event()
        self.sent = 0

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        while True:
            self.sent += 1
            self.is_sent.set()
            await self.is_answered.wait()
            await self.pause(3600)


@pytest.mark.parametrize("is_answered_before", [True, False])
async def test_drain_does_not_wait_until_a_binding_may_be_sent_again(
    is_answered_before: bool,
) -> None:
    plugin = ToldToWait()
    bench = Bench(plugin)
    plugin.pause = bench.live.pause
    running = asyncio.create_task(bench.live.run())
    bench.add("web")
    await asyncio.wait_for(plugin.is_sent.wait(), 10)
    if is_answered_before:
        plugin.is_answered.set()
        await breathe()
    draining = asyncio.create_task(bench.live.drain(60))
    await breathe()
    assert draining.done() == is_answered_before
    plugin.is_answered.set()
    await asyncio.wait_for(asyncio.gather(draining, running), 10)
    assert (plugin.sent, bench.writes.notes, bench.writes.conditions) == (1, [], [])


async def test_a_pause_of_others_than_bindings_is_not_cut() -> None:
    bench = Bench()
    pausing = asyncio.create_task(bench.live.pause(0.01))
    await bench.live.drain(10)
    await asyncio.wait_for(pausing, 10)
