"""A stand-in for the exporters of several nodes: what each node's link carries is stated, and may
be stated anew.

Used by the tests of NetworkTraffic in the extender, with a real Prometheus that scrapes it."""

import http.server
import threading
import time
from collections.abc import Iterator, Mapping

from realparts.prometheus import Target

DEVICE = "eth0"
CAPACITY_BYTES_PER_SECOND = 125_000_000


class Links:
    """One server for all nodes, which tells of each with a label `node`: counters that go on at the
    node's rate."""

    def __init__(self, bytes_per_second: Mapping[str, float]) -> None:
        self._rates = dict(bytes_per_second)
        self._counted = dict.fromkeys(self._rates, 0.0)
        self._until = time.monotonic()
        self._lock = threading.Lock()
        links = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = links.metrics().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def target(self) -> Target:
        return Target(f"127.0.0.1:{self._server.server_port}")

    def carry(self, bytes_per_second: Mapping[str, float]) -> None:
        """From now on these nodes' links carry so much."""
        with self._lock:
            self._count()
            self._rates.update(bytes_per_second)

    def metrics(self) -> str:
        with self._lock:
            self._count()
            carried = dict(self._counted)
        speeds = dict.fromkeys(carried, float(CAPACITY_BYTES_PER_SECOND))
        lines = [
            *_family("node_network_receive_bytes_total", "counter", carried),
            *_family("node_network_transmit_bytes_total", "counter", carried),
            *_family("node_network_speed_bytes", "gauge", speeds),
        ]
        return "\n".join(lines) + "\n"

    def _count(self) -> None:
        now = time.monotonic()
        for name, rate in self._rates.items():
            self._counted[name] += (now - self._until) * rate
        self._until = now


def _family(name: str, kind: str, by_node: Mapping[str, float]) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    for node, value in by_node.items():
        yield f'{name}{{node="{node}",device="{DEVICE}"}} {value:.0f}'
