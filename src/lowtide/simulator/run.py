"""One run: drives the scheduler's own machine through a drawn world on virtual time.

Events wait in a heap; each is handled at its time: pods arrive, turns are taken, bindings end, pods
end, the background changes, Prometheus is polled. `app.simulate` makes one per seed and config."""

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from lowtide.framework.plugin import BindOutcome, PluginError
from lowtide.framework.profile import Profile
from lowtide.objects.events import Added, Deleted, Listed, Modified
from lowtide.objects.kinds import KIND_OF, NEEDED_KINDS
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.requests import CPU
from lowtide.readings.columns import published
from lowtide.readings.meter import PODS_EVERY_SECONDS, SCRAPES_IN_WINDOW, TrafficMeter
from lowtide.readings.request import TrafficRequest, is_exact
from lowtide.scenario.simulation import Simulation
from lowtide.scheduler.actions import AttemptFailed, Bind, PluginFailed
from lowtide.scheduler.events import BindingEnded, Event, ReadingPublished, Turn
from lowtide.scheduler.machine import Machine
from lowtide.simulator.cluster_objects import (
    PodMaker,
    nodes_of,
    owner_objects,
    running,
)
from lowtide.simulator.draw import BACKGROUND_STEP_SECONDS, Draw, DrawnPods
from lowtide.simulator.prometheus_model import PrometheusModel, Targets
from lowtide.simulator.report import LoadRecord, Moment, RunResult, figures
from lowtide.simulator.world import World

# Virtual time begins here: 2026-01-01T00:00:00Z, in seconds since 1970.
START: Final = 1_767_225_600.0

DECISION_SECONDS: Final = 0.001
BINDING_SECONDS: Final = 0.010

_DEFAULT_WINDOW_SECONDS: Final = 60.0
_DEFAULT_DEVICE: Final = "eth0"

Happening = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class _LivePod:
    pod: Pod
    node: int
    rates: tuple[float, float]


