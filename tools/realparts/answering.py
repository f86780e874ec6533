"""A small HTTP server on loopback around a function that answers.

With it the soak and the fault suite stand in for Prometheus and metrics-server."""

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from realparts.certificates import KeyPair
from realparts.process import free_port


class Question(NamedTuple):
    path: str
    body: bytes


Answer = Callable[[Question], bytes | None]  # in JSON; None: nothing is there, 404


class AnsweringServer:
    """By HTTPS where it has a certificate. `stop` ends all connections, and `start` opens the same
    port again. Questions are answered side by side, each on a thread of its own."""

    def __init__(self, answer: Answer, *, certificate: KeyPair | None = None) -> None:
        self.port = free_port()
        self._answer = answer
        self._tls = None if certificate is None else _serving(certificate)
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server = _Server(("127.0.0.1", self.port), _handler_of(self._answer))
        if self._tls is not None:
            # Who dials and says nothing must not keep others waiting: hands are shaken when the
            # thread of the connection reads first.
            self._server.socket = self._tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server.end_connections()
            self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._connections: set[socket.socket] = set()
        super().__init__(address, handler)

    def end_connections(self) -> None:
        for connection in list(self._connections):
            with suppress(OSError):  # the other end was quicker
                connection.shutdown(socket.SHUT_RDWR)

    # What socketserver calls for each connection, the second one on the connection's thread.

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        with suppress(OSError):  # who asked has gone, or spoke no TLS
            super().finish_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)


def _handler_of(answer: Answer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = answer(Question(self.path, asked))
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing is told."""

    return Handler


def _serving(certificate: KeyPair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate_file, certificate.key_file)
    return context
