import asyncio
import io
import logging
import threading
from collections.abc import Iterator

import pytest
from tests.scheduler.conftest import Bench

from lowtide.app.watchdog import EXIT_CODE, Watchdog
from lowtide.framework.asking import ask
from lowtide.framework.plugin import OneNode, Pod, filter_each
from lowtide.logs import LineHandler, configure_logs
from lowtide.objects.events import Added
from lowtide.plugins.priority_sort import PrioritySort
from lowtide.testing import make_node, make_pod, make_profile


class Ended:
    """Instead of the process: lets go of what hangs."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.letting_go = threading.Event()

    def __call__(self, code: int) -> None:
        self.codes.append(code)
        self.letting_go.set()


class HangingPlugin:
    name = "Hanging"

    def __init__(self, ended: Ended) -> None:
        self._ended = ended

    def filter(self) -> None:
        assert self._ended.letting_go.wait(30)


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    configure_logs(verbosity=0, format="text", stream=stream, clock=lambda: 0.0)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


async def test_a_plugin_that_hangs_ends_the_process_and_is_named(log_lines: io.StringIO) -> None:
    ended = Ended()
    with Watchdog(hung_seconds=3, look_seconds=0.02, end=ended) as watchdog:
        await watchdog.watch(asking(HangingPlugin(ended)))
    assert ended.codes == [EXIT_CODE]
    assert '"Hanging.filter hangs; this process ends"' in log_lines.getvalue()


class HangingHelper(HangingPlugin):
    """The method that hangs is its own; it is written for one node, with another name for self."""

    @filter_each
    def filter(own, pod: Pod, node: OneNode) -> None:  # type: ignore[override]  # noqa: N805
        own._look_up()

    def _look_up(self) -> None:
        assert self._ended.letting_go.wait(30)


async def test_a_plugin_is_named_whoever_asks_it(log_lines: io.StringIO) -> None:
    """In a decision of the real machine."""
    ended = Ended()
    bench = Bench(make_node("one"), profiles=[make_profile([PrioritySort(), HangingHelper(ended)])])
    with Watchdog(hung_seconds=3, look_seconds=0.02, end=ended):
        bench.give(Added(make_pod("web")))
        bench.take_turns()
    assert '"Hanging.filter hangs; this process ends"' in log_lines.getvalue()


class Sieve:
    """No plugin, though it has a method of such a name."""

    def filter(self, ended: Ended) -> None:
        assert ended.letting_go.wait(30)


async def test_what_is_no_plugin_is_not_named(log_lines: io.StringIO) -> None:
    ended = Ended()
    with Watchdog(hung_seconds=3, look_seconds=0.02, end=ended):
        Sieve().filter(ended)
    assert '"The loop hangs; this process ends"' in log_lines.getvalue()


async def test_what_hangs_elsewhere_is_told_by_its_stack(log_lines: io.StringIO) -> None:
    ended = Ended()
    with Watchdog(hung_seconds=3, look_seconds=0.02, end=ended):
        assert ended.letting_go.wait(30)
    assert ended.codes == [EXIT_CODE]
    assert '"The loop hangs; this process ends"' in log_lines.getvalue()
    assert "letting_go.wait" in log_lines.getvalue()


async def test_a_loop_that_hangs_in_its_log_ends_the_process_untold(
    log_lines: io.StringIO,
) -> None:
    """As when nobody reads what it writes: the lock of the log is not free then."""
    ended = Ended()
    (handler,) = (each for each in logging.getLogger().handlers if isinstance(each, LineHandler))
    with Watchdog(hung_seconds=3, look_seconds=0.02, logging_seconds=0.1, end=ended):
        handler.acquire()
        try:
            assert ended.letting_go.wait(5)
        finally:
            handler.release()
    assert ended.codes == [EXIT_CODE]


async def test_a_loop_that_turns_is_left_alone() -> None:
    ended = Ended()
    looked = asyncio.Event()
    asyncio.get_running_loop().call_later(0.2, looked.set)  # twenty looks
    with Watchdog(hung_seconds=2, look_seconds=0.01, end=ended) as watchdog:
        await watchdog.watch(waiting(looked))
    assert ended.codes == []


async def asking(plugin: HangingPlugin) -> None:
    await asyncio.sleep(0)
    ask(plugin, "filter")


async def waiting(event: asyncio.Event) -> None:
    await event.wait()
