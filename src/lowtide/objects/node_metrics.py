"""NodeMetrics, a node's usage as metrics-server reports it. Read by `kube.metrics_api`."""

from lowtide.objects.meta import ObjectMeta, Wire
from lowtide.objects.pod import Quantities


class NodeMetrics(Wire, frozen=True):
    """A node's usage between `timestamp - window` and `timestamp`."""

    metadata: ObjectMeta = ObjectMeta()
    timestamp: str = ""
    window: str = ""
    usage: Quantities = {}


class NodeMetricsList(Wire, frozen=True):
    items: list[NodeMetrics] = []
