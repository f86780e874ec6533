"""Decisions of the real machine, kept in a ring: what the tests of records share."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.scheduler.conftest import Bench, default_plugins

from lowtide.objects.events import Added
from lowtide.objects.node import Node
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import NetworkTrafficArgs
from lowtide.readings.columns import published
from lowtide.readings.demand import Owners, Traffic
from lowtide.records.record import DecisionRecord
from lowtide.records.ring import Kept, Ring
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.actions import Action, Decided
from lowtide.scheduler.events import ReadingPublished
from lowtide.testing import ManualClock, make_profile

GIGABIT = 125_000_000.0


class Keeping:
    """A machine with the default plugins and NetworkTraffic, and its decisions as they are kept."""

    def __init__(
        self, *nodes: Node, kept_decisions: int = 100, clock: Any = None, **args: Any
    ) -> None:
        self.traffic = NetworkTraffic(NetworkTrafficArgs(**args))
        profile = make_profile([*default_plugins(), self.traffic], {"NetworkTraffic": 9})
        if clock is not None:
            profile = profile.timed_by(clock)
        self.bench = Bench(*nodes, profiles=[profile])
        self.clock = ManualClock(self.bench.now)
        self.ring = Ring(
            self.bench.machine.profiles, self.bench.machine.state, self.clock, kept_decisions
        )
        self._nodes = nodes

    def publish(self, by_node: Mapping[str, Any], *, sampled_at: float) -> None:
        """Receive and transmit are alike; pods are expected to carry 50 MB/s each way."""
        reading = traffic_reading(self.traffic.request, by_node, self._nodes)
        is_rate = self.traffic.request.is_rate
        pods = Owners().expectation(Traffic(50e6, 50e6)) if is_rate else None
        made = replace(published(reading), sampled_at=sampled_at, window_seconds=60.0, expects=pods)
        self.bench.give(ReadingPublished(self.traffic.request, made))

    def decide(self, *pods: Any) -> list[Kept]:
        """Each has its turn; what was kept of that."""
        found = []
        for pod in pods:
            self.bench.give(Added(pod))
            found += self.note(self.bench.take_turns())
        return found

    def note(self, actions: list[Action]) -> list[Kept]:
        began_at = self.clock()
        return [self.ring.note(each, began_at) for each in actions if isinstance(each, Decided)]

    def record(self, pod: Any) -> DecisionRecord:
        return DecisionRecord.from_kept(self.decide(pod)[-1])
