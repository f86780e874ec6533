"""/metrics from a registry, in Prometheus's text form or OpenMetrics; app hands in the registry."""

import asyncio
from collections.abc import Iterator

from aiohttp import web
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

_TYPES_WITH_CREATION_TIMES = frozenset({"counter", "histogram", "summary"})


def metrics_routes(registry: CollectorRegistry) -> list[web.RouteDef]:
    """The route of /metrics; adds this process's own metrics, so once for each registry."""
    ProcessCollector(registry=registry)
    registry.register(TaskGauge())
    served = WithoutCreationTimes(registry)

    async def answer(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(served), headers={"Content-Type": content_type})

    return [web.get("/metrics", answer)]


class TaskGauge(Collector):
    """To be collected in the event loop whose tasks it counts."""

    def collect(self) -> Iterator[Metric]:
        tasks = GaugeMetricFamily("lowtide_tasks", "Tasks of the event loop that have not ended")
        tasks.add_metric((), len(asyncio.all_tasks()))
        yield tasks


class WithoutCreationTimes(Collector):
    """What a registry holds, less the _created series that kube-scheduler does not have."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            if metric.type in _TYPES_WITH_CREATION_TIMES:
                metric.samples = [
                    sample for sample in metric.samples if not sample.name.endswith("_created")
                ]
            yield metric
