"""What is left of a scheduler's stacks for the flame graph."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from flame import Flame, without_waiting
from lowtide.server.sampling import collapsed_text

MAIN = (
    *("MainThread", "runpy:_run_module_as_main", "click.core:Command.main"),
    *("lowtide.cli.scheduler:scheduler", "lowtide.cli.running:run", "asyncio.runners:Runner.run"),
)
ASYNCIO = (
    "asyncio.base_events:BaseEventLoop.run_forever",
    "asyncio.base_events:BaseEventLoop._run_once",
)
THREAD = (
    "threading:Thread._bootstrap",
    "threading:Thread._bootstrap_inner",
    "threading:Thread.run",
)
POOL = "concurrent.futures.thread:_worker"


@pytest.mark.parametrize(
    ("stack", "left"),
    [
        pytest.param(
            (*MAIN, "lowtide.scheduler.live:Live.run", "lowtide.scheduler.live:Live._step"),
            ("lowtide.scheduler.live:Live.run", "lowtide.scheduler.live:Live._step"),
            id="what the loop runs",
        ),
        pytest.param(
            (*MAIN, *ASYNCIO, "asyncio.events:Handle._run", "lowtide.scheduler.live:Live.run"),
            ("lowtide.scheduler.live:Live.run",),
            id="what asyncio's own loop runs",
        ),
        pytest.param(
            (*MAIN, "ssl:SSLObject.read"), ("ssl:SSLObject.read",), id="what the loop itself does"
        ),
        pytest.param(
            ("recording", *THREAD, "lowtide.records.recorder:Recorder._run"),
            ("lowtide.records.recorder:Recorder._run",),
            id="what another thread runs",
        ),
        pytest.param(
            ("measuring_0", *THREAD, POOL, "concurrent.futures.thread:_WorkItem.run", "json:loads"),
            ("json:loads",),
            id="what a pool's thread runs",
        ),
        pytest.param(("recording", *THREAD), THREAD[-1:], id="a thread that begins"),
    ],
)
def test_begins_with(stack: tuple[str, ...], left: tuple[str, ...]) -> None:
    assert without_waiting(Counter({stack: 3})) == {left: 3}


@pytest.mark.parametrize(
    "stack",
    [
        pytest.param(MAIN, id="uvloop"),
        pytest.param((*MAIN, *ASYNCIO, "selectors:EpollSelector.select"), id="asyncio's own loop"),
        pytest.param(
            ("watchdog", *THREAD, "lowtide.app.watchdog:_watch", "threading:Condition.wait"),
            id="a thread",
        ),
        pytest.param(("measuring_0", *THREAD, POOL), id="a pool's thread"),
    ],
)
def test_leaves_out_the_waiting_of(stack: tuple[str, ...]) -> None:
    assert without_waiting(Counter({stack: 3})) == {}


def test_adds_up_what_begins_alike() -> None:
    step = "lowtide.scheduler.live:Live._step"
    stacks = Counter({(*MAIN, step): 2, (*MAIN, *ASYNCIO, "asyncio.events:Handle._run", step): 3})
    assert without_waiting(stacks) == {(step,): 5}


def test_a_picture_of_a_scheduler_tells_what_is_left_out(tmp_path: Path) -> None:
    step = ("lowtide.scheduler.live:Live.run", "lowtide.scheduler.live:Live._step")
    watchdog = ("watchdog", *THREAD, "threading:Condition.wait")
    flame = Flame(tmp_path / "drain.svg")
    stacks = Counter({MAIN: 6, (*MAIN, *step): 2, watchdog: 8})
    with answers(collapsed_text(stacks)) as scheduler, flame.of_scheduler(scheduler.url):
        assert scheduler.is_asked.wait(20.0)
    picture, text = flame.write()
    assert {line.rpartition(" ")[0] for line in text.read_text().splitlines()} == {";".join(step)}
    assert "lowtide.scheduler.live:Live.run: 100.0 %" in picture.read_text()
    assert flame.left_out() == (
        " (left out: the 75 % of the time in which the scheduler waited or was in the event loop "
        "itself)"
    )


def test_a_picture_of_no_scheduler_leaves_nothing_out(tmp_path: Path) -> None:
    assert Flame(tmp_path / "decide.svg").left_out() == ""


class Asked(ThreadingHTTPServer):
    """Tells these stacks to whoever asks."""

    def __init__(self, stacks: str) -> None:
        super().__init__(("127.0.0.1", 0), Telling)
        self.stacks = stacks
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.is_asked = threading.Event()


class Telling(BaseHTTPRequestHandler):
    server: Asked

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.stacks.encode())
        self.server.is_asked.set()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def answers(stacks: str) -> Iterator[Asked]:
    with Asked(stacks) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
