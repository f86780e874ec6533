"""Reads from the API server what nodes use, as metrics-server serves it (metrics.k8s.io).

App hands `node_usage` to the poller in telemetry."""

from typing import Final

from lowtide.kube.connection import Connection
from lowtide.kube.decoding import AnswerDecoder
from lowtide.kube.errors import ApiError, KubeError
from lowtide.objects.node_metrics import NodeMetricsList
from lowtide.readings.usage import NoUsage, UsageSample, sample_of

NODES_PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"
_TIMEOUT_SECONDS = 10.0


class MetricsApi:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._decoder = AnswerDecoder(NodeMetricsList)

    async def node_usage(self) -> dict[str, UsageSample] | NoUsage:
        """By node. Asked once: who polls will ask again soon."""
        try:
            response = await self._connection.request(
                "GET", NODES_PATH, timeout_seconds=_TIMEOUT_SECONDS, attempts=1
            )
            listed = self._decoder.decode(response.body, f"The answer to GET {NODES_PATH}")
        except ApiError as error:
            return NoUsage(_reason(error))
        except KubeError as error:
            return NoUsage(str(error))
        return {each.metadata.name: sample_of(each) for each in listed.items}


def _reason(error: ApiError) -> str:
    match error.status:
        case 404:
            return (
                "metrics-server is not installed: the API server does not know nodes.metrics.k8s.io"
            )
        case 403:
            return f"{error}; allow to list nodes.metrics.k8s.io"
        case _:
            return f"GET {NODES_PATH}: {error}"
