"""Placements that wait for a rule's permission: the pod is assumed on its node, and is bound when
every rule that makes it wait has allowed it. Used by the machine."""

import math
from dataclasses import dataclass

from lowtide.framework.decision import Decision
from lowtide.scheduler.placements import Placement

LONGEST_WAIT_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class _Waiting:
    placement: Placement
    decision: Decision
    deadlines: dict[str, float]  # by the rule that makes it wait


class WaitingPlacements:
    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}  # by uid

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
        self._waiting[placement.queued.pod.uid] = _Waiting(placement, decision, deadlines)

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
        for uid, waiting in self._waiting.items():
            rule_name, deadline = min(waiting.deadlines.items(), key=lambda each: each[1])
            if deadline <= now:
                seconds = min(waiting.placement.waits[rule_name], LONGEST_WAIT_SECONDS)
                waited = f"rejected due to timeout after waiting {_duration(seconds)}"
                return uid, rule_name, f"{waited} at plugin {rule_name}"
        return None

    def next_deadline(self) -> float:
        return min(
            (when for waiting in self._waiting.values() for when in waiting.deadlines.values()),
            default=math.inf,
        )


def _duration(seconds: float) -> str:
    """As Go spells it: 15m0s, 1.5s, 250ms."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    text = f"{hours:g}h" if hours else ""
    text += f"{minutes:g}m" if text or minutes else ""
    return f"{text}{rest:g}s"
