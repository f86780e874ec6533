"""The machine's input besides watch events: readings, outcomes, turns."""

from collections.abc import Hashable

import msgspec

from lowtide.cluster.reading import Reading
from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable
from lowtide.objects.pod import Pod
from lowtide.scheduler.extending import Answer


class ReadingPublished(msgspec.Struct, frozen=True):
    """A new reading for the plugins that requested `source`."""

    source: Hashable
    reading: Reading


class BindingEnded(msgspec.Struct, frozen=True):
    uid: str
    outcome: BindOutcome


class BindingLookedUp(msgspec.Struct, frozen=True):
    """What the API server says about a pod whose binding had succeeded."""

    uid: str
    outcome: BindOutcome


class EvictionEnded(msgspec.Struct, frozen=True):
    """The writes of the eviction for the pod `uid` have ended: the pods that they evicted, the uids
    of those that were gone before, and the error, if any."""

    uid: str
    evicted: tuple[Pod, ...] = ()
    gone: frozenset[str] = frozenset()
    error: str | None = None


class PermitAnswered(msgspec.Struct, frozen=True):
    """A plugin that made a pod wait in Permit allows or rejects it."""

    uid: str
    plugin_name: str
    rejection: str | None = None


class ExtendersAnswered(msgspec.Struct, frozen=True):
    """The answer to the question at which the cycle pauses."""

    answer: Answer


class Turn(msgspec.Struct, frozen=True):
    """Lets the machine place one pod."""


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
