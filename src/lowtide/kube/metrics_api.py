"""Reads from the API server what nodes use, as metrics-server serves it (metrics.k8s.io).

App hands `node_usage` to the poller in telemetry."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from lowtide.input_limits import OBJECT_BYTES
from lowtide.kube.connection import Connection
from lowtide.kube.decoding import AnswerDecoder
from lowtide.kube.errors import ApiError, KubeError, Unreadable
from lowtide.kube.list_pieces import ListPieces
from lowtide.objects.node_metrics import NodeMetricsList
from lowtide.readings.rest import Rest, no_rest
from lowtide.readings.usage import NoUsage, UsageSample, sample_of

NODES_PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"
_TIMEOUT_SECONDS = 10.0
_WHAT: Final = f"The answer to GET {NODES_PATH}"

Samples = dict[str, UsageSample]
OffThread = Callable[[Callable[[], Samples]], Awaitable[Samples]]


class MetricsApi:
    """An answer about thousands of nodes is read by `off_thread`, on another thread."""

    def __init__(
        self, connection: Connection, *, off_thread: OffThread, rest: Rest = no_rest
    ) -> None:
        self._connection = connection
        self._off_thread = off_thread
        self._rest = rest
        self._decode = AnswerDecoder(NodeMetricsList).decode

    async def node_usage(self) -> Samples | NoUsage:
        """By node. Asked once: who polls will ask again soon."""
        try:
            response = await self._connection.request(
                "GET", NODES_PATH, timeout_seconds=_TIMEOUT_SECONDS, attempts=1
            )
            return await self._off_thread(partial(self._samples, response.body))
        except ApiError as error:
            return NoUsage(_reason(error))
        except KubeError as error:
            return NoUsage(str(error))

    def _samples(self, body: bytes) -> Samples:
        """In pieces: other threads wait while one is read."""
        pieces, found = ListPieces(), Samples()
        pieces.add(body)
        while (piece := pieces.next_piece()) is not None:
            try:
                found |= self._samples_of(piece)
            except Unreadable:
                continue  # cut in the wrong place, or no list at all: the end will tell
            pieces.drop_piece()
            self._rest()
        return found | self._samples_of(pieces.rest())

    def _samples_of(self, piece: bytearray) -> Samples:
        if len(piece) > OBJECT_BYTES:
            size = f"{OBJECT_BYTES >> 20} MiB"
            raise Unreadable(f"{_WHAT} has more than {size} that can only be read as one piece")
        listed = self._decode(piece, _WHAT)
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
