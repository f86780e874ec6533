"""What goes into the machine besides the events of watches: readings, outcomes, turns."""

from dataclasses import dataclass

from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable
from lowtide.readings.reading import TrafficReading


@dataclass(frozen=True, slots=True)
class ReadingPublished:
    reading: TrafficReading


@dataclass(frozen=True, slots=True)
class BindingEnded:
    uid: str
    outcome: BindOutcome


@dataclass(frozen=True, slots=True)
class Turn:
    """Time to place one pod."""


Event = Added | Modified | Deleted | Listed | Unavailable | ReadingPublished | BindingEnded | Turn
