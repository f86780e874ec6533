"""Drives the machine in real time, on one asyncio thread.

Watches and pollers pass events to `handle`; `run` takes turns while there is work. Each binding
runs as a task of its own and passes its outcome back as an event.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from lowtide.framework.plugin import BindOutcome, Pod
from lowtide.logs import Log
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.scheduler.actions import (
    Action,
    AskExtenders,
    AttemptFailed,
    Bind,
    Decided,
    Evict,
    LookUpBinding,
    PluginFailed,
    WriteCondition,
    WriteKubeEvent,
)
from lowtide.scheduler.attempts import Attempts
from lowtide.scheduler.events import (
    BindingEnded,
    BindingLookedUp,
    Event,
    EvictionEnded,
    ExtendersAnswered,
    ReadingPublished,
    Turn,
)
from lowtide.scheduler.extending import Answer, ExtenderFailed, Question
from lowtide.scheduler.hooks import BindingExtenders, Hooks
from lowtide.scheduler.log_lines import log_decision, log_event, log_reading
from lowtide.scheduler.machine import Machine
from lowtide.scheduler.metrics import SchedulerMetrics
from lowtide.scheduler.tasks import Tasks

log = Log("scheduler")

# With 64, an API server on two cores usually closed the watches of other clients while 3000 pods
# were scheduled, because they could not keep up. With 32 it seldom did.
MOST_BINDINGS_IN_FLIGHT = 32
_TURNS_BETWEEN_YIELDS = 8
_HELD_BACK_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 3600.0
_ENDS = "the process ends"


class ClusterWrites(Protocol):
    """Writes to the cluster other than bindings."""

    def write_condition(self, action: WriteCondition) -> None: ...
    def write_event(self, action: WriteKubeEvent) -> None: ...
    def drop_condition(self, pod: Pod) -> None: ...
    async def before_binding(self, pod: Pod) -> None: ...
    async def evict(self, action: Evict) -> EvictionEnded: ...


class AskedExtenders(BindingExtenders, Protocol):
    async def answer(self, question: Question) -> Answer: ...


class EventRecorder(Protocol):
    """Receives every event that the machine is given, in order, and every decision."""

    def applied(self, event: Event, now: float) -> None: ...
    def decided(self, decided: Decided) -> None: ...
    def looked(self, now: float) -> None:
        """The check for work moved pods whose backoff or wait had ended."""


class Live:
    def __init__(
        self,
        machine: Machine,
        *,
        writes: ClusterWrites,
        metrics: SchedulerMetrics,
        clock: Callable[[], float],
        may_schedule: Callable[[], bool],
        look_up: Callable[[Pod, str], Awaitable[BindOutcome]],
        most_bindings: int = MOST_BINDINGS_IN_FLIGHT,
        on_decision: Callable[[Decided, float], None] = lambda decided, began_at: None,
        extenders: AskedExtenders | None = None,
        recorder: EventRecorder | None = None,
    ) -> None:
        self.machine = machine
        self._recorder = recorder
        self._extenders = extenders
        self._writes = writes
        self._metrics = metrics
        self._clock = clock
        self._may_schedule = may_schedule
        self._look_up = look_up
        self._most_bindings = most_bindings
        self._sending = asyncio.Semaphore(most_bindings)
        self._on_decision = on_decision
        self._something_happened = asyncio.Event()
        self._hooks = Hooks(metrics, clock, extenders)
        self._tasks = Tasks()
        self._left_pods: set[str] = set()  # uids of pods left to the next leader
        self._attempts = Attempts(machine.pods, metrics, clock)
        self._preparing_count = 0
        self._failure: Exception | None = None

    def handle(self, event: Event) -> None:
        """Apply an event at once and start the actions that follow from it."""
        log_event(event, self.machine.state)
        match event:
            case Added(object=Pod() as pod) | Modified(object=Pod() as pod) if pod.spec.node_name:
                self._writes.drop_condition(pod)
            case Deleted(object=Pod() as pod):
                self._attempts.forget(pod)
        self._perform(self._step(event, self._clock()))
        if isinstance(event, ReadingPublished):
            log_reading(event.source, self.machine.profiles.values(), self.machine.state)
        self._something_happened.set()

    async def run(self) -> None:
        """Take turns until `drain` is called. Raise the first error in handling an outcome."""
        while not self._tasks.are_ending and self._failure is None:
            self._something_happened.clear()
            await self._take_turns()
            await self._wait()
        if self._failure is not None:
            raise self._failure

    async def drain(self, timeout_seconds: float) -> None:
        """Take no more turns. Pods whose binding was not sent yet are left to the next leader. Wait
        for the other tasks, and cancel them after the timeout."""
        self._something_happened.set()
        await self._tasks.end(timeout_seconds)

    async def pause(self, seconds: float) -> None:
        """Sleep before a binding is sent again; `drain` does not wait for such a binding."""
        with self._tasks.unsent():
            await asyncio.sleep(seconds)

    def wake(self) -> None:
        """Check again whether it may schedule, for example after the lease was won."""
        self._something_happened.set()

    @property
    def is_busy(self) -> bool:
        """Whether bindings are under way or about to start."""
        return self._binding_count > 0 or self._may_take_turn()

    @property
    def _binding_count(self) -> int:
        """Without bindings in PreBind: with volumes, that may take minutes."""
        return self.machine.binding_count - self._preparing_count

    async def _take_turns(self) -> None:
        turns = 0
        while self._may_take_turn():
            self._attempts.turn_began_at = now = self._clock()
            self._perform(self._step(Turn(), now))
            turns += 1
            if turns % _TURNS_BETWEEN_YIELDS == 0:
                await asyncio.sleep(0)

    def _may_take_turn(self) -> bool:
        return (
            not self._tasks.are_ending
            and self._failure is None
            and not self._is_held_back()
            and self._has_work(self._clock())
        )

    def _has_work(self, now: float) -> bool:
        if self._recorder is None:
            return self.machine.has_work(now)
        queue = self.machine.queue
        before = queue.incoming.total(), queue.next_change_at()
        has_work = self.machine.has_work(now)
        if (queue.incoming.total(), queue.next_change_at()) != before:
            self._recorder.looked(now)
        return has_work

    def _step(self, event: Event, now: float) -> list[Action]:
        """The only way into the machine, so that a recording has everything in order."""
        if self._recorder is None:
            return self.machine.step(event, now)
        self._recorder.applied(event, now)
        actions = self.machine.step(event, now)
        for action in actions:
            if isinstance(action, Decided):
                self._recorder.decided(action)
        return actions

    def _is_held_back(self) -> bool:
        """Whether ready pods must wait: for bindings to end, or for the lease."""
        return self._binding_count >= self._most_bindings or not self._may_schedule()

    async def _wait(self) -> None:
        """Wait for an event, or until time alone makes a pod ready."""
        if self._is_held_back():
            seconds = _HELD_BACK_SECONDS
        else:
            seconds = min(self.machine.next_change_at() - self._clock(), _LONGEST_WAIT_SECONDS)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(max(seconds, 0.0), self._something_happened.set)
        try:
            await self._something_happened.wait()
        finally:
            timer.cancel()

    # Actions of the machine.

    def _perform(self, actions: list[Action]) -> None:
        for action in actions if not self._left_pods else self._without_left_pods(actions):
            match action:
                case Decided():
                    self._note_decision(action)
                case Bind():
                    self._tasks.start(self._bind(action))
                case LookUpBinding():
                    self._tasks.start(self._confirm(action))
                case Evict():
                    self._metrics.preempted(len(action.victims))
                    self._tasks.start(self._evict(action))
                case AskExtenders(question):
                    self._tasks.start(self._ask(question))
                case WriteCondition():
                    self._writes.write_condition(action)
                case WriteKubeEvent():
                    self._writes.write_event(action)
                case AttemptFailed(pod=pod, error=error):
                    log.error("Error scheduling pod; retrying", pod=pod.key, err=error)
                    self._attempts.failed(pod)
                case PluginFailed(plugin_name=plugin_name, error=error):
                    log.error("A plugin failed", plugin=plugin_name, err=error)
                    self._metrics.plugin_failed(plugin_name)

    def _without_left_pods(self, actions: list[Action]) -> list[Action]:
        """Without reports about pods that are left to the next leader."""
        reports = WriteCondition | WriteKubeEvent | AttemptFailed
        return [
            each
            for each in actions
            if not (isinstance(each, reports) and each.pod.uid in self._left_pods)
        ]

    def _note_decision(self, decided: Decided) -> None:
        profile = self.machine.profiles[decided.decision.scheduler_name]
        log_decision(decided, profile, self.machine.state.nodes())
        self._on_decision(decided, self._attempts.began_at(decided.decision.pod))
        self._attempts.decided(decided)

    async def _bind(self, bind: Bind) -> None:
        """Whatever happens, the machine gets an outcome. An error in handling it ends `run`."""
        if log.enabled(2):
            log.v(2, "Attempting to bind pod to node", pod=bind.pod.key, node=bind.node_name)
        try:
            outcome = await self._outcome_of(bind)
            try:
                if outcome.error is None:
                    self._attempts.bound(bind)
            finally:
                self.handle(BindingEnded(bind.pod.uid, outcome))
        except Exception as error:
            log.exception("Handling the outcome of a binding failed", pod=bind.pod.key)
            self._failure = self._failure or error
            self._something_happened.set()

    async def _confirm(self, action: LookUpBinding) -> None:
        """Read the pod of a binding that the watch does not confirm. If that fails, the binding
        counts as done, and is looked up again later."""
        pod, node_name = action.pod, action.node_name
        try:
            with self._tasks.unsent():
                outcome = await self._look_up(pod, node_name)
        except Exception:
            log.exception("Looking up a binding failed", pod=pod.key, node=node_name)
            outcome = BindOutcome()
        if outcome.error is not None and not outcome.is_gone:
            log.warning(
                "A binding was answered with success, but not applied", pod=pod.key, node=node_name
            )
        self._hand_back(BindingLookedUp(pod.uid, outcome))

    async def _evict(self, evict: Evict) -> None:
        """Whatever happens, the machine gets `EvictionEnded`: the pod waits for it."""
        try:
            ended = await self._writes.evict(evict)
        except Exception as error:
            log.exception("An eviction failed", preemptor=evict.pod.key, node=evict.node_name)
            problem = f"the eviction failed: {str(error) or type(error).__name__}"
            ended = EvictionEnded(evict.pod.uid, error=problem)
        if ended.error is not None:
            log.error("Error occurred during preemption", pod=evict.pod.key, err=ended.error)
        self._hand_back(ended)

    def _hand_back(self, event: Event) -> None:
        """Pass an outcome to the machine. An error in handling it ends `run`."""
        try:
            self.handle(event)
        except Exception as error:
            log.exception("Handling an outcome failed", outcome=type(event).__name__)
            self._failure = self._failure or error
            self._something_happened.set()

    async def _ask(self, question: Question) -> None:
        """Whatever happens, the machine gets an answer: its cycle waits for it."""
        assert self._extenders is not None
        try:
            with self._tasks.unsent():
                answer = await self._extenders.answer(question)
        except asyncio.CancelledError:
            # The machine holds events until it gets an answer, and must still apply them.
            self._leave(question.pod, ExtendersAnswered(ExtenderFailed(_ENDS)))
            raise
        except Exception as error:
            log.exception("Asking an extender failed", pod=question.pod.key)
            answer = ExtenderFailed(str(error) or type(error).__name__)
        if isinstance(answer, ExtenderFailed):
            log.warning("An extender failed", pod=question.pod.key, err=answer.error)
        self._hand_back(ExtendersAnswered(answer))

    async def _outcome_of(self, bind: Bind) -> BindOutcome:
        try:
            with self._tasks.unsent():
                await self._writes.before_binding(bind.pod)
                problem = await self._prepare(bind)
                if problem is not None:
                    return BindOutcome(error=problem)
                # Turns respect this limit, but a plugin may let more pods go from Permit at once.
                await self._sending.acquire()
            try:
                return await self._hooks.bind(bind)
            finally:
                self._sending.release()
        except asyncio.CancelledError:
            if self._tasks.are_ending or _is_being_cancelled():
                self._leave(bind.pod, BindingEnded(bind.pod.uid, BindOutcome(error=_ENDS)))
                raise
            problem = "a plugin cancelled it"
        except Exception as error:
            problem = str(error) or type(error).__name__
            log.exception("A binding hook failed", pod=bind.pod.key, node=bind.node_name)
        return BindOutcome(error=f"binding failed: {problem}")

    def _leave(self, pod: Pod, ended: Event) -> None:
        """The process ends before the pod is known to be bound. The next leader sees the pod, so
        nothing is reported."""
        self._left_pods.add(pod.uid)
        self._hand_back(ended)

    async def _prepare(self, bind: Bind) -> str | None:
        """Run the PreBind plugins. Return why the pod cannot be bound; None if it can."""
        was_held_back = self._is_held_back()
        self._preparing_count += 1
        if was_held_back:
            self._something_happened.set()
        try:
            return await self._hooks.prepare(bind)
        finally:
            self._preparing_count -= 1


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
