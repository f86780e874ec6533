"""What a recorder hears of the live driver: all that goes into the machine, in that order."""

import asyncio

from prometheus_client import CollectorRegistry
from tests.scheduler.conftest import (
    OUTCOME_BOUND,
    Happenings,
    HeldBinder,
    RecordingWrites,
    all_listed,
    default_plugins,
)

from lowtide.objects.events import Added
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.events import BindingEnded, Event, Turn
from lowtide.scheduler.live import Live
from lowtide.scheduler.machine import Machine
from lowtide.scheduler.metrics import SchedulerMetrics
from lowtide.testing import ManualClock, make_node, make_pod, make_profile


class Tape:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[Event | str | None] = []
        self.times: list[float] = []

    def applied(self, event: Event, now: float) -> None:
        self.heard.append(event)
        self.times.append(now)

    def decided(self, decided: Decided) -> None:
        self.heard.append(decided.decision.node_name)

    def looked(self, now: float) -> None:
        self.heard.append("looked")
        self.times.append(now)


def driver(tape: Tape, clock: ManualClock) -> Live:
    happenings = Happenings()
    binder = HeldBinder(happenings, OUTCOME_BOUND)
    live = Live(
        Machine({"lowtide": make_profile(default_plugins(binder))}),
        writes=RecordingWrites(happenings),
        metrics=SchedulerMetrics(CollectorRegistry()),
        clock=clock,
        may_schedule=lambda: True,
        look_up=binder.look_up,
        recorder=tape,
    )
    for event in all_listed():
        live.handle(event)
    tape.heard.clear()
    tape.times.clear()
    return live


async def until_idle(live: Live) -> None:
    running = asyncio.create_task(live.run())
    async with asyncio.timeout(20):
        while live.is_busy:
            await asyncio.sleep(0)
    await live.drain(10)
    await running


async def test_recorder_hears_of_events_turns_decisions_and_ends_in_order() -> None:
    tape, clock = Tape(), ManualClock(1000.0)
    live = driver(tape, clock)
    node, pod = make_node("node-a"), make_pod("web")
    live.handle(Added(node))
    live.handle(Added(pod))
    await until_idle(live)
    assert tape.heard == [
        Added(node),
        Added(pod),
        Turn(),
        "node-a",
        BindingEnded(pod.uid, OUTCOME_BOUND),
    ]
    assert tape.times == [1000.0] * 4


async def test_recorder_hears_of_a_look_that_moved_pods_and_of_no_other() -> None:
    tape, clock = Tape(), ManualClock(1000.0)
    live = driver(tape, clock)
    pod = make_pod("web")
    live.handle(Added(pod))
    await until_idle(live)
    assert tape.heard == [Added(pod), Turn(), None]
    live = driver(tape, clock)
    live.handle(Added(make_node("node-a", cpu="1")))
    live.handle(Added(make_pod("large", cpu="64")))
    await live._take_turns()
    tape.heard.clear()
    tape.times.clear()
    assert not live.is_busy
    clock.advance(seconds=301)  # longer than a pod stays parked
    assert live.is_busy
    assert live.is_busy
    assert (tape.heard, tape.times) == (["looked"], [1301.0])
