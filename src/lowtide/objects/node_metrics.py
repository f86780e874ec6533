"""NodeMetrics, what metrics-server says of a node; `kube.metrics_api` reads it."""

from lowtide.objects.meta import ObjectMeta, Wire
from lowtide.objects.pod import Amounts


class NodeMetrics(Wire, frozen=True):
    """What the node used from `timestamp - window` to `timestamp`."""

    metadata: ObjectMeta = ObjectMeta()
    timestamp: str = ""
    window: str = ""
    usage: Amounts = {}


class NodeMetricsList(Wire, frozen=True):
    items: list[NodeMetrics] = []
