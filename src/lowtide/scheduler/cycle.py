"""A cycle: one pod's turn, from the queue to a decision. It may stop to ask extenders; what happens
meanwhile is held until it has ended, so that the cluster it decides on stays as it was. Used by
the machine."""

import msgspec

from lowtide.framework.asking import Asking
from lowtide.framework.decision import Decision
from lowtide.framework.profile import Profile
from lowtide.scheduler.events import Event
from lowtide.scheduler.extending import Answer, ExtenderDialogue, Question
from lowtide.scheduler.queue import QueuedPod


class Cycle(msgspec.Struct, frozen=True):
    queued: QueuedPod
    profile: Profile
    asking: Asking
    dialogue: ExtenderDialogue[Decision]

    def go_on(self, answer: Answer | None) -> Question | Decision:
        """Until the next question or the end; raises what rules and extenders do."""
        try:
            # A generator is begun by sending it nothing.
            return self.dialogue.send(answer)  # type: ignore[arg-type]
        except StopIteration as ended:
            decision: Decision = ended.value
            return decision


class UnderWay:
    """The cycle that waits for an answer, if there is one, and the events held for it."""

    def __init__(self) -> None:
        self._cycle: Cycle | None = None
        self._held: list[Event] = []

    @property
    def is_any(self) -> bool:
        return self._cycle is not None

    def hold(self, event: Event) -> None:
        self._held.append(event)

    def wait(self, cycle: Cycle) -> None:
        self._cycle = cycle

    def take(self) -> Cycle | None:
        cycle, self._cycle = self._cycle, None
        return cycle

    def release(self) -> list[Event]:
        """What was held, in order."""
        held, self._held = self._held, []
        return held
