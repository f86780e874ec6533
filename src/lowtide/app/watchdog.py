"""Ends a process that hangs, and names the plugin in which it does: the next one takes over.

Every command with an event loop has one: a process that does nothing any more would keep its pods
for ever."""

import asyncio
import inspect
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine
from functools import cache
from types import FrameType, TracebackType
from typing import Any, Final, Self, TypeVar

from lowtide.app.backstop import Backstop
from lowtide.framework import plugin as plugin_contract
from lowtide.framework.plugin import Plugin, PluginOptions
from lowtide.logs import Log

log = Log("watchdog")

HUNG_SECONDS: Final = 30
LOGGING_SECONDS: Final = 2.0
# Later than the watchdog has ended a process in which Python code runs, also a slow one.
BACKSTOP_SECONDS: Final = 40.0
EXIT_CODE: Final = 70  # as sysexits.h calls an error of the software itself

Result = TypeVar("Result")


class Watchdog:
    """A context manager, for the thread that runs the loop.

    It looks once a second, and counts its own looks: while the whole process was frozen, it did not
    look either. `end` does not come back, and is called also where the log cannot be written: a
    loop that hangs there holds its lock. Where C code holds Python's lock it cannot look; then the
    backstop ends the process."""

    def __init__(
        self,
        *,
        hung_seconds: int = HUNG_SECONDS,
        look_seconds: float = 1.0,
        logging_seconds: float = LOGGING_SECONDS,
        backstop_seconds: float = BACKSTOP_SECONDS,
        end: Callable[[int], None] = os._exit,
    ) -> None:
        self._most_looks = hung_seconds
        self._look_seconds = look_seconds
        self._logging_seconds = logging_seconds
        self._end = end
        self._backstop = Backstop(backstop_seconds)
        self._backstop_lock = threading.Lock()
        self._has_turned = True
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        self._put_off()
        self._thread = threading.Thread(
            target=self._watch, args=[threading.get_ident()], name="watchdog", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._backstop.close()

    async def watch(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Does the work, while the loop has to turn. What is left when it has ended may take no
        longer than the loop may hang."""
        turning = asyncio.create_task(self._turn())
        try:
            return await work
        finally:
            turning.cancel()

    def stop_process(self) -> None:
        """As SIGTSTP (Ctrl-Z) does, and without the backstop until the process is continued."""
        with self._backstop_lock:
            self._backstop.cancel()
            os.kill(os.getpid(), signal.SIGSTOP)
        self._put_off()

    async def _turn(self) -> None:
        while True:
            self._has_turned = True
            await asyncio.sleep(self._look_seconds / 2)

    def _watch(self, loop_thread: int) -> None:
        looks = 0
        while not self._is_over.wait(self._look_seconds):
            looks = 0 if self._has_turned else looks + 1
            self._has_turned = False
            if looks == 0:
                self._put_off()
            if looks >= self._most_looks:
                try:
                    self._try_to_log(loop_thread, looks * self._look_seconds)
                finally:
                    self._end(EXIT_CODE)
                return

    def _put_off(self) -> None:
        with self._backstop_lock:
            self._backstop.put_off()

    def _try_to_log(self, loop_thread: int, seconds: float) -> None:
        frame = sys._current_frames().get(loop_thread)
        telling = threading.Thread(target=self._tell, args=[frame, seconds], daemon=True)
        telling.start()
        telling.join(self._logging_seconds)

    def _tell(self, frame: FrameType | None, seconds: float) -> None:
        where = "" if frame is None else "".join(traceback.format_stack(frame))
        method = None if frame is None else _method_of_a_plugin(frame)
        hanging = "The loop" if method is None else method
        log.error(f"{hanging} hangs; this process ends", seconds=seconds, stack=where)


def _method_of_a_plugin(frame: FrameType) -> str | None:
    """The innermost method of a plugin in which this frame is, such as `NodeAffinity.filter`.

    A frame belongs to one if it runs a function of that name for an object that has the method and
    a name: no name of a local variable is needed, nor who called it."""
    for each, _ in traceback.walk_stack(frame):
        code = each.f_code
        if code.co_name not in _methods_of_plugins() or not code.co_argcount:
            continue
        plugin = each.f_locals.get(code.co_varnames[0])
        name = getattr(plugin, "name", None)
        if isinstance(name, str) and hasattr(plugin, code.co_name):
            return f"{name}.{code.co_name}"
    return None


@cache
def _methods_of_plugins() -> frozenset[str]:
    """All that the contract (`framework/plugin`) has."""
    protocols = [
        each
        for each in vars(plugin_contract).values()
        if isinstance(each, type) and {Plugin, PluginOptions} & {*each.__mro__}
    ]
    return frozenset(
        name
        for protocol in protocols
        for name, member in vars(protocol).items()
        if inspect.isroutine(member) and not name.startswith("_")
    )
