import asyncio
import json
import sys
import threading
import traceback

import pytest
from tests.server.conftest import RawAnswer, RawClient, running

from lowtide.server.debug import debug_routes
from lowtide.server.http import Drain, Server
from lowtide.server.sampling import sample_stacks
from lowtide.server.serving import Serving, make_server


async def ask(path: str, host: str = "localhost") -> RawAnswer:
    server = make_server(Serving(port=0, is_debug=True), [])
    async with running(server):
        client = await RawClient.connected(server.address.port)
        answer = await client.ask(path, host)
        await client.close()
    return answer


async def test_the_page_names_what_there_is() -> None:
    answer = await ask("/debug")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b'<a href="/debug/stacks">' in answer.body
    assert b'<a href="/debug/profile?seconds=5&amp;format=top">' in answer.body


async def test_stacks_tell_this_very_request() -> None:
    answer = await ask("/debug/stacks")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    text = answer.body.decode()
    assert ", in test_stacks_tell_this_very_request\n" in text
    assert "\nthread MainThread\n" in text


async def test_a_profile_finds_a_busy_thread() -> None:
    may_end = threading.Event()

    def is_busy() -> None:
        while not may_end.is_set():
            pass

    thread = threading.Thread(target=is_busy, name="busy")
    thread.start()
    try:
        collapsed = await ask("/debug/profile?seconds=0.2&hz=50")
        top = await ask("/debug/profile?seconds=0.2&hz=50&format=top")
    finally:
        may_end.set()
        thread.join()
    name = f"{__name__}:{is_busy.__qualname__}"
    found = [line for line in collapsed.body.decode().splitlines() if line.startswith("busy;")]
    assert (collapsed.status, top.status) == (200, 200)
    assert any(f";{name}" in line and int(line.rpartition(" ")[2]) > 0 for line in found)
    assert name in top.body.decode()


@pytest.mark.parametrize(
    ("query", "want"),
    [
        ("seconds=soon", "seconds is 'soon'; expected a number above 0 and up to 60\n"),
        ("seconds=0", "seconds is '0'; expected a number above 0 and up to 60\n"),
        ("seconds=60.1", "seconds is '60.1'; expected a number above 0 and up to 60\n"),
        ("seconds=nan", "seconds is 'nan'; expected a number above 0 and up to 60\n"),
        ("seconds=", "seconds is ''; expected a number above 0 and up to 60\n"),
        ("hz=-1", "hz is '-1'; expected a number above 0 and up to 1000\n"),
        ("hz=inf", "hz is 'inf'; expected a number above 0 and up to 1000\n"),
        ("format=svg", "format is 'svg'; expected collapsed or top\n"),
    ],
)
async def test_a_wrong_value_is_told(query: str, want: str) -> None:
    answer = await ask(f"/debug/profile?{query}")
    assert (answer.status, answer.body.decode()) == (400, want)


async def test_one_profile_is_taken_at_a_time() -> None:
    server = Server(debug_routes(), port=0)
    async with running(server):
        clients = [await RawClient.connected(server.address.port) for _ in range(2)]
        answers = await asyncio.gather(
            *(client.ask("/debug/profile?seconds=0.3") for client in clients)
        )
        after = await clients[0].ask("/debug/profile?seconds=0.1")
        for client in clients:
            await client.close()
    taken, rejected = sorted(answers, key=lambda answer: answer.status)
    assert (taken.status, rejected.status, after.status) == (200, 409, 200)
    assert rejected.body == b"a profile is being taken; ask when it is done\n"


def is_sampling() -> bool:
    return any(
        frame.f_code is sample_stacks.__code__
        for innermost in sys._current_frames().values()
        for frame, _ in traceback.walk_stack(innermost)
    )


async def test_a_server_that_stops_ends_its_profile() -> None:
    server = Server(debug_routes(), port=0, drain=Drain(request_seconds=0.05, idle_seconds=0.0))
    await server.start()
    client = await RawClient.connected(server.address.port)
    await client.send(b"GET /debug/profile?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    while not is_sampling():
        await asyncio.sleep(0)
    await server.stop()
    while is_sampling():
        await asyncio.sleep(0)
    assert await client.reader.read() == b""
    await client.close()


@pytest.mark.parametrize("path", ["/debug", "/debug/stacks", "/debug/profile?seconds=0.1"])
@pytest.mark.parametrize(
    ("host", "want"),
    [
        ("localhost", 200),
        ("localhost:8001", 200),
        ("127.0.0.1:8001", 200),
        ("[::1]:8001", 200),
        ("rebound.example.com", 403),
        ("rebound.example.com:8001", 403),
        ("localhost@rebound.example.com", 403),
        ("[::1", 403),
        ("", 403),
    ],
)
async def test_only_names_of_this_machine_are_answered(path: str, host: str, want: int) -> None:
    answer = await ask(path, host)
    assert answer.status == want
    if want == 403:
        assert json.loads(answer.body)["error"].startswith(f"the request is for the host {host!r}")
