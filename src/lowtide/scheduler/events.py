"""What goes into the machine besides the events of watches: readings, outcomes, turns."""

from collections.abc import Hashable

import msgspec

from lowtide.cluster.reading import Reading
from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable
from lowtide.objects.pod import Pod
from lowtide.scheduler.extending import Answer


class ReadingPublished(msgspec.Struct, frozen=True):
    """What was measured for the plugins that asked for `source`."""

    source: Hashable
    reading: Reading


class BindingEnded(msgspec.Struct, frozen=True):
    uid: str
    outcome: BindOutcome


class BindingLookedUp(msgspec.Struct, frozen=True):
    """What the API server says of a pod whose binding was answered with success before."""

    uid: str
    outcome: BindOutcome


class EvictionEnded(msgspec.Struct, frozen=True):
    """The writes for the pod with this uid have ended: whom they evicted, the uids of those that
    were gone before, and what went wrong."""

    uid: str
    evicted: tuple[Pod, ...] = ()
    gone: frozenset[str] = frozenset()
    error: str | None = None


class PermitAnswered(msgspec.Struct, frozen=True):
    """A plugin that made a pod wait lets it go, or says why not."""

    uid: str
    plugin_name: str
    rejection: str | None = None


class ExtendersAnswered(msgspec.Struct, frozen=True):
    """What was asked in the course of the cycle that is under way."""

    answer: Answer


class Turn(msgspec.Struct, frozen=True):
    """Time to place one pod."""


Event = (
    Added
    | Modified
    | Deleted
    | Listed
    | Unavailable
    | ReadingPublished
    | BindingEnded
    | BindingLookedUp
    | EvictionEnded
    | PermitAnswered
    | ExtendersAnswered
    | Turn
)
