"""What a mode on a cluster watches: nodes, pods that have not ended, and what its rules depend on.

The scheduler and the extender run these."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from lowtide.app.clocks import Clock
from lowtide.kube.connection import Connection
from lowtide.kube.outages import Outages
from lowtide.kube.watch import Event, Watch
from lowtide.objects.kinds import KIND_OF, NODE, POD

# So long a start waits for what is measured, so that the first pods are placed by it.
FIRST_READING_SECONDS = 5.0
_UNENDED_PODS = "status.phase!=Succeeded,status.phase!=Failed"


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
