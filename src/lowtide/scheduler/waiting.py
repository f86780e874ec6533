"""Placements that wait for a rule's permission: the pod is assumed on its node, and is bound when
every rule that makes it wait has allowed it. Used by the machine."""

import heapq
import math
from dataclasses import dataclass

from lowtide.framework.decision import Decision
from lowtide.scheduler.placements import Placement

LONGEST_WAIT_SECONDS = 900.0
_FEW_DEADLINES = 64


@dataclass(frozen=True, slots=True)
class _Waiting:
    placement: Placement
    decision: Decision
    deadlines: dict[str, float]  # by the rule that makes it wait


_Deadline = tuple[float, int, _Waiting, str]  # with its number, and the rule that it is of


class WaitingPlacements:
    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}  # by uid
        self._deadlines: list[_Deadline] = []  # a heap, also of some that are void by now
        self._clean_at = _FEW_DEADLINES
        self._number = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting

    def placement(self, uid: str) -> Placement | None:
        waiting = self._waiting.get(uid)
        return None if waiting is None else waiting.placement

    def add(self, placement: Placement, decision: Decision, now: float) -> None:
        deadlines = {
            rule_name: now + min(seconds, LONGEST_WAIT_SECONDS)
            for rule_name, seconds in placement.waits.items()
        }
        waiting = _Waiting(placement, decision, deadlines)
        self._waiting[placement.queued.pod.uid] = waiting
        for rule_name, deadline in deadlines.items():
            self._number += 1
            heapq.heappush(self._deadlines, (deadline, self._number, waiting, rule_name))
        if len(self._deadlines) > self._clean_at:
            self._drop_void()

    def allow(self, uid: str, rule_name: str) -> Placement | None:
        """The placement where no rule makes it wait any longer."""
        waiting = self._waiting.get(uid)
        if waiting is None:
            return None
        waiting.deadlines.pop(rule_name, None)
        if waiting.deadlines:
            return None
        del self._waiting[uid]
        return waiting.placement

    def end(self, uid: str) -> tuple[Placement, Decision] | None:
        waiting = self._waiting.pop(uid, None)
        return None if waiting is None else (waiting.placement, waiting.decision)

    def overdue(self, now: float) -> tuple[str, str, str] | None:
        """The uid of a pod that has waited too long, for which rule, and what it is told."""
        first = self._first()
        if first is None or first[0] > now:
            return None
        _, _, waiting, rule_name = first
        seconds = min(waiting.placement.waits[rule_name], LONGEST_WAIT_SECONDS)
        waited = f"rejected due to timeout after waiting {_duration(seconds)}"
        return waiting.placement.queued.pod.uid, rule_name, f"{waited} at plugin {rule_name}"

    def next_deadline(self) -> float:
        first = self._first()
        return math.inf if first is None else first[0]

    def _first(self) -> _Deadline | None:
        while self._deadlines:
            if self._is_valid(self._deadlines[0]):
                return self._deadlines[0]
            heapq.heappop(self._deadlines)
        return None

    def _drop_void(self) -> None:
        self._deadlines = [each for each in self._deadlines if self._is_valid(each)]
        heapq.heapify(self._deadlines)
        self._clean_at = max(_FEW_DEADLINES, 2 * len(self._deadlines))

    def _is_valid(self, each: _Deadline) -> bool:
        """Whether the pod still waits for this rule, in the same attempt."""
        _, _, waiting, rule_name = each
        known = self._waiting.get(waiting.placement.queued.pod.uid)
        return known is waiting and rule_name in waiting.deadlines


def _duration(seconds: float) -> str:
    """As Go spells it: 15m0s, 1.5s, 250ms."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    text = f"{hours:g}h" if hours else ""
    text += f"{minutes:g}m" if text or minutes else ""
    return f"{text}{rest:g}s"
