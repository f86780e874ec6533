"""The extender mode: the plugins behind another scheduler, which asks over HTTP, and places
pods."""

import asyncio
from collections.abc import Callable, Hashable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from lowtide.advisor.advice import (
    Asked,
    AskedPreemption,
    FilterAdvice,
    PreemptionAdvice,
    PriorityAdvice,
)
from lowtide.advisor.advising import Advising, Listening
from lowtide.advisor.advisor import FILTER, Advisor
from lowtide.app.clocks import Clock
from lowtide.app.garbage import (
    give_back_what_is_free,
    leave_out_what_is_known,
    look_seldom_for_garbage,
)
from lowtide.app.guarding import started_server
from lowtide.app.known_cluster import WatchedCluster
from lowtide.app.kube_writes import KubeBinder
from lowtide.app.measuring import FIRST_READING_SECONDS, Measuring
from lowtide.app.no_binder import NoBinder
from lowtide.app.notes import Notes
from lowtide.app.rejected_answers import RejectedAnswers, rejected_by
from lowtide.app.shown import Shown
from lowtide.app.tasks import end, failures, started
from lowtide.app.watching import make_watches
from lowtide.cluster.reading import Reading
from lowtide.framework.plugin import Binder
from lowtide.framework.registry import Built
from lowtide.kube.connection import Connection
from lowtide.kube.following import Outages
from lowtide.kube.kubeconfig import Access
from lowtide.kube.writer import Writer
from lowtide.logs import Log
from lowtide.objects.events import Listed
from lowtide.objects.kinds import NODE
from lowtide.objects.pod import Pod, bytes_in_memory
from lowtide.records.journal import Journal
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.events import Event, ReadingPublished
from lowtide.server.extender import extender_routes
from lowtide.server.extender_metrics import ExtenderMetrics
from lowtide.server.health import health_routes
from lowtide.server.http import SERVICE_DRAIN, Drain, Server
from lowtide.server.metrics import metrics_routes
from lowtide.server.serving import Serving
from lowtide.telemetry.metrics import MeasuredGauges

log = Log("extender")

# Less than the shortest httpTimeout that is printed: who asked is still there for the answer.
BIND_SECONDS: Final = 1.5
# Of answers about larger pods nothing is kept: whoever may ask could fill the memory with them.
MOST_POD_BYTES: Final = 128 * 1024


@dataclass(frozen=True, slots=True)
class ExtenderParts:
    """What an extender is made of; the clocks as in SchedulerParts."""

    access: Access
    build: Callable[[Binder], Built]
    clock: Clock
    wall_clock: Clock
    serving: Serving
    url_prefix: str
    most_body_bytes: int
    drain: Drain = SERVICE_DRAIN
    journal: Journal | None = None  # where answers are written to


