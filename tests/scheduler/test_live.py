"""The live driver: bindings side by side, outcomes handed back, a clean end, numbers counted."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.scheduler.conftest import (
    OUTCOME_BOUND,
    OUTCOME_ERROR,
    Happenings,
    HeldBinder,
    RecordingWrites,
    all_listed,
    default_plugins,
)
from tests.scheduler.test_machine_permit import Says
from tests.scheduler.test_machine_waiting import BadHint

from lowtide.framework.plugin import Allow, BindOutcome, Nodes, Pod, PodRejection, Reserved, Wait
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.binding_cycle import CONFIRMED_WITHIN_SECONDS
from lowtide.scheduler.events import PermitAnswered
from lowtide.scheduler.live import Live
from lowtide.scheduler.machine import Machine
from lowtide.scheduler.metrics import SchedulerMetrics
from lowtide.testing import ManualClock, make_node, make_pod, make_profile


class CountingClock(ManualClock):
    """Counts how often somebody looks at it."""

    looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return super().__call__()


class Bench:
    """A live driver with everything around it."""

    def __init__(
        self,
        *plugins: Any,
        outcome: BindOutcome | None = OUTCOME_BOUND,
        most_bindings: int = 64,
        binds: bool = True,
        metrics: type[SchedulerMetrics] = SchedulerMetrics,
    ) -> None:
        self.clock = CountingClock(1000.0)
        self.happenings = Happenings()
        self.binder = HeldBinder(self.happenings, outcome)
        self.writes = RecordingWrites(self.happenings)
        self.registry = CollectorRegistry()
        self.decided: list[Decided] = []
        self.began_at: list[float] = []
        self.may_schedule = True
        all_plugins = [
            plugin
            for plugin in [*plugins, *default_plugins(self.binder)]
            if binds or plugin.name != "DefaultBinder"
        ]
        self.live = Live(
            Machine({"lowtide": make_profile(all_plugins)}),
            writes=self.writes,
            metrics=metrics(self.registry),
            clock=self.clock,
            may_schedule=lambda: self.may_schedule,
            look_up=self.binder.look_up,
            most_bindings=most_bindings,
            on_decision=self.note,
        )
        for event in (Added(make_node("node-a")), *all_listed()):
            self.live.handle(event)

    def note(self, decided: Decided, began_at: float) -> None:
        self.decided.append(decided)
        self.began_at.append(began_at)

    def add(self, *names: str, **options: Any) -> None:
        for name in names:
            self.live.handle(Added(make_pod(name, **options)))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.timeout(20):
            running = asyncio.create_task(self.live.run())
            try:
                yield
            finally:
                for name in list(self.binder.under_way):
                    self.binder.end(name)
                await self.live.drain(10)
                await running

    async def until(self, is_so: Callable[[], bool]) -> None:
        await self.happenings.until(is_so)

    def sample(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def attempts(self, result: str) -> float | None:
        return self.sample("scheduler_schedule_attempts_total", result=result, profile="lowtide")


async def breathe() -> None:
    """Lets every task go on that can, a few times over."""
    for _ in range(20):
        await asyncio.sleep(0)


def assigned(name: str) -> str:
    return f"Successfully assigned default/{name} to node-a"


# Bindings.


async def test_a_pod_is_bound_and_its_outcome_handed_back() -> None:
    bench = Bench()
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: bench.writes.notes == [assigned("web")])
        assert bench.live.machine.binding_count == 0
    assert (bench.binder.started, bench.writes.conditions) == (["web"], [])


@pytest.mark.parametrize(
    ("found", "warnings", "told"),
    [
        pytest.param(
            OUTCOME_BOUND, [], [assigned("web")], id="counts on its node if its pod is bound"
        ),
        pytest.param(
            BindOutcome(error="it has no node"),
            ["A binding was answered with success, but not applied"],
            [assigned("web"), "it has no node"],
            id="is tried again if its pod has no node",
        ),
        pytest.param(
            BindOutcome(error="it is gone", is_gone=True),
            [],
            [assigned("web")],
            id="is forgotten if its pod is gone",
        ),
    ],
)
async def test_a_pod_whose_binding_no_watch_confirms(
    caplog: pytest.LogCaptureFixture, found: BindOutcome, warnings: list[str], told: list[str]
) -> None:
    bench = Bench()
    bench.binder.found = found
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: bench.writes.notes == [assigned("web")])
        bench.clock.advance(CONFIRMED_WITHIN_SECONDS)
        bench.live.wake()
        await bench.until(lambda: bench.binder.looked_up == [("web", "node-a")])
        await breathe()
        assert bench.writes.notes == told
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == warnings


async def test_a_look_at_a_binding_that_fails_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.binder.look_up_fails_with = ValueError("no such answer")
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: bench.writes.notes == [assigned("web")])
        bench.clock.advance(CONFIRMED_WITHIN_SECONDS)
        bench.live.wake()
        await bench.until(lambda: bench.binder.looked_up == [("web", "node-a")])
        await breathe()
        assert bench.live.machine.state.assumed_count == 1
        assert bench.live.machine.next_change_at() > bench.clock.now
    assert "Looking up a binding failed" in caplog.messages


async def test_a_standby_looks_up_no_bindings() -> None:
    bench = Bench()
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: bench.writes.notes == [assigned("web")])
        bench.may_schedule = False
        bench.clock.advance(CONFIRMED_WITHIN_SECONDS)
        bench.live.wake()
        await breathe()
    assert bench.binder.looked_up == []


async def test_bindings_run_side_by_side_but_not_more_than_allowed() -> None:
    bench = Bench(outcome=None, most_bindings=3)
    names = [f"pod-{number}" for number in range(5)]
    async with bench.running():
        bench.add(*names)
        await bench.until(lambda: len(bench.binder.under_way) == 3)
        await breathe()
        assert (bench.binder.started, bench.live.is_busy) == (names[:3], True)
        bench.binder.end("pod-1")
        await bench.until(lambda: bench.binder.started == names[:4])
        for name in list(bench.binder.under_way):
            bench.binder.end(name)
        await bench.until(lambda: bench.binder.started == names)
        bench.binder.end("pod-4")
        await bench.until(lambda: len(bench.writes.notes) == 5)
        assert not bench.live.is_busy
    assert bench.binder.most_at_once == 3


GANG = [f"pod-{number}" for number in range(5)]


def gang() -> Says:
    """Lets all of them go with the last."""
    *others, last = GANG
    uids = frozenset(make_pod(name).uid for name in others)
    return Says("Gang", **dict.fromkeys(others, Wait(30)), **{last: Allow(also=uids)})


async def test_pods_that_are_let_go_together_are_bound_a_few_at_once() -> None:
    bench = Bench(gang(), outcome=None, most_bindings=2)
    async with bench.running():
        bench.add(*GANG)
        await bench.until(lambda: len(bench.writes.asked) == len(GANG))
        await breathe()
        assert (len(bench.binder.started), bench.live.is_busy) == (2, True)
        while len(bench.writes.notes) < len(GANG):
            for name in list(bench.binder.under_way):
                bench.binder.end(name)
            await breathe()
        assert not bench.live.is_busy
    assert (sorted(bench.binder.started), bench.binder.most_at_once) == (GANG, 2)


async def test_a_failed_binding_is_told_and_tried_again_when_it_is_time() -> None:
    bench = Bench(outcome=OUTCOME_ERROR)
    error = OUTCOME_ERROR.error or ""
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: bench.writes.conditions == [("web", error)])
        await breathe()
        assert bench.binder.started == ["web"]
        bench.binder.outcome = OUTCOME_BOUND
        bench.clock.advance(2)
        bench.live.wake()
        await bench.until(lambda: bench.writes.notes == [error, assigned("web")])
    assert bench.binder.started == ["web", "web"]


async def test_time_alone_brings_a_pod_back() -> None:
    bench = Bench(outcome=OUTCOME_ERROR)
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: len(bench.writes.conditions) == 1)
        bench.binder.outcome = OUTCOME_BOUND
        bench.clock.advance(1.9375)
        bench.add("other")  # it looks at the clock, and a sixteenth of a second is left
        await bench.until(lambda: assigned("other") in bench.writes.notes)
        assert bench.binder.started == ["web", "other"]
        bench.clock.advance(0.0625)
        await bench.until(lambda: assigned("web") in bench.writes.notes)


async def test_nothing_is_placed_while_it_may_not() -> None:
    bench = Bench()
    bench.may_schedule = False
    async with bench.running():
        bench.add("web")
        await breathe()
        assert bench.binder.started == []
        bench.may_schedule = True
        bench.live.wake()
        await bench.until(lambda: bench.binder.started == ["web"])


async def test_it_rests_while_all_bindings_are_under_way() -> None:
    bench = Bench(outcome=OUTCOME_ERROR, most_bindings=1)
    async with bench.running():
        bench.add("failed")
        await bench.until(lambda: len(bench.writes.conditions) == 1)
        bench.binder.outcome = None
        bench.add("held")
        await bench.until(lambda: "held" in bench.binder.under_way)
        bench.clock.advance(5)  # the failed pod is due, and there is no room to bind it
        bench.live.wake()
        await breathe()
        looks = bench.clock.looks
        for _ in range(10):
            await breathe()
        assert bench.clock.looks == looks
        bench.binder.end("held")
        await bench.until(lambda: bench.binder.started == ["failed", "held", "failed"])


async def test_it_is_busy_while_pods_are_ready_or_bindings_under_way() -> None:
    bench = Bench(outcome=None)
    seen = [bench.live.is_busy]
    bench.add("web")
    seen.append(bench.live.is_busy)
    bench.may_schedule = False
    seen.append(bench.live.is_busy)
    bench.may_schedule = True
    async with bench.running():
        await bench.until(lambda: bench.binder.under_way != {})
        seen.append(bench.live.is_busy)
    assert [*seen, bench.live.is_busy] == [False, True, False, True, False]


async def test_a_binding_waits_until_no_condition_can_come_after_it() -> None:
    bench = Bench()
    bench.writes.may_bind.clear()
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: bench.writes.asked == ["web"])
        await breathe()
        assert (bench.binder.started, bench.live.is_busy) == ([], True)
        bench.writes.may_bind.set()
        await bench.until(lambda: bench.writes.notes == [assigned("web")])


async def test_the_condition_of_a_pod_that_is_bound_already_is_dropped() -> None:
    bench = Bench()
    bench.add("waits", cpu="64")
    bench.live.handle(Modified(make_pod("waits", on="node-a")))
    bench.live.handle(Added(make_pod("old", on="node-a")))
    assert bench.writes.dropped == ["waits", "old"]


# Hooks of plugins.


class Hooks:
    """Writes down which hook ran, and fails in the one it is told."""

    name = "Hooks"

    def __init__(self, fails_in: str = "", raised: BaseException | None = None) -> None:
        self.ran: list[str] = []
        self.fails_in = fails_in
        self._raised = raised or RuntimeError("broken")

    async def pre_bind(self, pod: Pod, node_name: str) -> None:
        self._ran("pre_bind")

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome | None:
        self._ran("bind")
        return None

    async def post_bind(self, pod: Pod, node_name: str) -> None:
        self._ran("post_bind")

    def _ran(self, hook: str) -> None:
        self.ran.append(hook)
        if hook == self.fails_in:
            raise self._raised


async def test_hooks_run_in_order_and_the_first_plugin_that_binds_has_bound() -> None:
    hooks = Hooks()
    bench = Bench(hooks)
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: bench.writes.notes == [assigned("web")])
    assert (hooks.ran, bench.binder.started) == (["pre_bind", "bind", "post_bind"], ["web"])


class HandedMemory:
    """Remembers the node that it reserved, and writes down what it is handed."""

    name = "HandedMemory"

    def __init__(self) -> None:
        self.handed: list[tuple[str, str | None]] = []

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> Reserved:
        return Reserved(memory=f"{pod.name} on {node_name}")

    async def pre_bind(self, pod: Pod, node_name: str, *, memory: str | None = None) -> None:
        self.handed.append(("pre_bind", memory))

    async def bind(
        self, pod: Pod, node_name: str, *, memory: str | None = None
    ) -> BindOutcome | None:
        self.handed.append(("bind", memory))
        return None

    async def post_bind(self, pod: Pod, node_name: str, *, memory: str | None = None) -> None:
        self.handed.append(("post_bind", memory))


async def test_hooks_are_handed_what_their_plugin_remembers_of_the_pod() -> None:
    plugin = HandedMemory()
    bench = Bench(plugin)
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: bench.writes.notes == [assigned("web")])
    remembered = "web on node-a"
    assert plugin.handed == [
        ("pre_bind", remembered),
        ("bind", remembered),
        ("post_bind", remembered),
    ]


async def test_after_a_failed_binding_there_is_nothing_to_do_after_it() -> None:
    hooks = Hooks()
    bench = Bench(hooks, outcome=OUTCOME_ERROR)
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: len(bench.writes.conditions) == 1)
    assert hooks.ran == ["pre_bind", "bind"]


@pytest.mark.parametrize(
    ("hook", "raised", "problem"),
    [
        pytest.param("pre_bind", RuntimeError("broken"), "broken", id="in pre_bind"),
        pytest.param("bind", RuntimeError("broken"), "broken", id="in bind"),
        pytest.param(
            "bind", TimeoutError(), "TimeoutError", id="with an exception that has no message"
        ),
        pytest.param(
            "bind",
            asyncio.CancelledError(),
            "a plugin cancelled it",
            id="because the plugin cancelled a task of its own",
        ),
    ],
)
async def test_a_hook_that_raises_becomes_a_retry(
    hook: str, raised: BaseException, problem: str
) -> None:
    hooks = Hooks(fails_in=hook, raised=raised)
    bench = Bench(hooks)
    error = f"binding failed: {problem}"
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: bench.writes.conditions == [("web", error)])
        assert bench.binder.started == []
        hooks.fails_in = ""
        bench.clock.advance(2)
        bench.live.wake()
        await bench.until(lambda: bench.writes.notes == [error, assigned("web")])


async def test_a_pod_is_bound_although_a_hook_after_it_raises() -> None:
    hooks = Hooks(fails_in="post_bind")
    bench = Bench(hooks)
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: len(bench.writes.notes) == 1)
        await breathe()
    assert (bench.writes.notes, bench.writes.conditions) == ([assigned("web")], [])
    assert bench.live.machine.state.placed_count == 1


async def test_a_profile_without_a_plugin_that_binds_says_so() -> None:
    bench = Bench(binds=False)
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: len(bench.writes.conditions) == 1)
    assert bench.writes.conditions == [("web", "no plugin binds pods in this profile")]


# The end.


async def test_drain_waits_for_bindings_and_starts_no_more() -> None:
    bench = Bench(outcome=None, most_bindings=1)
    running = asyncio.create_task(bench.live.run())
    bench.add("first", "second")
    await bench.until(lambda: bench.binder.started == ["first"])
    draining = asyncio.create_task(bench.live.drain(10))
    await breathe()
    assert not draining.done()
    bench.binder.end("first")
    await asyncio.wait_for(draining, 10)
    await asyncio.wait_for(running, 10)
    assert (bench.binder.started, bench.writes.notes) == (["first"], [assigned("first")])


async def test_drain_leaves_those_that_wait_for_others_to_be_bound() -> None:
    bench = Bench(gang(), outcome=None, most_bindings=2)
    running = asyncio.create_task(bench.live.run())
    bench.add(*GANG)
    await bench.until(lambda: len(bench.writes.asked) == len(GANG))
    await breathe()
    sent = list(bench.binder.started)
    draining = asyncio.create_task(bench.live.drain(10))
    await breathe()
    assert not draining.done()
    for name in sent:
        bench.binder.end(name)
    await asyncio.wait_for(asyncio.gather(draining, running), 10)
    assert (len(sent), bench.binder.started) == (2, sent)
    assert sorted(bench.writes.notes) == sorted(map(assigned, sent))
    assert (bench.writes.conditions, bench.live.is_busy) == ([], False)


async def test_after_drain_everything_a_binding_leads_to_was_handed_on() -> None:
    bench = Bench(outcome=None)
    running = asyncio.create_task(bench.live.run())
    bench.add("web")
    await bench.until(lambda: bench.binder.started == ["web"])
    draining = asyncio.create_task(bench.live.drain(10))
    bench.binder.end("web", OUTCOME_ERROR)
    await asyncio.wait_for(asyncio.gather(draining, running), 10)
    assert bench.writes.conditions == [("web", OUTCOME_ERROR.error)]


async def test_drain_cancels_what_takes_too_long_and_tells_nothing_about_it() -> None:
    bench = Bench(outcome=None)
    running = asyncio.create_task(bench.live.run())
    bench.add("web")
    await bench.until(lambda: bench.binder.started == ["web"])
    await asyncio.wait_for(bench.live.drain(0.001), 10)
    await asyncio.wait_for(running, 10)
    assert (bench.binder.under_way, bench.live.is_busy) == ({}, False)
    assert (bench.writes.conditions, bench.writes.notes) == ([], [])


class Unlucky(SchedulerMetrics):
    """Cannot count a pod that was scheduled."""

    def pod_scheduled(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("cannot count")


async def test_a_task_that_fails_is_told_and_ends_the_run_but_the_binding_has_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(metrics=Unlucky)
    running = asyncio.create_task(bench.live.run())
    bench.add("web")
    with pytest.raises(RuntimeError, match="cannot count"):
        await asyncio.wait_for(running, 10)
    assert (bench.live.is_busy, bench.writes.notes) == (False, [assigned("web")])
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert told == ["Handling the outcome of a binding failed"]


async def test_a_task_that_fails_while_draining_ends_the_run_with_its_error() -> None:
    bench = Bench(outcome=None, metrics=Unlucky)
    running = asyncio.create_task(bench.live.run())
    bench.add("web")
    await bench.until(lambda: bench.binder.started == ["web"])
    bench.binder.end("web")
    await asyncio.wait_for(bench.live.drain(10), 10)
    with pytest.raises(RuntimeError, match="cannot count"):
        await asyncio.wait_for(running, 10)


async def test_drain_before_anything_happened_ends_at_once() -> None:
    bench = Bench()
    await bench.live.drain(10)
    await asyncio.wait_for(bench.live.run(), 10)
    assert bench.binder.started == []


# What is counted and told.


async def test_what_happens_is_counted() -> None:
    bench = Bench(outcome=None)
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: "web" in bench.binder.under_way)
        bench.clock.advance(0.5)
        bench.binder.end("web")
        await bench.until(lambda: len(bench.writes.notes) == 1)
        bench.add("large", cpu="64")
        await bench.until(lambda: len(bench.writes.notes) == 2)
        bench.binder.outcome = OUTCOME_ERROR
        bench.add("unlucky")
        await bench.until(lambda: len(bench.writes.notes) == 3)
    assert [bench.attempts(each) for each in ("scheduled", "unschedulable", "error")] == [1, 1, 1]
    labels = {"result": "scheduled", "profile": "lowtide"}
    name = "scheduler_scheduling_attempt_duration_seconds_sum"
    assert bench.sample(name, **labels) == pytest.approx(0.5)
    name = "scheduler_pod_scheduling_sli_duration_seconds_sum"
    assert bench.sample(name, attempts="1") == pytest.approx(0.5)
    assert bench.sample("scheduler_pod_scheduling_attempts_count") == 1
    assert bench.sample("scheduler_scheduling_algorithm_duration_seconds_count") == 1


class SlowToFail:
    """Raises, half a second after it was asked."""

    name = "SlowToFail"

    def __init__(self) -> None:
        self.clock = ManualClock()

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | None:
        self.clock.advance(0.5)
        raise RuntimeError("out of order")


def seconds_of_failures(bench: Bench) -> float | None:
    name = "scheduler_scheduling_attempt_duration_seconds_sum"
    return bench.sample(name, result="error", profile="lowtide")


async def test_an_attempt_whose_binding_failed_took_its_time_too() -> None:
    bench = Bench(outcome=None)
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: "web" in bench.binder.under_way)
        bench.clock.advance(0.5)
        bench.binder.end("web", OUTCOME_ERROR)
        await bench.until(lambda: len(bench.writes.notes) == 1)
    assert seconds_of_failures(bench) == pytest.approx(0.5)


async def test_an_attempt_in_which_a_plugin_raised_took_its_time_too() -> None:
    plugin = SlowToFail()
    bench = Bench(plugin)
    plugin.clock = bench.clock
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: len(bench.writes.notes) == 1)
    assert seconds_of_failures(bench) == pytest.approx(0.5)


async def test_a_hint_that_fails_is_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(BadHint())
    async with bench.running():
        bench.add("web")
        await bench.until(lambda: len(bench.writes.notes) == 1)
        bench.live.handle(Added(make_node("node-b")))
        await bench.until(lambda: len(bench.writes.notes) == 2)
    assert bench.sample("lowtide_plugin_errors_total", plugin="BadHint") == 1
    (told,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert told.getMessage() == "A plugin failed"
    assert told.__dict__["lowtide_fields"] == {
        "plugin": "BadHint",
        "err": "BadHint.may_help failed: RuntimeError('no idea')",
    }


async def test_every_decision_is_told() -> None:
    bench = Bench()
    async with bench.running():
        bench.add("web")
        bench.add("large", cpu="64")
        await bench.until(lambda: len(bench.writes.notes) == 2)
    assert [(each.decision.pod.name, each.decision.node_name) for each in bench.decided] == [
        ("web", "node-a"),
        ("large", None),
    ]


async def test_an_attempt_lasts_until_a_plugin_rejects_the_pod_that_it_made_wait() -> None:
    bench = Bench(Says("Gang", web=Wait(30)))
    async with bench.running():
        bench.add("web")
        await breathe()
        bench.clock.advance(5)
        bench.add("other")
        await bench.until(lambda: len(bench.writes.notes) == 1)
        bench.clock.advance(2)
        bench.live.handle(PermitAnswered(make_pod("web").uid, "Gang", "the others are gone"))
    assert [each.decision.pod.name for each in bench.decided] == ["web", "other", "web"]
    assert bench.began_at == [1000.0, 1005.0, 1000.0]
    name = "scheduler_scheduling_attempt_duration_seconds_sum"
    assert bench.sample(name, result="unschedulable", profile="lowtide") == pytest.approx(7.0)


async def test_a_pod_that_is_deleted_while_it_waits_is_not_bound() -> None:
    bench = Bench(outcome=None, most_bindings=1)
    async with bench.running():
        bench.add("first", "second", "third")
        await bench.until(lambda: bench.binder.started == ["first"])
        bench.live.handle(Deleted(make_pod("second")))
        bench.binder.end("first")
        await bench.until(lambda: bench.binder.started == ["first", "third"])


# Evictions.


async def test_pods_are_evicted_for_one_that_matters_more_and_told_so() -> None:
    bench = Bench()
    bench.add("low", cpu="4", on="node-a")
    async with bench.running():
        bench.add("big", cpu="4", priority=9)
        told = "Preempted by pod default/big on node node-a"
        await bench.until(lambda: told in bench.writes.notes)
        assert bench.writes.evicted == [("big", "node-a", ["low"])]
    assert bench.sample("scheduler_preemption_attempts_total") == 1
    assert bench.sample("scheduler_preemption_victims_sum") == 1


async def test_an_eviction_that_raises_is_tried_again() -> None:
    bench = Bench()
    bench.writes.eviction_fails_with = RuntimeError("no such luck")
    bench.add("low", cpu="4", on="node-a")
    async with bench.running():
        bench.add("big", cpu="4", priority=9)
        await bench.until(lambda: len(bench.writes.evicted) == 1)
        await breathe()
        bench.clock.advance(10)
        bench.live.wake()
        await bench.until(lambda: len(bench.writes.evicted) == 2)
