"""Feeds a recording to a fresh machine, and compares what it decides with what was decided.

Pure: `app/replay` makes the machine and reads the file."""

from collections.abc import Sequence
from itertools import zip_longest

import msgspec

from lowtide.records.decision_form import (
    DecisionForm,
    decision_form,
    first_plugin_that_differs,
    what_differs,
)
from lowtide.records.recording import Step
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.machine import Machine

# All of the differences that are kept, some 200 characters each; others are counted.
_MOST_CHARACTERS = 10_000_000


class Difference(msgspec.Struct, frozen=True, rename="camel"):
    """A decision that came out differently. A node is None where the pod got none; where one side
    decided nothing at all, `what` says so."""

    line: int  # of the event that led to it
    pod: str
    attempt: int
    recorded_node: str | None
    replayed_node: str | None
    first_plugin: str  # whose scores differ; "" where none do
    what: str


class Replay:
    def __init__(self, machine: Machine, *, with_reasons: bool) -> None:
        self._machine = machine
        self._with_reasons = with_reasons
        self.event_count = 0
        self.decision_count = 0
        self.different_count = 0
        self.differences: list[Difference] = []  # the first ones
        self._characters = 0

    def take(self, step: Step) -> None:
        self.event_count += 1
        if step.event is None:
            self._machine.has_work(step.now)
            return
        actions = self._machine.step(step.event, step.now)
        self._compare(
            step,
            [
                decision_form(action, with_reasons=self._with_reasons)
                for action in actions
                if isinstance(action, Decided)
            ],
        )

    def _compare(self, step: Step, replayed: Sequence[DecisionForm]) -> None:
        self.decision_count += len(step.decisions)
        for recorded, again in zip_longest(step.decisions, replayed):
            if recorded != again:
                self._note(_difference(step.line, recorded, again))

    def _note(self, difference: Difference) -> None:
        self.different_count += 1
        self._characters += len(repr(difference))
        if self._characters <= _MOST_CHARACTERS:
            self.differences.append(difference)


def _difference(
    line: int, recorded: DecisionForm | None, replayed: DecisionForm | None
) -> Difference:
    if recorded is None or replayed is None:
        one = recorded or replayed
        assert one is not None
        where = "the recording" if recorded is None else "the replay"
        return Difference(
            line=line,
            pod=one.pod,
            attempt=one.attempt,
            recorded_node=None if recorded is None else recorded.node,
            replayed_node=None if replayed is None else replayed.node,
            first_plugin="",
            what=f"{where} has no such decision",
        )
    return Difference(
        line=line,
        pod=recorded.pod,
        attempt=recorded.attempt,
        recorded_node=recorded.node,
        replayed_node=replayed.node,
        first_plugin=first_plugin_that_differs(recorded, replayed),
        what=what_differs(recorded, replayed),
    )
