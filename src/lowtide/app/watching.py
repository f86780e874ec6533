"""What a mode on a cluster watches: nodes, pods that have not ended, and what its rules depend on.

The scheduler and the extender run these."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from lowtide.app.clocks import Clock
from lowtide.kube.connection import Connection
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
    return [
        Watch(connection, POD, handle, clock=clock, field_selector=_UNENDED_PODS, keep=keep),
        Watch(connection, NODE, handle, clock=clock, keep=keep),
        *(
            Watch(connection, KIND_OF[kind], handle, clock=clock, needed_by=rule_names)
            for kind, rule_names in rules_by_kind.items()
        ),
    ]
