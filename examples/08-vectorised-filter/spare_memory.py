"""A filter that judges all nodes at once: some memory of each node stays free, for what pods use
beyond what they request."""

from collections.abc import Iterator

import msgspec

from lowtide.framework.plugin import Nodes, Pod, Rejection
from lowtide.objects.requests import pod_requests


class SpareMemoryArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    percent: int = 10

    def problems(self) -> Iterator[tuple[str, str]]:
        if not 0 <= self.percent <= 100:
            yield "percent", f"must lie within 0 and 100, not {self.percent}"


class SpareMemory:
    name = "SpareMemory"
    args = SpareMemoryArgs

    def __init__(self, args: SpareMemoryArgs) -> None:
        self._percent = args.percent

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        allocatable = nodes.allocatable("memory")  # bytes, one per node
        spare = allocatable - nodes.requested("memory") - pod_requests(pod).get("memory", 0)
        too_little = spare * 100 < allocatable * self._percent
        yield Rejection(too_little, "node(s) had too little spare memory", eviction_helps=True)