class ExtenderApp:
    def __init__(self, parts: ExtenderParts) -> None:
        self._parts = parts
        self._registry = CollectorRegistry()
        self._metrics = ExtenderMetrics(self._registry)
        self._connection = Connection(parts.access, parts.wall_clock)
        # Readings do not wait for bindings.
        self._measuring_connection = Connection(parts.access, parts.wall_clock)
        self._writer = Writer(self._connection, may_write=lambda: True)
        self._binder = KubeBinder(self._writer)
        built = parts.build(NoBinder())
        self.profiles = {
            name: profile.timed_by(parts.clock) for name, profile in built.profiles.items()
        }
        listening = Listening(
            self._metrics,
            parts.clock,
            reported_profiles=frozenset(
                name for name, each in built.extender_settings.items() if each.log_answers
            ),
            on_answer=self._note,
            on_placed=lambda uid, node_name: self._notes.ring.went_to(uid, node_name),
        )
        self._serves_bind = any(each.bind for each in built.extender_settings.values())
        self.advisor = Advisor(self.profiles, built.extender_settings, listening)
        self._notes = Notes(self.profiles, self.advisor.state, parts.clock, journal=parts.journal)
        self.advising = Advising(
            self.advisor, counts=self._metrics, clock=parts.clock, wall_clock=parts.wall_clock
        )
        self._watched = WatchedCluster()
        self._measuring = Measuring(
            self.profiles,
            connection=self._measuring_connection,
            known=self._watched,
            publish=self._publish,
            clock=parts.clock,
            wall_clock=parts.wall_clock,
        )
        self._registry.register(MeasuredGauges(self._measuring.numbers))
        self._registry.register(
            RejectedAnswers(
                lambda: rejected_by(
                    self._connection, self._measuring_connection, measuring=self._measuring
                )
            )
        )
        self._outages = Outages(parts.clock)
        self._watches = make_watches(
            self._connection, self._handle, self.advisor.plugins_by_kind, outages=self._outages
        )
        self.server: Server | None = None
        self._stopping = asyncio.Event()
        self._nodes_listed = asyncio.Event()
        self._has_asked = asyncio.Event()  # Prometheus and metrics-server, with or without success

    def stop(self) -> None:
        """Ends `run`: what was asked is answered first."""
        self._stopping.set()

    async def run(self) -> None:
        look_seldom_for_garbage()
        give_back_what_is_free()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._connection)
            await stack.enter_async_context(self._measuring_connection)
            await self._connection.check_credentials()
            self.advising.start()
            stack.callback(self.advising.stop)
            await self._serve(stack)
            background = self._start_background()
            stopping = asyncio.create_task(self._stopping.wait())
            try:
                await asyncio.wait([stopping, *background], return_when=asyncio.FIRST_COMPLETED)
                failed = failures(background)
                if self.server is not None:
                    await self.server.stop()
            finally:
                stopping.cancel()
                await end(background)
                await self._notes.flush()
            if failed:
                raise failed[0]

    # What the server asks.

    async def filter(self, asked: Asked) -> FilterAdvice:
        return await self.advising.filter(asked)

    async def prioritize(self, asked: Asked) -> PriorityAdvice:
        return await self.advising.prioritize(asked)

    async def preempt(self, asked: AskedPreemption) -> PreemptionAdvice:
        return await self.advising.preempt(asked)

    async def bind(self, pod: Pod, node_name: str) -> str:
        """What went wrong; empty where the pod is bound."""
        known = "the API server has not answered"
        try:
            async with asyncio.timeout(BIND_SECONDS):
                written = await self._writer.bind(pod.namespace, pod.name, pod.uid, node_name)
                if not written.was_sent:
                    return written.message
                known = written.message
                outcome = await self._binder.settle(pod, node_name, written)
        except TimeoutError:
            return f"{known}; whether the pod is bound is not known after {BIND_SECONDS:g} s"
        return outcome.error or ""

    def why_not_ready(self) -> str | None:
        return self.advising.why_not_ready()

    def is_hung(self) -> bool:
        return self.advising.is_hung()

    # Parts of it.

    def _start_background(self) -> list[asyncio.Task[None]]:
        measuring = [self._measure()] if self._measuring.is_wanted else []
        return started(
            *(watch.run() for watch in self._watches),
            *measuring,
            self._wait_for_readings(),
            *self._notes.background(),
        )

    def _note(self, decided: Decided, began_at: float) -> None:
        """On the thread of the advisor. A pod that is filtered anew is tried again."""
        pod = decided.decision.pod
        if bytes_in_memory(pod) > MOST_POD_BYTES:
            return
        uid = pod.uid
        before = self._notes.ring.newest_of(uid) if uid else None
        if before is not None:
            attempts = before.decided.attempts + (decided.asked == FILTER)
            decided = replace(decided, attempts=attempts)
        self._notes.note(decided, began_at)

    def _publish(self, source: Hashable, reading: Reading) -> None:
        self.advising.handle(ReadingPublished(source, reading))
        self._notes.note_reading(source, reading)

    def _shown(self) -> Shown:
        return Shown(
            self.advisor,
            self._notes.ring,
            self._notes.history,
            mode="extender",
            clock=self._parts.clock,
            measured=self._measuring.numbers,
            is_leader=lambda: None,
            diagnosis=self._measuring.diagnosis,
            stale_watches=self._outages.stale_watches,
        )

    async def _measure(self) -> None:
        await self._nodes_listed.wait()
        await self._measuring.run()

    async def _wait_for_readings(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_READING_SECONDS):
                await self._measuring.first_results()
        leave_out_what_is_known()
        self._has_asked.set()
        await self._stopping.wait()

    def _handle(self, event: Event) -> None:
        self._watched.handle(event)
        self.advising.handle(event)
        if isinstance(event, Listed) and event.kind == NODE.name:
            self._nodes_listed.set()

    async def _serve(self, stack: AsyncExitStack) -> None:
        parts = self._parts
        self.server = await started_server(
            stack,
            parts.serving,
            parts.access,
            shown=self._shown(),
            ask=self.advising.look,
            verbs=extender_routes(
                self,
                metrics=self._metrics,
                clock=parts.clock,
                most_body_bytes=parts.most_body_bytes,
                prefix=parts.url_prefix,
                serves_bind=self._serves_bind,
            ),
            routes=[
                *health_routes(
                    healthz=[],
                    livez=[("plugins", self.advising.why_hung)],
                    readyz=[
                        ("cluster", self.advising.why_not_ready),
                        ("readings", self._why_no_readings),
                        ("plugins", self.advising.why_hung),
                        ("running", self._why_ending),
                    ],
                ),
                *metrics_routes(self._registry),
            ],
            clock=parts.clock,
            wall_clock=parts.wall_clock,
            drain=parts.drain,
            on_rejected=self._metrics.rejected,
        )
        log.info("Serving schedulers", address=f"{self.server.address.url}{parts.url_prefix}")

    def _why_no_readings(self) -> str | None:
        """For a moment after the start; what is not measured then does not count."""
        return None if self._has_asked.is_set() else "what nodes carry and use was not asked yet"

    def _why_ending(self) -> str | None:
        return "the process is about to end" if self._stopping.is_set() else None
