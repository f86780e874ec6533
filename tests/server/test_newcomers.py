import socket

import pytest

from lowtide.server.newcomers import ignore_newcomers


def test_who_is_in_line_already_is_served_and_nobody_else_comes_in() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        with socket.create_connection(address) as early:
            ignore_newcomers(listening)
            with pytest.raises(TimeoutError):
                socket.create_connection(address, timeout=0.05)
            accepted, _ = listening.accept()
            with accepted:
                early.sendall(b"asked")
                asked = accepted.recv(10)
                accepted.sendall(b"answered")
                assert (asked, early.recv(10)) == (b"asked", b"answered")
        listening.settimeout(0.05)
        with pytest.raises(TimeoutError):
            listening.accept()
