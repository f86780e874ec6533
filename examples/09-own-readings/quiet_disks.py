"""A plugin with readings of its own: pods go to nodes whose disks are idle, by a query that the
plugin itself asks Prometheus."""

from collections.abc import Iterator

import msgspec
import numpy as np

from lowtide.framework.plugin import MAX_SCORE, IntArray, Nodes, Pod
from lowtide.readings.access import PrometheusArgs
from lowtide.readings.prometheus_query import PrometheusQuery

# The share of time in which the node's busiest disk had something to do.
BUSY = "max by (instance, job, node) (rate(node_disk_io_time_seconds_total[1m]))"


class QuietDisksArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    prometheus_address: str = ""
    prometheus: PrometheusArgs = PrometheusArgs()  # certificates, a token, more addresses ...
    promql: str = BUSY

    def problems(self) -> Iterator[tuple[str, str]]:
        for field, text in self.prometheus.problems():
            yield "prometheus", f"{field} {text}"


class QuietDisks:
    name = "QuietDisks"
    args = QuietDisksArgs

    def __init__(self, args: QuietDisksArgs) -> None:
        self._busy = PrometheusQuery(
            access=args.prometheus.access(args.prometheus_address),
            promql=args.promql,
            every_seconds=15.0,
            stale_after_seconds=60.0,
        )
        self.readings = (self._busy,)

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        if np.isnan(self._busy.values(nodes.everything)).all():
            return None
        busy = self._busy.values(nodes).clip(0.0, 1.0)
        # A node that nothing is known of is neither favoured nor avoided.
        busy = np.where(np.isnan(busy), 0.5, busy)
        scores: IntArray = np.rint((1.0 - busy) * MAX_SCORE).astype(np.int64)
        return scores
