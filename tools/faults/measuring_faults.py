"""Prometheus goes away, is slow, or answers nonsense, while NetworkTraffic goes by it."""

import json
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from faults.arena import Arena, Setting
from realparts.process import free_port

SLOW_SECONDS = 20.0
MOODS = ("down", "slow", "wrong")


class SwitchedPrometheus:
    """Answers every query with one value for each node, or as `mood` has it."""

    def __init__(self, nodes: int) -> None:
        self.mood = "well"
        self.port = free_port()
        self._nodes = nodes
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        switched = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with suppress(OSError):  # who asked has gone
                    switched.answer(self)

            do_POST = do_GET  # noqa: N815

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
        asked.rfile.read(int(asked.headers.get("Content-Length", 0)))
        if self.mood == "down":
            asked.close_connection = True
            return
        if self.mood == "slow":
            time.sleep(SLOW_SECONDS)
        body = b'{"status":"success","data":[[' if self.mood == "wrong" else self._vector()
        asked.send_response(200)
        asked.send_header("Content-Type", "application/json")
        asked.send_header("Content-Length", str(len(body)))
        asked.end_headers()
        asked.wfile.write(body)

    def _vector(self) -> bytes:
        result: list[dict[str, Any]] = [
            {
                "metric": {"instance": f"node-{number}", "device": "eth0"},
                "value": [time.time(), str(1000 * number)],
            }
            for number in range(self._nodes)
        ]
        answer = {"status": "success", "data": {"resultType": "vector", "result": result}}
        return json.dumps(answer).encode()


def prometheus_fails(arena: Arena) -> None:
    prometheus = SwitchedPrometheus(arena.size.nodes)
    prometheus.start()
    try:
        with arena.trial("prometheus", _setting(prometheus)) as trial:
            trial.start()
            for mood in MOODS:
                before = arena.auditor.bound_count
                with trial.inject(f"Prometheus {mood}"):
                    prometheus.mood = mood
                    trial.post(arena.size.burst_pods)
                    time.sleep(arena.size.cut_seconds)
                    if arena.auditor.bound_count == before:
                        arena.auditor.object_to(f"Prometheus {mood}: no pod was bound meanwhile")
                    prometheus.mood = "well"
    finally:
        prometheus.stop()


def _setting(prometheus: SwitchedPrometheus) -> Setting:
    address = f"http://127.0.0.1:{prometheus.port}"
    return Setting(
        profile={
            "plugins": {"score": {"enabled": [{"name": "NetworkTraffic", "weight": 9}]}},
            "pluginConfig": [{"name": "NetworkTraffic", "args": {"prometheusAddress": address}}],
        }
    )
