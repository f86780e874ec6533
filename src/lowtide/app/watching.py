"""What a mode on a cluster watches: nodes, pods that have not ended, and what its plugins depend
on.

Scheduler, extender, shadow and record run these."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from lowtide.kube.connection import Connection
from lowtide.kube.following import Outages
from lowtide.kube.watch import Event, Watch
from lowtide.objects.kinds import KIND_OF, NODE, POD, Kind

_UNENDED_PODS = "status.phase!=Succeeded,status.phase!=Failed"


def make_watches(
    connection: Connection,
    handle: Callable[[Event], None],
    plugins_by_kind: Mapping[type, Sequence[str]],
    *,
    outages: Outages,
    keep: Callable[[Any, msgspec.Raw], None] | None = None,
) -> list[Watch[Any]]:
    """`keep` is handed nodes and pods as the API server spells them."""

    def watch(kind: Kind[Any], **given: Any) -> Watch[Any]:
        return Watch(connection, kind, handle, following=outages.following(kind), **given)

    return [
        watch(POD, field_selector=_UNENDED_PODS, keep=keep),
        watch(NODE, keep=keep),
        *(watch(KIND_OF[kind], needed_by=names) for kind, names in plugins_by_kind.items()),
    ]
