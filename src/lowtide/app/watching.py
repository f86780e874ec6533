"""What a mode on a cluster watches: nodes, pods that have not ended, and what its rules depend on.

Scheduler, extender and shadow run these, and tell on the page when they do not keep up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from lowtide.app.clocks import Clock
from lowtide.kube.connection import Connection
from lowtide.kube.following import Lost
from lowtide.kube.outages import Outages
from lowtide.kube.watch import Event, Watch
from lowtide.objects.kinds import KIND_OF, NODE, POD

# So long a start waits for what is measured, so that the first pods are placed by it.
FIRST_READING_SECONDS = 5.0
_UNENDED_PODS = "status.phase!=Succeeded,status.phase!=Failed"


class NotRenewed(msgspec.Struct, frozen=True):
    """What is believed of these objects is as old as `since`, by the clock of the watches."""

    since: float
    plurals: list[str]
    why: str


def not_renewed(watched: Iterable[Lost | None]) -> NotRenewed | None:
    """What each watch has lost, together; None where all of them keep up."""
    lost = [each for each in watched if each is not None]
    if not lost:
        return None
    first = min(lost, key=lambda each: each.since)
    return NotRenewed(first.since, [each.plural for each in lost], first.why)


def make_watches(
    connection: Connection,
    handle: Callable[[Event], None],
    rules_by_kind: Mapping[type, Sequence[str]],
    *,
    clock: Clock,
    keep: Callable[[Any, msgspec.Raw], None] | None = None,
) -> list[Watch[Any]]:
    """`keep` is handed nodes and pods as the API server spells them."""
    watch = partial(Watch[Any], connection, handle=handle, clock=clock, outages=Outages(clock))
    return [
        watch(POD, field_selector=_UNENDED_PODS, keep=keep),
        watch(NODE, keep=keep),
        *(watch(KIND_OF[kind], needed_by=names) for kind, names in rules_by_kind.items()),
    ]
