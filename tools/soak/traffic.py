"""A Prometheus that knows the nodes which there are at the moment, each with one link whose traffic
goes up and down."""

import json
import math
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from realparts.process import free_port
from soak.objects import node_name

LINK_BYTES_PER_SECOND = 1.25e9
SWING_SECONDS = 600.0

Json = dict[str, Any]


class ModelPrometheus:
    def __init__(self, numbers: Callable[[], Iterable[int]]) -> None:
        self.port = free_port()
        self._numbers = numbers
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                with suppress(OSError):  # who asked has gone
                    model.answer(self)

            def log_message(self, *_: object) -> None:
                """Nothing is told."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def answer(self, asked: BaseHTTPRequestHandler) -> None:
        form = parse_qs(asked.rfile.read(int(asked.headers["Content-Length"])).decode())
        result = {"status": "success", "data": self.result(form["query"][0], time.time())}
        body = json.dumps(result).encode()
        asked.send_response(200)
        asked.send_header("Content-Type", "application/json")
        asked.send_header("Content-Length", str(len(body)))
        asked.end_headers()
        asked.wfile.write(body)

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