class Run:
    """`requests` are what the profiles want measured. Pods name the first of the profiles."""

    def __init__(
        self,
        simulation: Simulation,
        draw: Draw,
        *,
        profiles: Mapping[str, Profile],
        requests: Sequence[TrafficRequest],
        reference: float,
    ) -> None:
        self._simulation = simulation
        self._draw = draw
        self._reference = reference
        self._meters = [TrafficMeter(request) for request in requests]
        self._window_seconds = _longest_window(simulation, requests)
        self._times = _Times.from_simulation(simulation, draw, self._window_seconds)
        self._nodes = nodes_of(simulation)
        self._number_of = {node.name: number for number, node in enumerate(self._nodes)}
        self._machine = Machine(profiles)
        self._pods = PodMaker(simulation, draw, next(iter(profiles)))
        self._world = World(
            draw.capacity,
            draw.background.shares(self._times.began_at - START),
            began_at=self._times.began_at,
        )
        self._prometheus = _prometheus(
            simulation, draw, self._world, self._nodes, _device(requests)
        )
        self._record: LoadRecord | None = None
        self._alive: dict[str, _LivePod] = {}
        self._waiting: dict[str, int] = {}  # by uid: the pod's number in the draw
        self._happenings: list[tuple[float, int, Happening]] = []
        self._planned = 0
        self._turn_at = math.inf
        self._free_at = 0.0

    def run(self) -> RunResult:
        self._begin()
        self._live_earlier()
        self._go_on_until(START)
        self._record = LoadRecord(self._world.utilization, START)
        self._note_busiest(self._record)
        self._plan_arrivals()
        self._go_on_until(self._times.ends_at)
        self._record.end(self._times.ends_at)
        return RunResult(
            figures=figures(
                self._record,
                seed=self._draw.seed,
                reference=self._reference,
                pending=len(self._waiting),
            ),
            course=tuple(self._record.course),
            reference=self._reference,
        )

    # What there is from the beginning.

    def _begin(self) -> None:
        now = self._times.began_at
        watched = self._machine.plugins_by_kind
        owners = owner_objects(self._simulation, self._draw, watched)
        for thing in (*self._nodes, *owners):
            self._step(Added(thing), now)
        for kind in (*NEEDED_KINDS, *(KIND_OF[each].name for each in watched)):
            self._step(Listed(kind), now)
        for meter in self._meters:
            prometheus = self._simulation.prometheus
            interval = prometheus.scrape_interval_seconds
            meter.scrapes_are_apart(interval, lag_seconds=interval / 2 + prometheus.delay_seconds)
            meter.pod_scrapes_are_apart(interval)
            wait = self._window_seconds + self._draw.poll_phase * meter.request.every_seconds
            self._plan(now + wait, partial(self._poll, meter))
        if self._draw.background.changes:
            self._plan(_next_step(now), self._change_background)

    def _live_earlier(self) -> None:
        """Pods whose owners are to be known: they run for a while and are gone."""
        earlier = self._draw.earlier
        for number in range(len(earlier)):
            pod = self._pods.pending(earlier, number, "earlier-")
            node = number % len(self._nodes)
            self._plan(self._times.earlier_from, partial(self._start, pod, earlier, number, node))
            self._plan(self._times.earlier_until, partial(self._end, pod.uid))

    def _plan_arrivals(self) -> None:
        for number, arrives_at in enumerate(self._draw.pods.arrives_at.tolist()):
            self._plan(START + arrives_at, partial(self._arrive, number))

    # Time passes.

    def _plan(self, at: float, happening: Happening) -> None:
        self._planned += 1
        heapq.heappush(self._happenings, (at, self._planned, happening))

    def _go_on_until(self, end: float) -> None:
        while self._happenings and self._happenings[0][0] < end:
            now, _, happening = heapq.heappop(self._happenings)
            happening(now)
            self._plan_turn(now)
        self._advance(end)

    def _plan_turn(self, now: float) -> None:
        """A turn as soon as the scheduler is free, or when time alone makes a pod ready."""
        if self._machine.has_work(now):
            at = max(now, self._free_at)
        else:
            at = self._machine.next_change_at()
        if at < self._turn_at:
            self._turn_at = at
            self._plan(at, self._take_turn)

    def _take_turn(self, now: float) -> None:
        self._turn_at = math.inf
        if now < self._free_at or not self._machine.has_work(now):
            return
        self._free_at = now + DECISION_SECONDS
        self._step(Turn(), now)

    def _step(self, event: Event, now: float) -> None:
        for action in self._machine.step(event, now):
            match action:
                case Bind(pod=pod, node_name=node_name):
                    self._plan(now + BINDING_SECONDS, partial(self._bound, pod, node_name))
                case AttemptFailed(error=error) | PluginFailed(error=error):
                    raise PluginError(error)

    # Pods come and go.

    def _arrive(self, number: int, now: float) -> None:
        pod = self._pods.pending(self._draw.pods, number, "")
        self._waiting[pod.uid] = number
        self._step(Added(pod), now)

    def _bound(self, pod: Pod, node_name: str, now: float) -> None:
        number = self._waiting.pop(pod.uid)
        self._step(BindingEnded(pod.uid, BindOutcome()), now)
        self._start(pod, self._draw.pods, number, self._number_of[node_name], now)
        lives_for = float(self._draw.pods.lives_for[number])
        if math.isfinite(lives_for):
            self._plan(now + lives_for, partial(self._end, pod.uid))

    def _start(self, pod: Pod, pods: DrawnPods, number: int, node: int, now: float) -> None:
        rates = float(pods.receive[number]), float(pods.transmit[number])
        live = running(pod, self._nodes[node].name, now)
        self._advance(now)
        self._world.add_pod(node, *rates)
        labels = {"namespace": pod.namespace, "pod": pod.name}
        self._prometheus.pod_started(pod.uid, labels, node, rates, now)
        self._alive[pod.uid] = _LivePod(live, node, rates)
        self._step(Modified(live), now)
        self._world_changed(now)

    def _end(self, uid: str, now: float) -> None:
        ended = self._alive.pop(uid)
        self._advance(now)
        self._world.remove_pod(ended.node, *ended.rates)
        self._prometheus.pod_ended(uid, now)
        self._step(Deleted(ended.pod), now)
        self._world_changed(now)

    def _change_background(self, now: float) -> None:
        self._advance(now)
        self._world.set_background(self._draw.background.shares(now - START))
        self._world_changed(now)
        self._plan(_next_step(now), self._change_background)

    def _advance(self, now: float) -> None:
        """Scrapes first: they see the rates as they were until now."""
        self._prometheus.scrape(now)
        self._world.advance(now)

    def _world_changed(self, now: float) -> None:
        if self._record is not None:
            self._record.change(self._world.utilization, now)
            self._note_busiest(self._record)

    def _note_busiest(self, record: LoadRecord) -> None:
        carried = self._world.bytes_per_second
        if record.busiest is not None and carried <= record.busiest.bytes_per_second:
            return
        state, count = self._machine.state, len(self._nodes)
        allocatable = np.maximum(state.allocatable(CPU)[:count], 1)
        record.busiest = Moment(
            bytes_per_second=carried,
            utilization=self._world.utilization,
            requested_cpu_share=state.requested(CPU)[:count] / allocatable,
            pod_count=state.pod_count.array[:count].copy(),
        )

    # Prometheus is asked.

    def _poll(self, meter: TrafficMeter, now: float) -> None:
        self._advance(now)
        due = meter.due(now, self._nodes)
        answers = {name: self._prometheus.query(promql, now) for name, promql in due.items()}
        reading = meter.take(answers, self._nodes, self._machine.state.placed_pods(), now)
        self._step(ReadingPublished(meter.request, published(reading)), now)
        self._plan(now + meter.request.every_seconds, partial(self._poll, meter))


