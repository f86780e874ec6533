"""Answers in HTTP/1.1, from any piece of them that has come so far."""

import pytest

from lowtide.input_limits import TooLargeError
from lowtide.kube.http_answer import (
    MOST_HEAD_BYTES,
    Answer,
    MalformedAnswerError,
    read_answer,
)

CREATED = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"


@pytest.mark.parametrize(
    ("received", "want"),
    [
        pytest.param(
            CREATED + b"\r\n\r\n{}", Answer(201, CREATED, b"{}", False), id="takes a body by length"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-LENGTH:0\r\n\r\n",
            Answer(200, b"HTTP/1.1 200 OK\r\ncontent-LENGTH:0", b"", False),
            id="takes names of headers in any letters",
        ),
        pytest.param(
            CHUNKED + b"\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
            Answer(200, CHUNKED, b"abc0123456789", False),
            id="joins chunks",
        ),
        pytest.param(
            CHUNKED + b"\r\n\r\n1\r\na\r\n0\r\nChecksum: 1\r\n\r\n",
            Answer(200, CHUNKED, b"a", False),
            id="passes over headers behind the chunks",
        ),
        pytest.param(
            b"HTTP/1.1 204 No Content\r\n\r\n",
            Answer(204, b"HTTP/1.1 204 No Content", b"", False),
            id="knows answers that have no body",
        ),
        pytest.param(
            b"HTTP/1.1 100 Continue\r\n\r\n" + CREATED + b"\r\n\r\n{}",
            Answer(201, CREATED, b"{}", False),
            id="passes over what comes before the answer",
        ),
        pytest.param(
            CREATED + b"\r\nConnection: Close\r\n\r\n{}",
            Answer(201, CREATED + b"\r\nConnection: Close", b"{}", True),
            id="is the last when the server says so",
        ),
        pytest.param(
            CREATED.replace(b"1.1", b"1.0") + b"\r\n\r\n{}",
            Answer(201, CREATED.replace(b"1.1", b"1.0"), b"{}", True),
            id="is the last of an old server",
        ),
        pytest.param(
            CREATED + b"\r\n\r\n{}HTTP",
            Answer(201, CREATED, b"{}", True),
            id="is the last when more came than was asked for",
        ),
    ],
)
def test_whole(received: bytes, want: Answer) -> None:
    assert read_answer(received) == want


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(CREATED + b"\r\n\r\n{}", id="by length"),
        pytest.param(CHUNKED + b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n", id="in chunks"),
    ],
)
def test_any_part_waits_for_more(whole: bytes) -> None:
    assert [read_answer(whole[:stop]) for stop in range(len(whole))] == [None] * len(whole)


def test_without_a_length_the_body_goes_on_to_the_end_of_the_connection() -> None:
    received = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nabc"
    assert read_answer(received) is None
    want = Answer(200, b"HTTP/1.1 200 OK\r\nServer: x", b"abc", True)
    assert read_answer(received, is_ended=True) == want


@pytest.mark.parametrize(
    ("received", "want"),
    [
        pytest.param(
            b"SSH-2.0-x\r\n\r\n", "it begins with b'SSH-2.0-x", id="names what is no HTTP"
        ),
        pytest.param(b"HTTP/1.1 abc\r\n\r\n", "its status is b'abc'", id="names a status"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "its Content-Length is b'-1'",
            id="names a length below zero",
        ),
        pytest.param(CHUNKED + b"\r\n\r\nxyz\r\n", "its chunk size is b'xyz'", id="names a size"),
        pytest.param(
            b"H" * (MOST_HEAD_BYTES + 1), "no end of the headers", id="gives up some time"
        ),
    ],
)
def test_malformed(received: bytes, want: str) -> None:
    with pytest.raises(MalformedAnswerError) as caught:
        read_answer(received)
    assert str(caught.value).startswith(want)


@pytest.mark.parametrize(
    "received",
    [
        pytest.param(CREATED + b"0000000000\r\n\r\n", id="by its length"),
        pytest.param(CHUNKED + b"\r\n\r\n1000001\r\n", id="by the length of a chunk"),
        pytest.param(CHUNKED + b"\r\n\r\n" + b"1\r\na\r\n" * 20_000, id="in very many chunks"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (17 << 20), id="without a length"),
    ],
)
def test_a_body_that_is_too_large(received: bytes) -> None:
    with pytest.raises(TooLargeError, match="more than 16 MiB"):
        read_answer(received)


def test_very_many_words_before_an_answer_are_malformed() -> None:
    with pytest.raises(MalformedAnswerError, match="no end of the headers"):
        read_answer(b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000)


def test_headers_are_found_in_any_letters() -> None:
    answer = read_answer(b"HTTP/1.1 429 X\r\nretry-after:  7 \r\nContent-Length: 0\r\n\r\n")
    assert answer is not None
    assert dict(answer.headers()) == {"retry-after": "7", "Content-Length": "0"}
    assert answer.headers()["Retry-After"] == "7"
