"""Runs the advisor for the extender on a thread of its own, which owns the state and the plugins.
Every request gets an answer in time, whatever a plugin does.

The app hands in events; the server asks questions."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from lowtide.advisor.advice import (
    Asked,
    AskedPreemption,
    FilterAdvice,
    PreemptionAdvice,
    PriorityAdvice,
    neutral_filter,
    neutral_preemption,
    neutral_priorities,
)
from lowtide.advisor.advisor import FILTER, PRIORITIZE, Advisor
from lowtide.advisor.asked_rows import RowFinder
from lowtide.cluster.nodes import Nodes
from lowtide.framework.decision import ScoreTable
from lowtide.framework.plugin import PluginError
from lowtide.framework.profile import Profile
from lowtide.logs import Log
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.objects.times import epoch_seconds
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.events import Event, ReadingPublished
from lowtide.scheduler.log_lines import log_event, log_filter, log_priorities, log_reading

log = Log("extender")

T = TypeVar("T")
Clock = Callable[[], float]

SLOW: Final = "slow"
FAILED: Final = "failed"
# A plugin that takes longer than this counts as hung, and the process should be restarted.
HUNG_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 2.0
_TOLD_AGAIN_SECONDS: Final = 60.0
_MOST_TOLD: Final = 1000


class Counts(Protocol):
    """Counts events for /metrics."""

    def neutral_answer(self, verb: str, reason: str) -> None: ...

    def plugin_error(self, plugin_name: str) -> None: ...


# Called on the thread after the answer, with "" if the plugins gave it, or why it is neutral.
Tell = Callable[[str], None]


def _tell_nobody(neutral: str) -> None:
    """For read-only questions and preemption, which are not recorded."""


@dataclass(slots=True)
class _Question(Generic[T]):
    """Work for the thread. The thread writes the outcome and then wakes the waiting coroutine."""

    work: Callable[[], T] | None  # None: nobody waits for it any more
    awaited: asyncio.Future[None]
    tell: Tell = _tell_nobody
    outcome: tuple[T | None, Exception | None] | None = None
    given_up: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ended(self, result: T | None, error: Exception | None) -> bool:
        """Set the outcome. Return False if nobody waited for it any more."""
        with self.lock:
            if self.given_up:
                return False
            self.outcome = result, error
        # If the loop has ended, nobody waits any more.
        with suppress(RuntimeError):
            self.awaited.get_loop().call_soon_threadsafe(self.stop_waiting)
        return True

    def give_up(self, why: str) -> bool:
        """Stop waiting, and return True, unless there is an outcome."""
        with self.lock:
            if self.outcome is None:
                self.work, self.given_up = None, why
            return self.outcome is None

    def stop_waiting(self) -> None:
        if not self.awaited.done():
            self.awaited.set_result(None)

    def answer(self) -> T:
        assert self.outcome is not None
        result, error = self.outcome
        if error is not None:
            raise error
        return cast(T, result)


@dataclass(slots=True)
class _Told:
    """What was logged in the last minute, so that it is not logged with every request."""

    at: dict[str, float] = field(default_factory=dict)

    def is_due(self, text: str, now: float) -> bool:
        if now - self.at.get(text, -_TOLD_AGAIN_SECONDS) < _TOLD_AGAIN_SECONDS:
            return False
        if len(self.at) >= _MOST_TOLD:
            self.at.clear()
        self.at[text] = now
        return True


class Listening:
    """Logs and counts what the advisor does, on its thread. `on_answer` gets each answer that was
    handed out, with the time it began; `on_placed` gets the uid and node of each bound pod."""

    def __init__(
        self,
        counts: Counts,
        clock: Clock,
        *,
        reported_profiles: frozenset[str] = frozenset(),
        on_answer: Callable[[Decided, float], None] = lambda decided, began_at: None,
        on_placed: Callable[[str, str], None] = lambda uid, node_name: None,
    ) -> None:
        self._counts = counts
        self._clock = clock
        self._reported_profiles = reported_profiles  # answers of these are logged at any level
        self._told = _Told()
        self.answered = on_answer
        self.pod_placed = on_placed

    def plugin_failed(self, error: PluginError) -> None:
        self._counts.plugin_error(error.plugin_name)
        if self._told.is_due(str(error), self._clock()):
            log.error("A plugin failed; the answer is made without it", err=str(error))

    def wants_details(self, profile: Profile) -> bool:
        return profile.scheduler_name in self._reported_profiles or log.enabled(2)

    def filtered(self, pod: Pod, profile: Profile, nodes: Nodes) -> None:
        log_filter(pod, profile, nodes, at_info=profile.scheduler_name in self._reported_profiles)

    def scored(self, profile: Profile, scores: ScoreTable, nodes: Nodes) -> None:
        at_info = profile.scheduler_name in self._reported_profiles
        log_priorities(scores, profile, nodes, at_info=at_info)


class Advising:
    """`clock` is monotonic; `wall_clock` gives the ages of pods."""

    def __init__(
        self,
        advisor: Advisor,
        *,
        counts: Counts,
        clock: Clock,
        wall_clock: Clock,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._advisor = advisor
        self._counts = counts
        self._clock = clock
        self._wall_clock = wall_clock
        self._look_seconds = look_seconds
        self._inbox: SimpleQueue[Event | _Question[Any] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="advisor", daemon=True)
        self._busy_since: float | None = None
        self._is_warm = False
        self._told = _Told()
        self._finder = RowFinder(advisor.state)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Answer what was asked before, and stop. Wait at most 1 s for a plugin that hangs."""
        self._inbox.put(None)
        self._thread.join(timeout=1.0)

    def handle(self, event: Event) -> None:
        """Queue an event. Events and questions are processed in order of arrival."""
        self._inbox.put(event)

    # Called by the server.

    async def filter(self, asked: Asked) -> FilterAdvice:
        asked = self._looked_up(asked)
        waited = self._waited_seconds(asked.pod)

        def work() -> FilterAdvice:
            return self._advisor.filter(asked, now=self._clock(), waited_seconds=waited)

        budget, tell = self._budget_of(asked), self._telling(FILTER, asked, waited)
        return await self._ask(FILTER, asked.pod, budget, work, neutral_filter, tell)

    async def prioritize(self, asked: Asked) -> PriorityAdvice:
        asked = self._looked_up(asked)
        waited = self._waited_seconds(asked.pod)

        def work() -> PriorityAdvice:
            return self._advisor.prioritize(asked, now=self._clock(), waited_seconds=waited)

        budget, tell = self._budget_of(asked), self._telling(PRIORITIZE, asked, waited)
        neutral = partial(neutral_priorities, asked)
        return await self._ask(PRIORITIZE, asked.pod, budget, work, neutral, tell)

    async def preempt(self, asked: AskedPreemption) -> PreemptionAdvice:
        waited = self._waited_seconds(asked.pod)
        budget = self._advisor.settings_for(asked.pod).nodes_budget_seconds

        def work() -> PreemptionAdvice:
            return self._advisor.preempt(asked, now=self._clock(), waited_seconds=waited)

        return await self._ask(
            "preempt", asked.pod, budget, work, partial(neutral_preemption, asked)
        )

    async def look(self, look: Callable[[], T], /) -> T:
        """Run a read-only function on the thread, after everything queued before it, and return its
        result. Raise TimeoutError if that takes too long."""

        def looked() -> tuple[T | None, Exception | None]:
            try:
                return look(), None
            except Exception as error:  # raised to the caller, not logged
                return None, error

        seconds = self._look_seconds
        question = await self._put(looked, seconds)
        busy = f"the plugins are busy; no answer within {seconds:g} s"
        if question.give_up(busy):
            raise TimeoutError(busy)
        found, error = question.answer()
        if error is not None:
            raise error
        return cast(T, found)

    def why_not_ready(self) -> str | None:
        unlisted = self._advisor.unlisted
        if unlisted:
            return f"not listed yet: {', '.join(sorted(unlisted))}"
        return None if self._is_warm else "the plugins are warming up"

    def why_hung(self) -> str | None:
        """Why the process should be restarted; None if the thread is alive. While a plugin hangs,
        all answers are neutral."""
        since = self._busy_since
        seconds = 0.0 if since is None else self._clock() - since
        if seconds < HUNG_SECONDS:
            return None
        return f"the plugins have been busy with one thing for {seconds:.0f} s"

    def is_hung(self) -> bool:
        return self.why_hung() is not None

    # The thread and its queue.

    async def _ask(
        self,
        verb: str,
        pod: Pod,
        budget_seconds: float,
        work: Callable[[], T],
        neutral: Callable[[str], T],
        tell: Tell = _tell_nobody,
    ) -> T:
        """Return a neutral answer if the plugins fail or take too long. Raise QuantityError if the
        pod has an invalid quantity."""
        question = await self._put(work, budget_seconds, tell)
        reason, problem = SLOW, f"the plugins took longer than {budget_seconds * 1000:g} ms"
        try:
            if not question.give_up(problem):
                return question.answer()
        except QuantityError:
            raise
        except Exception as error:
            reason, problem = FAILED, f"{type(error).__name__}: {error}"
        self._counts.neutral_answer(verb, reason)
        if self._told.is_due(f"{verb} {reason}", self._clock()):
            log.warning("An answer is neutral", verb=verb, pod=pod.key, err=problem)
        return neutral(reason)

    async def _put(
        self, work: Callable[[], T], most_seconds: float, tell: Tell = _tell_nobody
    ) -> _Question[T]:
        """Queue a question. Return when it has an outcome, or after `most_seconds`."""
        loop = asyncio.get_running_loop()
        question = _Question(work, loop.create_future(), tell)
        self._inbox.put(question)
        timer = loop.call_later(most_seconds, question.stop_waiting)
        try:
            # A busy loop may wake later than the timer; an answer that came meanwhile counts.
            await question.awaited
        finally:
            timer.cancel()
        return question

    def _work(self) -> None:
        """The thread's main loop: process events and questions one by one."""
        while True:
            item = self._inbox.get()
            if item is None:
                return
            self._busy_since = self._clock()
            if isinstance(item, _Question):
                self._answer(item)
            else:
                self._apply(item)
            self._busy_since = None

    def _answer(self, question: _Question[Any]) -> None:
        work = question.work
        if work is None:
            self._tell(question, question.given_up)
            return
        try:
            outcome: tuple[Any, Exception | None] = work(), None
        except QuantityError as error:
            outcome = None, error
        except BaseException as error:  # includes SystemExit raised by a plugin
            log.exception("A request cannot be answered")
            outcome = None, RuntimeError(f"{type(error).__name__}: {error}")
        self._busy_since = None  # before the waiting coroutine can look at it
        if not question.ended(*outcome):
            self._tell(question, question.given_up)
        elif not isinstance(outcome[1], QuantityError):
            self._tell(question, "" if outcome[1] is None else str(outcome[1]))

    def _tell(self, question: _Question[Any], neutral: str) -> None:
        """Record an answer after it was handed out, so that a failure here cannot affect it."""
        try:
            question.tell(neutral)
        except Exception:
            log.exception("An answer cannot be recorded")

    def _telling(self, verb: str, asked: Asked, waited_seconds: float) -> Tell:
        pod, count, now = asked.pod, len(asked.names), self._clock()

        def tell(neutral: str) -> None:
            if neutral:
                self._advisor.was_neutral(
                    verb, pod, count, neutral, now=now, waited_seconds=waited_seconds
                )
            else:
                self._advisor.handed_out()

        return tell

    def _apply(self, event: Event) -> None:
        advisor = self._advisor
        try:
            try:
                log_event(event, advisor.state)
            finally:
                advisor.step(event, self._clock())
            if isinstance(event, ReadingPublished):
                log_reading(event.source, advisor.profiles.values(), advisor.state)
        except BaseException:
            log.exception("An event cannot be applied", event=type(event).__name__)
        if not self._is_warm and not advisor.unlisted:
            self._warm_up()

    def _warm_up(self) -> None:
        """Warm up the plugins. This only saves time, so a failure is logged and ignored."""
        try:
            self._advisor.warm_up()
        except BaseException as error:
            log.error("The plugins cannot be warmed up", err=f"{type(error).__name__}: {error}")
        self._is_warm = True

    def _looked_up(self, asked: Asked) -> Asked:
        """Look up the rows on this thread, whose core has just read the names into its cache."""
        if asked.nodes is not None:
            return asked
        return replace(asked, rows=self._finder.find_rows(asked.names))

    def _budget_of(self, asked: Asked) -> float:
        settings = self._advisor.settings_for(asked.pod)
        if asked.nodes is None:
            return settings.names_budget_seconds
        return settings.nodes_budget_seconds

    def _waited_seconds(self, pod: Pod) -> float:
        created = epoch_seconds(pod.metadata.creation_timestamp or "")
        return 0.0 if created is None else max(0.0, self._wall_clock() - created)
