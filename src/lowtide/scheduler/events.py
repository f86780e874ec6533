"""What goes into the machine besides the events of watches: readings, outcomes, turns."""

from collections.abc import Hashable
from dataclasses import dataclass

from lowtide.cluster.reading import Reading
from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable
from lowtide.objects.pod import Pod
from lowtide.scheduler.extending import Answer


@dataclass(frozen=True, slots=True)
class ReadingPublished:
    """What was measured for the rules that asked for `source`."""

    source: Hashable
    reading: Reading


@dataclass(frozen=True, slots=True)
class BindingEnded:
    uid: str
    outcome: BindOutcome


@dataclass(frozen=True, slots=True)
class EvictionEnded:
    """The writes for the pod with this uid have ended: whom they evicted, the uids of those that
    were gone before, and what went wrong."""

    uid: str
    evicted: tuple[Pod, ...] = ()
    gone: frozenset[str] = frozenset()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PermitAnswered:
    """A rule that made a pod wait lets it go, or says why not."""

    uid: str
    rule_name: str
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class ExtendersAnswered:
    """What was asked in the course of the cycle that is under way."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Turn:
    """Time to place one pod."""


Event = (
    Added
    | Modified
    | Deleted
    | Listed
    | Unavailable
    | ReadingPublished
    | BindingEnded
    | EvictionEnded
    | PermitAnswered
    | ExtendersAnswered
    | Turn
)
