"""What goes into the machine besides the events of watches: readings, outcomes, turns."""

from collections.abc import Hashable
from dataclasses import dataclass

from lowtide.cluster.reading import Reading
from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable


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
class Turn:
    """Time to place one pod."""


Event = Added | Modified | Deleted | Listed | Unavailable | ReadingPublished | BindingEnded | Turn
