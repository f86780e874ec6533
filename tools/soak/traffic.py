"""A Prometheus that knows the nodes which there are at the moment, each with one link whose traffic
goes up and down."""

import json
import math
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs

from realparts.answering import AnsweringServer, Question
from soak.objects import node_name

LINK_BYTES_PER_SECOND = 1.25e9
SWING_SECONDS = 600.0

Json = dict[str, Any]


class ModelPrometheus:
    def __init__(self, numbers: Callable[[], Iterable[int]]) -> None:
        self.server = AnsweringServer(self._answer)
        self._numbers = numbers

    def _answer(self, question: Question) -> bytes:
        (query,) = parse_qs(question.body.decode())["query"]
        result = {"status": "success", "data": self.result(query, time.time())}
        return json.dumps(result).encode()

    def result(self, query: str, now: float) -> Json:
        """Rates and speeds; of all else nothing is known."""
        if query.endswith("[15m]"):
            return {"resultType": "matrix", "result": []}
        if "rate(node_network" in query:
            values = {each: _rate(each, now) for each in self._numbers()}
        elif "node_network_speed_bytes" in query:
            values = dict.fromkeys(self._numbers(), LINK_BYTES_PER_SECOND)
        else:
            values = {}
        result = [
            {
                "metric": {"instance": node_name(number), "device": "eth0"},
                "value": [now, str(value)],
            }
            for number, value in values.items()
        ]
        return {"resultType": "vector", "result": result}


def _rate(number: int, now: float) -> float:
    """Up to half of the link, at another moment on each node."""
    swing = 1 + math.sin(2 * math.pi * (now / SWING_SECONDS + number / 17))
    return LINK_BYTES_PER_SECOND / 4 * swing
