"""metrics.k8s.io of the embedded cluster: what metrics-server would say each node uses.

Tests and the demo set it by LocalCluster.usage; ApiServer serves it."""

from collections.abc import Callable

from lowtide.localcluster.documents import Json
from lowtide.localcluster.failures import method_not_allowed, not_found, unknown_resource
from lowtide.localcluster.timestamps import timestamp

METRICS_API = "/apis/metrics.k8s.io/v1beta1"
_API_VERSION = METRICS_API.removeprefix("/apis/")
_WINDOW = "15s"


class UsageModel:
    """A node that nothing was set for has no metrics, as one that was never scraped."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._usage: dict[str, dict[str, str]] = {}

    def set(self, node_name: str, *, cpu: str, memory: str = "1Gi") -> None:
        self._usage[node_name] = {"cpu": cpu, "memory": memory}

    def remove_node(self, node_name: str) -> None:
        self._usage.pop(node_name, None)

    def answer(self, method: str, path: str) -> Json:
        """`path` is below METRICS_API; StatusError where there is no such thing."""
        plural, _, name = path.strip("/").partition("/")
        if plural != "nodes":
            raise unknown_resource()
        if method != "GET":
            raise method_not_allowed()
        if not name:
            items = [self._item(each) for each in sorted(self._usage)]
            about = {"kind": "NodeMetricsList", "apiVersion": _API_VERSION, "metadata": {}}
            return {**about, "items": items}
        if name not in self._usage:
            raise not_found("nodes.metrics.k8s.io", name)
        return {"kind": "NodeMetrics", "apiVersion": _API_VERSION, **self._item(name)}

    def _item(self, name: str) -> Json:
        now = timestamp(self._clock())
        metadata = {"name": name, "creationTimestamp": now}
        usage = self._usage[name]
        return {"metadata": metadata, "timestamp": now, "window": _WINDOW, "usage": usage}
