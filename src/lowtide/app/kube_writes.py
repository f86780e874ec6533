"""What the scheduler writes to the cluster, done by the client of the API server."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import islice

from msgspec.structs import replace

from lowtide.app.kube_evictions import KubeEvictions
from lowtide.framework.plugin import BindOutcome, Pod
from lowtide.kube.backoff import Backoff
from lowtide.kube.errors import KubeError, is_forbidden, may_pass
from lowtide.kube.event_form import ObjectReference
from lowtide.kube.kube_events import KubeEvents
from lowtide.kube.pacing import write_behind_bindings
from lowtide.kube.timestamps import second_time
from lowtide.kube.writer import Outcome, Writer, Written
from lowtide.logs import Log
from lowtide.objects.pod import PodCondition
from lowtide.scheduler.actions import Evict, WriteCondition, WriteKubeEvent
from lowtide.scheduler.events import EvictionEnded

log = Log("scheduler")

CONCURRENT_CONDITIONS = 8
# A server that has just started knows no permissions yet: for some seconds it rejects everything.
MOST_REJECTIONS = 5
# As many pods as Kubernetes is built for; autoscalers go by the conditions of all of them.
MOST_WAITING_CONDITIONS = 150_000
_REREAD_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


class KubeBinder:
    """Binds by the API server. Where the answer leaves a doubt, it reads the pod until it knows.

    Also after a 404: a proxy may have said so, and the pod would never be tried again."""

    def __init__(
        self,
        writer: Writer,
        sleep: Sleep = asyncio.sleep,
        objection: Callable[[Pod], str | None] = lambda pod: None,
    ) -> None:
        """`objection` is asked in the step in which a binding is sent: why it must not be."""
        self._writer = writer
        self._sleep = sleep
        self._objection = objection
        self._has_warned = False

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        written = await self._writer.bind(
            pod.namespace, pod.name, pod.uid, node_name, lambda: self._objection(pod)
        )
        return await self.settle(pod, node_name, written)

    async def settle(self, pod: Pod, node_name: str, written: Written) -> BindOutcome:
        """What became of a binding that was written so."""
        match written.outcome:
            case Outcome.BOUND:
                return BindOutcome()
            case Outcome.UNKNOWN | Outcome.CONFLICT | Outcome.GONE:
                return await self.look_up(pod, node_name, written.message)
            case _:
                return BindOutcome(error=written.message)

    async def look_up(self, pod: Pod, node_name: str, message: str) -> BindOutcome:
        """What became of a binding that went wrong in this way."""
        try:
            found = await self._read(pod)
        except KubeError as error:
            return BindOutcome(error=f"{message}; what became of it is unknown: {error}")
        return _outcome(pod, node_name, found, message)

    async def look_up_again(self, pod: Pod, node_name: str) -> BindOutcome:
        """What became of a binding that was answered with success, but that no watch confirms. If
        the pod cannot be read, the answer stands."""
        try:
            found = await self._read(pod)
        except KubeError:
            return BindOutcome()
        message = (
            f"the binding to node {node_name} was answered with success, but the pod has no node"
        )
        return _outcome(pod, node_name, found, message)

    async def _read(self, pod: Pod) -> Pod | None:
        """Tries until the API server answers; KubeError when trying again is no use."""
        waits = iter(_REREAD_SECONDS)
        rejections = 0
        while True:
            try:
                return await self._writer.get_pod(pod.namespace, pod.name)
            except KubeError as error:
                rejections += is_forbidden(error)
                is_too_early = is_forbidden(error) and rejections < MOST_REJECTIONS
                if not may_pass(error) and not is_too_early:
                    self._warn_of_missing_permission(error)
                    raise
                log.v(2, "The pod cannot be read after a binding", pod=pod.key, err=str(error))
                await self._sleep(next(waits, _REREAD_SECONDS[-1]))

    def _warn_of_missing_permission(self, error: KubeError) -> None:
        if is_forbidden(error) and not self._has_warned:
            self._has_warned = True
            log.warning(
                "Doubtful bindings cannot be looked up; the scheduler needs permission to get pods",
                err=str(error),
            )


def _outcome(pod: Pod, node_name: str, found: Pod | None, message: str) -> BindOutcome:
    """`found` is the pod as it was read from the API server, None where there is none."""
    if found is None or found.uid != pod.uid:
        return BindOutcome(error=message, is_gone=True)
    if found.spec.node_name == node_name:
        return BindOutcome()
    return BindOutcome(error=message, is_gone=bool(found.spec.node_name))


class KubeWrites:
    """Conditions and Events of the machine, written to the API server.

    The newest condition of each pod waits in line; `run` writes them behind the bindings that
    `is_busy` tells of, and `flush`, once `run` has ended, what is left."""

    def __init__(
        self,
        writer: Writer,
        events: KubeEvents,
        wall_clock: Clock,
        *,
        is_busy: Callable[[], bool],
        say_more: Callable[[WriteKubeEvent], WriteKubeEvent] | None = None,
        sleep: Sleep = asyncio.sleep,
        most_waiting: int = MOST_WAITING_CONDITIONS,
    ) -> None:
        self._writer = writer
        self._events = events
        self._wall_clock = wall_clock
        self._is_busy = is_busy
        self._say_more = say_more
        self._sleep = sleep
        self._most_waiting = most_waiting
        self._waiting: dict[str, WriteCondition] = {}
        self._under_way: dict[str, asyncio.Event] = {}
        self._outdated: set[str] = set()  # of those under way
        self._rejections: Counter[str] = Counter()  # of what waits again
        self._backoff = Backoff()
        self._has_work = asyncio.Event()
        self._is_full = False
        self._evictions = KubeEvictions(writer, wall_clock)

    async def evict(self, action: Evict) -> EvictionEnded:
        """Sees to it that no nomination arrives after it was taken back."""
        for pod in action.nominated:
            await self._end_of_write(pod)
            waiting = self._waiting.get(pod.uid)
            if waiting is not None and waiting.nominated_node_name == action.node_name:
                self._waiting[pod.uid] = replace(waiting, nominated_node_name="")
        return await self._evictions.evict(action)

    def write_condition(self, action: WriteCondition) -> None:
        """Never waits: a newer condition takes the place of one that was not written yet, but for
        a nomination of which the newer one says nothing."""
        uid = action.pod.uid
        before = self._waiting.get(uid)
        if before is not None:
            action = _in_place_of(before, action)
        if uid not in self._waiting and len(self._waiting) >= self._most_waiting:
            if not self._is_full:
                self._is_full = True
                log.warning("Conditions of pods are left out", waiting=len(self._waiting))
            return
        self._waiting[uid] = action
        self._has_work.set()

    def write_event(self, action: WriteKubeEvent) -> None:
        if self._say_more is not None:
            action = self._say_more(action)
        self._events.record(
            _reference(action.pod),
            scheduler_name=action.scheduler_name,
            type=action.type,
            reason=action.reason,
            action=action.action,
            note=action.note,
            related=None if action.related is None else _reference(action.related),
        )

    def drop_condition(self, pod: Pod) -> None:
        """The pod is bound: a condition that says otherwise is out of date."""
        self._waiting.pop(pod.uid, None)
        self._rejections.pop(pod.uid, None)
        if pod.uid in self._under_way:
            self._outdated.add(pod.uid)

    async def before_binding(self, pod: Pod) -> None:
        """Sees to it that no older condition arrives after the binding."""
        self.drop_condition(pod)
        await self._end_of_write(pod)

    async def _end_of_write(self, pod: Pod) -> None:
        under_way = self._under_way.get(pod.uid)
        if under_way is not None:
            await under_way.wait()

    async def run(self) -> None:
        await write_behind_bindings(
            has_work=self._has_work,
            is_busy=self._is_busy,
            write_next=self._write_next,
            at_once=CONCURRENT_CONDITIONS,
            sleep=self._sleep,
        )

    async def flush(self, timeout_seconds: float) -> None:
        """Writes what waits, as far as the time allows."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._waiting:
                    await self._write_next(CONCURRENT_CONDITIONS)
        except TimeoutError:
            log.warning(
                "Some conditions of pods were not written",
                count=len(self._waiting),
                err=f"not done within {timeout_seconds:g} seconds",
            )
            self._waiting.clear()

    async def _write_next(self, limit: int) -> None:
        """Writes up to `limit` at once; a pod's next condition waits for the end of all of them.
        What the server did not take for now waits in line again; if it took nothing, all wait."""
        taken = [self._waiting.pop(uid) for uid in list(islice(self._waiting, limit))]
        self._under_way.update((action.pod.uid, asyncio.Event()) for action in taken)
        if not self._waiting:
            self._has_work.clear()
            self._is_full = False
        try:
            written = await asyncio.gather(*(self._write(action) for action in taken))
        finally:
            for action in taken:
                if action.pod.uid in self._under_way:  # it was cancelled: for flush
                    self._end_write(action, is_settled=False)
        if any(written):
            self._backoff.reset()
        elif written:
            await self._sleep(self._backoff.next_seconds())

    async def _write(self, action: WriteCondition) -> bool:
        """Whether that is settled; it is not where the server gave no answer or broke down."""
        pod = action.pod
        condition = PodCondition(
            type="PodScheduled",
            status="False",
            reason=action.reason,
            message=action.message,
            observed_generation=pod.metadata.generation,
            last_transition_time=self._transition_time(pod),
        )
        written = await self._writer.patch_pod_status(
            pod.namespace,
            pod.name,
            pod.uid,
            conditions=[condition],
            nominated_node_name=action.nominated_node_name,
        )
        is_settled = self._is_settled(pod, written.outcome)
        if is_settled and written.outcome not in (Outcome.WRITTEN, Outcome.GONE):
            log.warning("The condition of a pod was not written", pod=pod.key, err=written.message)
        self._end_write(action, is_settled=is_settled)
        return is_settled

    def _is_settled(self, pod: Pod, outcome: Outcome) -> bool:
        if outcome is Outcome.REJECTED:
            self._rejections[pod.uid] += 1
            return self._rejections[pod.uid] >= MOST_REJECTIONS
        return outcome is not Outcome.UNKNOWN

    def _end_write(self, action: WriteCondition, *, is_settled: bool) -> None:
        """Where it is not settled it waits again, unless there is a newer one."""
        uid = action.pod.uid
        if is_settled or uid in self._outdated:
            self._rejections.pop(uid, None)
        else:
            newer = self._waiting.get(uid)
            self._waiting[uid] = action if newer is None else _in_place_of(action, newer)
            self._has_work.set()
        self._outdated.discard(uid)
        self._under_way.pop(uid).set()

    def _transition_time(self, pod: Pod) -> str:
        for condition in pod.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                return condition.last_transition_time or second_time(self._wall_clock())
        return second_time(self._wall_clock())


def _in_place_of(older: WriteCondition, newer: WriteCondition) -> WriteCondition:
    """The newer one, with the older one's nomination where it says nothing of it."""
    if newer.nominated_node_name is not None:
        return newer
    return replace(newer, nominated_node_name=older.nominated_node_name)


def _reference(pod: Pod) -> ObjectReference:
    return ObjectReference(
        kind="Pod",
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        api_version="v1",
        resource_version=pod.metadata.resource_version,
    )
