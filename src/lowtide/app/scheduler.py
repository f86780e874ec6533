"""The scheduler mode: a complete scheduler on a cluster, beside or instead of kube-scheduler."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from lowtide.app.clocks import Clock
from lowtide.app.comparing import Comparing
from lowtide.app.garbage import (
    give_back_what_is_free,
    leave_out_what_is_known,
    look_seldom_for_garbage,
)
from lowtide.app.guarding import started_server
from lowtide.app.known_cluster import BelievedCluster
from lowtide.app.kube_writes import KubeBinder, KubeWrites
from lowtide.app.measuring import FIRST_READING_SECONDS, Measuring
from lowtide.app.notes import Notes
from lowtide.app.rejected_answers import RejectedAnswers, rejected_by
from lowtide.app.shown import Shown
from lowtide.app.tasks import end, failures, started
from lowtide.app.volume_writes import KubeBindings, KubeVolumes
from lowtide.app.watching import make_watches
from lowtide.cluster.reading import Reading
from lowtide.config.types import KubeSchedulerConfiguration
from lowtide.extenders.asking import Extenders
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.kube.connection import CHECKED_CONNECT_SECONDS, Connection
from lowtide.kube.following import Outages
from lowtide.kube.kube_events import KubeEvents
from lowtide.kube.kubeconfig import Access
from lowtide.kube.lease import LeaderLease, LeaseTimings, make_identity
from lowtide.kube.rate_limit import RateLimit
from lowtide.kube.whole_objects import WholeObjects
from lowtide.kube.writer import Writer
from lowtide.logs import Log
from lowtide.objects.events import Deleted, Listed
from lowtide.objects.kinds import NODE
from lowtide.objects.pod import Pod
from lowtide.records.journal import Journal
from lowtide.records.record import DecisionRecord, in_short
from lowtide.scheduler.actions import Decided, WriteKubeEvent
from lowtide.scheduler.events import Event, ReadingPublished
from lowtide.scheduler.gauges import PresentNumbers
from lowtide.scheduler.live import Live
from lowtide.scheduler.machine import Machine
from lowtide.scheduler.metrics import SchedulerMetrics
from lowtide.server.api_routes import at_once
from lowtide.server.health import Check, health_routes
from lowtide.server.http import Server
from lowtide.server.metrics import metrics_routes
from lowtide.server.pod_resources import pod_resources_route
from lowtide.server.serving import Serving
from lowtide.telemetry.metrics import MeasuredGauges

if TYPE_CHECKING:  # the scheduler starts sooner without what only a recording needs
    from lowtide.records.recorder import Recorder

log = Log("scheduler")

MakeRecorder = Callable[[Mapping[str, Profile]], "Recorder"]

# Together, and with the release of the lease, below the 30 seconds that Kubernetes grants. Beside
# the flush, who asked is answered (5 s at most) and decisions go to their file: should its disk
# hang, no more than those is lost.
DRAIN_SECONDS = 16.0
FLUSH_SECONDS = 6.0
# The lease waits for nothing else: neither for a rate limit nor for a slot.
_LEASE_REQUESTS_AT_ONCE = 2


class LeaseLostError(Exception):
    """Another process leads now; this one must not write any more."""


@dataclass(frozen=True, slots=True)
class SchedulerParts:
    """What a scheduler is made of, decided by the command line and the configuration.

    `clock` never jumps: every span is measured on it. `wall_clock` is for what others read or
    wrote: timestamps, expiry of credentials, samples of Prometheus."""

    access: Access
    config: KubeSchedulerConfiguration
    make_profiles: Callable[[Binder], dict[str, Profile]]
    clock: Clock
    wall_clock: Clock
    serving: Serving
    keeps_every_score: bool = False
    on_decision: Callable[[Decided], None] = lambda decided: None
    mode: str = "scheduler"  # as the page calls it
    journal: Journal | None = None  # where decisions are written to
    explains_events: bool = False
    make_recorder: MakeRecorder | None = None


class SchedulerApp:
    def __init__(self, parts: SchedulerParts) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._registry = CollectorRegistry()
        self._metrics = SchedulerMetrics(self._registry)
        self._connection = Connection(
            parts.access, parts.wall_clock, rate_limit=_rate_limit(parts.config, parts.clock)
        )
        self._lease_connection = Connection(
            parts.access, parts.wall_clock, limit=_LEASE_REQUESTS_AT_ONCE
        )
        # Nor do readings wait for the backlog.
        self._measuring_connection = Connection(parts.access, parts.wall_clock)
        self._lease = self._make_lease()
        self._writer = Writer(self._connection, may_write=self._may_schedule)
        binder = KubeBinder(
            Writer(
                self._connection,
                may_write=self._may_schedule,
                sleep=lambda seconds: self.live.pause(seconds),
            ),
            objection=lambda pod: self.machine.objection_to(pod),
        )
        volumes = KubeVolumes(self._writer, lambda: self.machine.state, clock=parts.clock)
        built = parts.make_profiles(KubeBindings(binder, volumes))
        self.profiles = {name: profile.timed_by(parts.clock) for name, profile in built.items()}
        self.machine = Machine(
            self.profiles,
            initial_backoff_seconds=parts.config.pod_initial_backoff_seconds,
            max_backoff_seconds=parts.config.pod_max_backoff_seconds,
            keeps_every_score=parts.keeps_every_score,
            extenders=parts.config.extenders,
        )
        self._notes = Notes(
            self.profiles,
            self.machine.state,
            parts.clock,
            journal=parts.journal,
            rows_may_change=bool(parts.config.extenders),
        )
        make_recorder = parts.make_recorder
        self._recorder = None if make_recorder is None else make_recorder(self.profiles)
        self._whole_objects = self._make_whole_objects()
        self._extenders = (
            None
            if self._whole_objects is None
            else Extenders(
                parts.config.extenders,
                self._whole_objects,
                objection=self._objection_to,
                bind_connect_seconds=CHECKED_CONNECT_SECONDS,
                look_up=binder.look_up,
            )
        )
        self._events = KubeEvents(
            self._connection,
            host_name=socket.gethostname(),
            is_busy=lambda: self.live.is_busy,
            clock=parts.wall_clock,
        )
        self._writes = KubeWrites(
            self._writer,
            self._events,
            parts.wall_clock,
            is_busy=lambda: self.live.is_busy,
            say_more=self._say_more if parts.explains_events else None,
        )
        self.live = Live(
            self.machine,
            writes=self._writes,
            metrics=self._metrics,
            clock=parts.clock,
            may_schedule=self._may_schedule,
            look_up=binder.look_up_again,
            on_decision=self._note_decision,
            extenders=self._extenders,
            recorder=self._recorder,
        )
        self._measuring = Measuring(
            self.profiles,
            connection=self._measuring_connection,
            known=BelievedCluster(self.machine.state),
            publish=self._publish,
            clock=parts.clock,
            wall_clock=parts.wall_clock,
        )
        self._registry.register(MeasuredGauges(self._measuring.numbers))
        self._registry.register(RejectedAnswers(self._rejected_answers))
        self._outages = Outages(parts.clock)
        self._watches = make_watches(
            self._connection,
            self._handle,
            self.machine.plugins_by_kind,
            outages=self._outages,
            keep=None if self._whole_objects is None else self._whole_objects.keep,
        )
        self.server: Server | None = None
        self.is_serving = asyncio.Event()  # or knows that it is to serve nothing
        self._stopping = asyncio.Event()
        self._comparing = Comparing(self._connection, self.machine)
        self._nodes_listed = asyncio.Event()

    def stop(self) -> None:
        """Ends `run`: open bindings are finished, the lease is released."""
        self._stopping.set()

    def compare(self) -> None:
        """Tells in the log what is believed and is not so; one at a time."""
        self._comparing.start()

    async def run(self) -> None:
        """Until `stop`; LeaseLostError when another process took over."""
        look_seldom_for_garbage()
        give_back_what_is_free()
        async with AsyncExitStack() as stack:
            if self._recorder is not None:
                stack.enter_context(self._recorder)
            await stack.enter_async_context(self._connection)
            await stack.enter_async_context(self._lease_connection)
            await stack.enter_async_context(self._measuring_connection)
            if self._extenders is not None:
                await stack.enter_async_context(self._extenders)
            await self._connection.check_credentials()
            await self._serve(stack)
            self.is_serving.set()
            self._metrics.read_present_numbers_from(self._present_numbers)
            writing = started(self._events.run(), self._writes.run())
            background = self._start_background()
            scheduling = asyncio.create_task(self._schedule())
            stopping = asyncio.create_task(self._stopping.wait())
            try:
                await asyncio.wait(
                    [stopping, scheduling, *writing, *background],
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                stopping.cancel()
                self.stop()  # also where a part of it has failed
                await self._shut_down(writing, [scheduling, *background])

    # Parts of it.

    def _start_background(self) -> list[asyncio.Task[None]]:
        leading = [self._lead()] if self._lease is not None else []
        measuring = [self._measure()] if self._measuring.is_wanted else []
        return started(
            *(watch.run() for watch in self._watches),
            *measuring,
            *leading,
            *self._notes.background(),
        )

    async def _schedule(self) -> None:
        """Waits a moment for the first readings, so that the first pods are placed by them."""
        await self._nodes_listed.wait()
        try:
            async with asyncio.timeout(FIRST_READING_SECONDS):
                await self._measuring.first_results()
        except TimeoutError:
            log.warning("Scheduling starts without a traffic reading")
        await self.live.run()

    async def _measure(self) -> None:
        await self._nodes_listed.wait()
        await self._measuring.run()

    def _note_decision(self, decided: Decided, began_at: float) -> None:
        self._notes.note(decided, began_at)
        self._parts.on_decision(decided)

    def _rejected_answers(self) -> Mapping[str, int]:
        return rejected_by(
            self._connection,
            self._lease_connection,
            self._measuring_connection,
            measuring=self._measuring,
            extenders=0 if self._extenders is None else self._extenders.rejected,
        )

    def _say_more(self, event: WriteKubeEvent) -> WriteKubeEvent:
        kept = self._notes.ring.newest_of(event.pod.uid)
        if event.reason != "Scheduled" or kept is None:
            return event
        return replace(event, note=f"{event.note}; {in_short(DecisionRecord.from_kept(kept))}")

    def _publish(self, source: Hashable, reading: Reading) -> None:
        self.live.handle(ReadingPublished(source, reading))
        self._notes.note_reading(source, reading)

    def _handle(self, event: Event) -> None:
        if self._whole_objects is not None and isinstance(event, Deleted):
            self._whole_objects.forget(event)
        was_synced = self.machine.is_synced
        self.live.handle(event)
        if isinstance(event, Listed) and event.kind == NODE.name:
            self._nodes_listed.set()
        if self.machine.is_synced and not was_synced:
            leave_out_what_is_known()

    async def _lead(self) -> None:
        assert self._lease is not None
        await self._lease.run(on_started=self.live.wake)
        raise LeaseLostError("the leader lease was lost; this process ends so as not to write")

    async def _serve(self, stack: AsyncExitStack) -> None:
        serving = self._parts.serving
        if serving.port < 0:
            return
        parts = self._parts
        self.server = await started_server(
            stack,
            serving,
            parts.access,
            shown=self._shown(),
            ask=at_once,
            routes=[
                *self._health_routes(),
                *metrics_routes(self._registry),
                pod_resources_route(self._pods),
            ],
            clock=parts.clock,
            wall_clock=parts.wall_clock,
        )
        log.info(f"Serving {serving.what}", address=self.server.address.url)

    def _health_routes(self) -> list[web.RouteDef]:
        """kube-scheduler's checks."""
        lease = self._lease
        leading: list[Check] = (
            []
            if lease is None
            else [("leaderElection", lambda: lease.why_not_healthy(self._clock()))]
        )
        ready: list[Check] = [
            *leading,
            ("shutdown", self._why_not_staying),
            ("sched-handler-sync", self._why_not_synced),
        ]
        return health_routes(healthz=leading, livez=[], readyz=ready)

    def _shown(self) -> Shown:
        return Shown(
            self.machine,
            self._notes.ring,
            self._notes.history,
            mode=self._parts.mode,
            clock=self._clock,
            measured=self._measuring.numbers,
            is_leader=self._may_schedule,
            diagnosis=self._measuring.diagnosis,
            stale_watches=self._outages.stale_watches,
        )

    async def _shut_down(
        self, writing: Sequence[asyncio.Task[None]], others: Sequence[asyncio.Task[None]]
    ) -> None:
        """Bindings end first; then the lease is released, while all else ends beside it."""
        await self.live.drain(DRAIN_SECONDS)
        failed = failures([*writing, *others])
        await end(writing)  # what they had begun is in line again
        failed_late, *_ = await asyncio.gather(
            self._end_leading(others),
            self._events.flush(FLUSH_SECONDS),
            self._comparing.end(),
            self._stop_serving(),
            self._notes.flush(),
        )
        failed += failed_late
        if failed:
            raise failed[0]

    async def _stop_serving(self) -> None:
        if self.server is not None:
            await self.server.stop()

    async def _end_leading(self, others: Sequence[asyncio.Task[None]]) -> list[BaseException]:
        """Conditions are the leader's to write; Events are not, and the next leader need not wait
        for them. Returns what had failed."""
        if self._may_schedule():
            await self._writes.flush(FLUSH_SECONDS)
        failed = failures(others)
        await end(others)
        return failed

    # What others ask of it.

    def _may_schedule(self) -> bool:
        return self._lease is None or self._lease.is_leader(self._clock())

    def _objection_to(self, pod: Pod) -> str | None:
        """Why an extender must not be told to bind it."""
        if not self._may_schedule():
            return "this process may not write any more"
        return self.machine.objection_to(pod)

    def _pods(self) -> Iterator[Pod]:
        """All that have not ended, on nodes and in line; those of the leader."""
        if self._may_schedule():
            yield from self.machine.state.placed_pods()
            yield from (each.pod for each in self.machine.queue)

    def _why_not_synced(self) -> str | None:
        return None if self.machine.is_synced else "handlers are not fully synchronized"

    def _why_not_staying(self) -> str | None:
        return "process is shutting down" if self._stopping.is_set() else None

    def _present_numbers(self) -> PresentNumbers:
        rejected: Counter[tuple[str, str]] = Counter(
            (plugin, queued.pod.spec.scheduler_name)
            for queued in self.machine.queue
            for plugin in queued.rejected_by
        )
        return PresentNumbers(
            pending_pods=self.machine.queue.lengths(),
            incoming_pods=self.machine.queue.incoming,
            unschedulable_pods=rejected,
            cached_nodes=self.machine.state.count,
            cached_pods=self.machine.state.placed_count,
            assumed_pods=self.machine.state.assumed_count,
            clamped_objects=self.machine.state.clamped_counts,
            bindings_in_flight=self.machine.binding_count,
            is_leader=self._may_schedule(),
        )

    def _make_whole_objects(self) -> WholeObjects | None:
        extenders = self._parts.config.extenders
        if not extenders:
            return None
        return WholeObjects(
            self._connection,
            scheduler_names=self.profiles,
            keeps_nodes=not all(extender.node_cache_capable for extender in extenders),
        )

    def _make_lease(self) -> LeaderLease | None:
        election = self._parts.config.leader_election
        if not election.leader_elect:
            return None
        return LeaderLease(
            self._lease_connection,
            namespace=election.resource_namespace,
            name=election.resource_name,
            identity=make_identity(),
            clock=self._clock,
            wall_clock=self._parts.wall_clock,
            timings=LeaseTimings(
                duration_seconds=election.lease_duration_seconds,
                renew_deadline_seconds=election.renew_deadline_seconds,
                retry_period_seconds=election.retry_period_seconds,
            ),
        )


def _rate_limit(config: KubeSchedulerConfiguration, clock: Clock) -> RateLimit | None:
    """Only where a user set one: the API server limits by itself."""
    connection = config.client_connection
    if not connection.qps:
        return None
    return RateLimit(per_second=connection.qps, burst=connection.burst or 100, clock=clock)
