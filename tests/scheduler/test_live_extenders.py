"""The live driver carries questions to extenders, and the machine always gets an answer."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry
from tests.scheduler.conftest import (
    OUTCOME_BOUND,
    Happenings,
    HeldBinder,
    RecordingWrites,
    all_listed,
    default_plugins,
)

from lowtide.config.types import Extender
from lowtide.framework.plugin import BindOutcome, Pod
from lowtide.objects.events import Added
from lowtide.scheduler.extending import Answer, Filtered, Priorities, Question
from lowtide.scheduler.live import Live
from lowtide.scheduler.machine import Machine
from lowtide.scheduler.metrics import SchedulerMetrics
from lowtide.testing import ManualClock, make_node, make_pod, make_profile

FILTERS = Extender(url_prefix="http://e", filter_verb="f")


class FakeExtenders:
    """Answers each question with what comes next, or raises it; after that, never."""

    def __init__(self, *answers: Answer | Exception, binds: BindOutcome | None = None) -> None:
        self.asked: list[Question] = []
        self.was_asked = asyncio.Event()
        self.bound: list[tuple[str, str]] = []
        self._answers = list(answers)
        self._binds = binds

    async def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        self.was_asked.set()
        if not self._answers:
            await asyncio.Event().wait()  # for ever
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome | None:
        self.bound.append((pod.name, node_name))
        return self._binds


class Bench:
    def __init__(self, extenders: FakeExtenders) -> None:
        self.happenings = Happenings()
        self.binder = HeldBinder(self.happenings, OUTCOME_BOUND)
        self.writes = RecordingWrites(self.happenings)
        self.live = Live(
            Machine({"lowtide": make_profile(default_plugins(self.binder))}, extenders=(FILTERS,)),
            writes=self.writes,
            metrics=SchedulerMetrics(CollectorRegistry()),
            clock=ManualClock(1000.0),
            may_schedule=lambda: True,
            look_up=self.binder.look_up,
            extenders=extenders,
        )
        for event in (Added(make_node("a")), Added(make_node("b")), *all_listed()):
            self.live.handle(event)
        self.live.handle(Added(make_pod("web")))

    async def run_until_told(self) -> str:
        """Of what becomes of the pod."""
        running = asyncio.create_task(self.live.run())
        try:
            await self.happenings.until(lambda: bool(self.writes.notes))
            return self.writes.notes[0]
        finally:
            await self.live.drain(5.0)
            await running


async def test_a_question_is_carried_and_the_plugins_bind() -> None:
    extenders = FakeExtenders(Filtered(("b",), {"a": "no"}))
    bench = Bench(extenders)
    assert await bench.run_until_told() == "Successfully assigned default/web to b"
    assert (bench.binder.started, extenders.bound) == (["web"], [("web", "b")])


async def test_an_extender_that_binds_goes_before_the_plugins() -> None:
    bench = Bench(FakeExtenders(Filtered(("b",), {"a": "no"}), binds=BindOutcome()))
    assert await bench.run_until_told() == "Successfully assigned default/web to b"
    assert bench.binder.started == []


async def test_whatever_goes_wrong_in_asking_fails_the_attempt() -> None:
    bench = Bench(FakeExtenders(RuntimeError("out of order")))
    assert await bench.run_until_told() == "out of order"
    assert bench.live.machine.queue.lengths()["backoff"] == 1


async def test_what_cannot_be_handled_ends_the_run() -> None:
    bench = Bench(FakeExtenders(Priorities(())))  # no answer to what was asked
    with pytest.raises(TypeError, match="it must be a Filtered"):
        async with asyncio.timeout(10):
            await bench.live.run()


async def test_drain_waits_for_no_answer_and_tells_what_was_held_for_it() -> None:
    extenders = FakeExtenders(Filtered(("b",), {"a": "no"}))
    bench = Bench(extenders)
    bench.binder.outcome = None
    running = asyncio.create_task(bench.live.run())
    await bench.happenings.until(lambda: bench.binder.started == ["web"])
    extenders.was_asked.clear()
    bench.live.handle(Added(make_pod("next")))
    await asyncio.wait_for(extenders.was_asked.wait(), 10)
    bench.binder.end("web")
    await asyncio.wait_for(asyncio.gather(bench.live.drain(60), running), 10)
    assert bench.writes.notes == ["Successfully assigned default/web to b"]
    assert (bench.writes.conditions, bench.binder.started) == ([], ["web"])


async def test_what_drain_cuts_is_not_told_of_whoever_ends_first() -> None:
    extenders = FakeExtenders(Filtered(("b",), {"a": "no"}))
    bench = Bench(extenders)
    bench.writes.may_bind.clear()
    running = asyncio.create_task(bench.live.run())
    await bench.happenings.until(lambda: bench.writes.asked == ["web"])
    extenders.was_asked.clear()
    bench.live.handle(Added(make_pod("next")))
    await asyncio.wait_for(extenders.was_asked.wait(), 10)
    await asyncio.wait_for(asyncio.gather(bench.live.drain(60), running), 10)
    assert (bench.writes.notes, bench.writes.conditions) == ([], [])
    assert bench.live.machine.binding_count == 0
