"""Advising: an answer in time, whatever the plugins do."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lowtide.advisor.advice import (
    Asked,
    AskedPreemption,
    FilterAdvice,
    PreemptionAdvice,
    PriorityAdvice,
)
from lowtide.advisor.advising import HUNG_SECONDS, Advising, Listening
from lowtide.advisor.advisor import Advisor
from lowtide.cluster.nodes import Nodes
from lowtide.config.extender_settings import ExtenderSettings
from lowtide.framework.plugin import OneNode, Pod, filter_each
from lowtide.objects.events import Added, Listed, Modified
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.node import Node
from lowtide.objects.quantity import QuantityError
from lowtide.objects.requests import nonzero_requests
from lowtide.scheduler.actions import Decided
from lowtide.testing import ManualClock, make_node, make_pod, make_profile

pytestmark = pytest.mark.timeout(30)

NEW_SIGNATURE = make_pod("new", labels={"new": "signature"})


class Counted:
    def __init__(self) -> None:
        self.neutral: list[tuple[str, str]] = []
        self.errors: list[str] = []

    def neutral_answer(self, verb: str, reason: str) -> None:
        self.neutral.append((verb, reason))

    def plugin_error(self, plugin_name: str) -> None:
        self.errors.append(plugin_name)


class Gate:
    """Judges nothing while it is closed."""

    name = "Gate"

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.is_open.set()
        self.is_asked = threading.Event()

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        self.is_asked.set()
        self.is_open.wait()
        return "node(s) are rejected"


class Raising:
    name = "Raising"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        raise RuntimeError("oops")


class Picky:
    name = "Picky"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        nonzero_requests(pod)
        return None


class Watched(Node, frozen=True):
    """A node that tells when somebody takes it in."""

    is_taken: Any = None

    @property
    def name(self) -> str:
        self.is_taken.set()
        return self.metadata.name


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0)


@asynccontextmanager
async def advising(
    plugin: Any,
    counted: Counted,
    clock: ManualClock | None = None,
    look_seconds: float = 30.0,
    on_answer: Callable[[Decided, float], None] = lambda decided, began_at: None,
    **settings: Any,
) -> AsyncIterator[Advising]:
    """Patient, unless a budget is given: what is slow here may be the machine."""
    profile = make_profile([plugin])
    clock = clock or ManualClock(1000.0)
    budgets = {"names_budget_seconds": 30.0, "nodes_budget_seconds": 30.0}
    advisor = Advisor(
        {"lowtide": profile},
        {"lowtide": ExtenderSettings(**{**budgets, **settings})},
        Listening(counted, clock, on_answer=on_answer),
    )
    running = Advising(
        advisor, counts=counted, clock=clock, wall_clock=clock, look_seconds=look_seconds
    )
    running.start()
    running.handle(Added(make_node("a")))
    running.handle(Listed("Node"))
    running.handle(Listed("Pod"))
    await until(lambda: running.why_not_ready() is None)
    counted.errors.clear()
    try:
        yield running
    finally:
        running.stop()


async def test_what_was_heard_before_counts() -> None:
    counted, gate = Counted(), Gate()
    async with advising(gate, counted) as running:
        advice = await running.filter(Asked(make_pod(), ["a"]))
    assert advice == FilterAdvice(kept=(), unresolvable={"a": "node(s) are rejected"})
    assert counted.neutral == []


async def test_a_plugin_that_hangs_makes_answers_neutral_and_is_told() -> None:
    counted, gate, clock = Counted(), Gate(), ManualClock(1000.0)
    async with advising(gate, counted, clock, names_budget_seconds=0.02) as running:
        gate.is_open.clear()
        asked = Asked(NEW_SIGNATURE, ["a", "b"])
        answers = [await running.filter(asked), await running.prioritize(asked)]
        assert answers == [
            FilterAdvice(kept=None, neutral="slow"),
            PriorityAdvice([0, 0], neutral="slow"),
        ]
        assert counted.neutral == [("filter", "slow"), ("prioritize", "slow")]
        assert running.why_hung() is None
        clock.advance(HUNG_SECONDS)
        assert running.why_hung() == "the plugins have been busy with one thing for 10 s"
        assert running.why_not_ready() is None
        gate.is_open.set()
        await until(lambda: running.why_hung() is None)


async def test_an_answer_that_is_there_counts_also_when_the_loop_was_busy() -> None:
    counted, gate, is_taken = Counted(), Gate(), threading.Event()
    loop = asyncio.get_running_loop()
    async with advising(gate, counted, names_budget_seconds=0.005) as running:
        first = asyncio.create_task(running.filter(Asked(make_pod("first"), ["a"])))
        await asyncio.sleep(0)  # it is asked now
        running.handle(Added(Watched(ObjectMeta(name="b"), is_taken=is_taken)))
        deadline = loop.time() + 0.01
        while not is_taken.is_set() or loop.time() < deadline:
            pass  # the loop does something else meanwhile
        assert (await first).neutral == ""


async def test_what_is_told_is_what_was_handed_out_and_why_the_plugins_had_no_say() -> None:
    told: list[tuple[str, str, str, int]] = []

    def on_answer(decided: Decided, began_at: float) -> None:
        decision = decided.decision
        count = decision.feasible_count
        told.append((decided.asked, decision.pod.name, decided.neutral, count))

    gate = Gate()
    async with advising(gate, Counted(), on_answer=on_answer, names_budget_seconds=0.02) as running:
        gate.is_open.clear()
        await running.filter(Asked(NEW_SIGNATURE, ["a"]))  # begins, and ends too late
        await running.prioritize(Asked(NEW_SIGNATURE, ["a", "b"]))  # does not begin
        gate.is_open.set()
        await running.look(lambda: None)
    async with advising(Ending(), Counted(), on_answer=on_answer) as running:
        await running.filter(Asked(NEW_SIGNATURE, ["a"]))
        await running.filter(Asked(make_pod("web"), ["a"]))
        await running.look(lambda: None)
    assert told == [
        ("filter", "new", "the plugins took longer than 20 ms", 1),
        ("prioritize", "new", "the plugins took longer than 20 ms", 2),
        ("filter", "new", "SystemExit: 3", 1),
        ("filter", "web", "", 1),
    ]


async def test_an_answer_that_cannot_be_kept_is_an_answer_all_the_same() -> None:
    def on_answer(decided: Decided, began_at: float) -> None:
        raise OSError("disk full")

    async with advising(Gate(), Counted(), on_answer=on_answer) as running:
        for _ in range(2):
            assert (await running.filter(Asked(make_pod(), ["a"]))).neutral == ""


async def test_full_nodes_have_a_budget_of_their_own() -> None:
    counted, gate = Counted(), Gate()
    budgets = {"names_budget_seconds": 30.0, "nodes_budget_seconds": 0.02}
    async with advising(gate, counted, **budgets) as running:
        gate.is_open.clear()
        advice = await running.filter(Asked(NEW_SIGNATURE, ["a"], []))
        preempted = await running.preempt(AskedPreemption(NEW_SIGNATURE, {"a": ("x",)}))
        gate.is_open.set()
    assert advice.neutral == "slow"
    assert preempted == PreemptionAdvice(frozenset("a"), neutral="slow")


async def test_what_nobody_waits_for_any_more_is_not_worked_out() -> None:
    counted, gate = Counted(), Gate()
    async with advising(gate, counted, names_budget_seconds=0.02) as running:
        gate.is_open.clear()
        await running.filter(Asked(NEW_SIGNATURE, ["a"]))
        await running.filter(Asked(make_pod("second", labels={"another": "signature"}), ["a"]))
        gate.is_asked.clear()
        is_taken = threading.Event()
        running.handle(Added(Watched(ObjectMeta(name="b"), is_taken=is_taken)))
        gate.is_open.set()
        await until(is_taken.is_set)
        assert not gate.is_asked.is_set()


async def test_a_pod_that_cannot_be_read_is_the_fault_of_who_asks() -> None:
    counted = Counted()
    async with advising(Picky(), counted) as running:
        with pytest.raises(QuantityError, match="'x'"):
            await running.filter(Asked(make_pod(cpu="x"), ["a"]))
    assert counted.neutral == []


async def test_a_plugin_that_fails_is_counted_and_the_answer_is_not_neutral() -> None:
    counted = Counted()
    async with advising(Raising(), counted) as running:
        advice = await running.filter(Asked(make_pod(), ["a"]))
    assert (advice, counted.errors, counted.neutral) == (FilterAdvice(kept=None), ["Raising"], [])


class Ending:
    """Wants to end the process when it is asked about a pod of this signature."""

    name = "Ending"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        if pod.labels:
            raise SystemExit(3)
        return None


async def test_no_plugin_ends_the_thread() -> None:
    counted = Counted()
    async with advising(Ending(), counted) as running:
        answers = [
            await running.filter(Asked(pod, ["a"])) for pod in (NEW_SIGNATURE, make_pod("next"))
        ]
    assert [answer.neutral for answer in answers] == ["failed", ""]
    assert counted.neutral == [("filter", "failed")]


async def test_an_event_that_cannot_be_taken_in_is_left_out() -> None:
    async with advising(Gate(), Counted()) as running:
        running.handle(Added(None))
        running.handle(Modified(Watched(ObjectMeta(name="c"), is_taken=None)))
        advice = await running.filter(Asked(make_pod(), ["a"]))
    assert advice.neutral == ""


async def test_idle_plugins_do_not_hang() -> None:
    clock = ManualClock(1000.0)
    async with advising(Gate(), Counted(), clock) as running:
        await running.filter(Asked(make_pod(), ["a"]))
        clock.advance(2 * HUNG_SECONDS)
        assert running.why_hung() is None


class Malformed:
    name = "Malformed"

    def filter(self, pod: Pod, nodes: Nodes) -> Any:
        return 42


async def test_a_malformed_answer_is_that_plugins_fault_and_nobody_waits_for_it() -> None:
    counted = Counted()
    async with advising(Malformed(), counted) as running:
        advice = await running.filter(Asked(make_pod(), ["a"]))
    assert (advice, counted.errors, counted.neutral) == (FilterAdvice(kept=None), ["Malformed"], [])


async def test_it_is_not_ready_before_everything_is_listed() -> None:
    counted, clock = Counted(), ManualClock(0.0)
    advisor = Advisor(
        {"lowtide": make_profile([Gate()])},
        {"lowtide": ExtenderSettings()},
        Listening(counted, clock),
    )
    running = Advising(advisor, counts=counted, clock=clock, wall_clock=clock)
    assert running.why_not_ready() == "not listed yet: Node, Pod"
    for event in (Added(make_node("a")), Listed("Node"), Listed("Pod")):
        advisor.step(event, 0.0)
    assert running.why_not_ready() == "the plugins are warming up"


async def test_who_looks_is_answered_by_the_thread_that_advises() -> None:
    async with advising(Gate(), Counted()) as running:
        assert await running.look(lambda: threading.current_thread().name) == "advisor"


async def test_what_goes_wrong_in_a_look_is_told_to_who_looks() -> None:
    def look() -> None:
        raise LookupError("no such thing")

    counted = Counted()
    async with advising(Gate(), counted) as running:
        with pytest.raises(LookupError, match="no such thing"):
            await running.look(look)
        assert (await running.filter(Asked(make_pod(), ["a"]))).neutral == ""
    assert counted.neutral == []


async def test_nobody_looks_for_ever_while_a_plugin_hangs() -> None:
    counted, gate = Counted(), Gate()
    looks: list[str] = []
    async with advising(gate, counted, names_budget_seconds=0.02, look_seconds=0.02) as running:
        gate.is_open.clear()
        await running.filter(Asked(NEW_SIGNATURE, ["a"]))
        with pytest.raises(TimeoutError, match=r"the plugins are busy; no answer within 0\.02 s"):
            await running.look(lambda: looks.append("late"))
        gate.is_open.set()
        assert await running.look(lambda: "now") == "now"
    assert looks == []