@dataclass(frozen=True, slots=True)
class _Times:
    """When the world begins, when earlier pods run in it, and when the run ends."""

    began_at: float
    earlier_from: float
    earlier_until: float
    ends_at: float

    @classmethod
    def from_simulation(cls, simulation: Simulation, draw: Draw, window_seconds: float) -> "_Times":
        """Earlier pods are measured whole and asked for at least twice; then they are forgotten
        by every window before the first arrival."""
        delay_seconds = simulation.prometheus.delay_seconds
        earlier_until = START - 2 * window_seconds - delay_seconds - PODS_EVERY_SECONDS
        earlier_from = earlier_until
        if len(draw.earlier):
            earlier_from -= window_seconds + delay_seconds + 3 * PODS_EVERY_SECONDS
        return cls(
            began_at=earlier_from - window_seconds,
            earlier_from=earlier_from,
            earlier_until=earlier_until,
            ends_at=START + run_seconds(simulation, draw),
        )


def run_seconds(simulation: Simulation, draw: Draw) -> float:
    """How long the run lasts from its start on."""
    return float(draw.pods.arrives_at[-1]) + simulation.settle_seconds


def _next_step(now: float) -> float:
    return (math.floor(now / BACKGROUND_STEP_SECONDS) + 1) * BACKGROUND_STEP_SECONDS


def _longest_window(simulation: Simulation, requests: Sequence[TrafficRequest]) -> float:
    """As the meters may widen it."""
    widened = SCRAPES_IN_WINDOW * simulation.prometheus.scrape_interval_seconds
    windows = [request.window_seconds for request in requests]
    return max(_DEFAULT_WINDOW_SECONDS, widened, *windows)


def _device(requests: Sequence[TrafficRequest]) -> str:
    """Links are called what a configuration calls them."""
    named = [device for request in requests for device in request.devices if is_exact(device)]
    return named[0] if named else _DEFAULT_DEVICE


def _prometheus(
    simulation: Simulation, draw: Draw, world: World, nodes: Sequence[Node], device: str
) -> PrometheusModel:
    interval_seconds = simulation.prometheus.scrape_interval_seconds
    return PrometheusModel(
        world,
        exporters=Targets(draw.exporter_phase, interval_seconds),
        kubelets=Targets(draw.kubelet_phase, interval_seconds),
        node_labels=[
            {
                "instance": f"{node.status.addresses[0].address}:9100",
                "job": "node-exporter",
                "node": node.name,
                "kubernetes_node": node.name,
            }
            for node in nodes
        ],
        device=device,
        delay_seconds=simulation.prometheus.delay_seconds,
    )
