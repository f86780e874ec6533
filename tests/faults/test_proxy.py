"""The proxy of the fault suite carries bytes, and misbehaves when told to."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from faults.proxy import Proxy
from realparts.process import free_port

DELAY_SECONDS = 0.2


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """In front of a server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_echo, args=[server], daemon=True).start()
        proxy = Proxy(server.getsockname()[1], port=free_port())
        proxy.start()
        yield proxy
        proxy.stop()
        server.shutdown(socket.SHUT_RDWR)


def _echo(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_echo_one, args=[connection], daemon=True).start()


def _echo_one(connection: socket.socket) -> None:
    with connection:
        try:
            while piece := connection.recv(1000):
                connection.sendall(piece)
        except OSError:
            return


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=10)


def said_back(connection: socket.socket) -> tuple[bytes, float]:
    began_at = time.monotonic()
    connection.sendall(b"hello")
    return connection.recv(1000), time.monotonic() - began_at


def test_bytes_pass(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        assert said_back(connection)[0] == b"hello"


def test_latency_is_added_both_ways(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        proxy.delay(DELAY_SECONDS)
        answer, seconds = said_back(connection)
    assert (answer, seconds >= 2 * DELAY_SECONDS) == (b"hello", True)


def test_connections_are_reset(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        said_back(connection)
        proxy.reset_all()
        with pytest.raises(ConnectionResetError):
            connection.recv(1000)
    with connect(proxy) as connection:
        assert said_back(connection)[0] == b"hello"


def test_nothing_passes_while_it_is_cut(proxy: Proxy) -> None:
    proxy.cut()
    with connect(proxy) as connection:
        assert _answer_or_end(connection) == b""
    proxy.fix()
    with connect(proxy) as connection:
        assert said_back(connection)[0] == b"hello"


def _answer_or_end(connection: socket.socket) -> bytes:
    try:
        return said_back(connection)[0]
    except OSError:
        return b""


def test_silence_rejects_nothing_and_loses_nothing(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        said_back(connection)
        proxy.fall_silent()
        connection.sendall(b"hello")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1000)
        proxy.speak_again()
        connection.settimeout(10)
        assert connection.recv(1000) == b"hello"
