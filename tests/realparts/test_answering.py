"""The small server that stands in for others: it answers, goes, and comes back."""

import datetime
import http.client
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from realparts.answering import AnsweringServer, Question
from realparts.certificates import Authority


def echo(question: Question) -> bytes | None:
    return None if question.path == "/nothing" else f"{question.path} ".encode() + question.body


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer(echo) as server:
        yield server


def connect(server: AnsweringServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)


def answer(connection: http.client.HTTPConnection, path: str, body: bytes | None = None) -> bytes:
    connection.request("GET" if body is None else "POST", path, body)
    return connection.getresponse().read()


def test_questions_are_answered_on_one_connection(server: AnsweringServer) -> None:
    connection = connect(server)
    assert answer(connection, "/one") == b"/one "
    kept = connection.sock
    assert kept is not None
    assert answer(connection, "/two", b"form") == b"/two form"
    assert connection.sock is kept
    connection.close()


def test_what_it_does_not_know_is_not_found(server: AnsweringServer) -> None:
    with pytest.raises(urllib.error.HTTPError) as rejection:
        urllib.request.urlopen(f"{server.url}/nothing", timeout=10)
    rejection.value.close()
    assert rejection.value.code == 404


def test_a_stop_ends_connections_and_rejects_others_until_the_next_start(
    server: AnsweringServer,
) -> None:
    connection = connect(server)
    answer(connection, "/one")
    server.stop()
    with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
        answer(connection, "/two")
    connection.close()
    with pytest.raises(ConnectionRefusedError):
        connect(server).connect()
    server.start()
    connection = connect(server)
    assert answer(connection, "/three") == b"/three "
    connection.close()


def test_https_is_answered_while_another_one_dials_and_says_nothing(tmp_path: Path) -> None:
    authority = Authority(tmp_path, now=datetime.datetime.now(datetime.UTC))
    authority.write_own_certificate()
    pair = authority.sign_server("stand-in", ["localhost"], ["127.0.0.1"])
    trust = ssl.create_default_context(cafile=str(authority.ca_file))
    with (
        AnsweringServer(echo, certificate=pair) as server,
        socket.create_connection(("127.0.0.1", server.port)),
        urllib.request.urlopen(f"{server.url}/one", timeout=10, context=trust) as response,
    ):
        assert response.read() == b"/one "
