"""What goes into the machine besides the events of watches: readings, outcomes, turns."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable


@dataclass(frozen=True, slots=True)
class ReadingPublished:
    """What was measured for the rules that asked for `source`: fields by node, and those of any
    other node."""

    source: Hashable
    by_node: Mapping[str, Mapping[str, float]]
    of_others: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class BindingEnded:
    uid: str
    outcome: BindOutcome


@dataclass(frozen=True, slots=True)
class Turn:
    """Time to place one pod."""


Event = Added | Modified | Deleted | Listed | Unavailable | ReadingPublished | BindingEnded | Turn
