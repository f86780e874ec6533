"""Ends a process whose loop hangs, and names the rule in which it does: the next one takes over.

The scheduler starts one; a process that does nothing any more would keep its pods for ever."""

import asyncio
import os
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Final

from lowtide.framework.plugin import ask
from lowtide.logs import Log

log = Log("watchdog")

HUNG_SECONDS: Final = 30
TELLING_SECONDS: Final = 2.0
EXIT_CODE: Final = 70  # as sysexits.h calls an error of the software itself


class Watchdog:
    """Looks once a second, and counts its own looks: while the whole process was frozen, it did not
    look either. `end` does not come back, and is called also where the log cannot be written: a
    loop that hangs there holds its lock."""

    def __init__(
        self,
        *,
        hung_seconds: int = HUNG_SECONDS,
        look_seconds: float = 1.0,
        telling_seconds: float = TELLING_SECONDS,
        end: Callable[[int], None] = os._exit,
    ) -> None:
        self._most_looks = hung_seconds
        self._look_seconds = look_seconds
        self._telling_seconds = telling_seconds
        self._end = end
        self._has_turned = True
        self._is_over = threading.Event()

    async def run(self) -> None:
        """Until cancelled; on the loop that is watched."""
        loop_thread = threading.get_ident()
        threading.Thread(
            target=self._watch, args=[loop_thread], name="watchdog", daemon=True
        ).start()
        try:
            while True:
                self._has_turned = True
                await asyncio.sleep(self._look_seconds / 2)
        finally:
            self._is_over.set()

    def _watch(self, loop_thread: int) -> None:
        looks = 0
        while not self._is_over.wait(self._look_seconds):
            looks = 0 if self._has_turned else looks + 1
            self._has_turned = False
            if looks >= self._most_looks:
                try:
                    self._try_to_tell(loop_thread, looks * self._look_seconds)
                finally:
                    self._end(EXIT_CODE)
                return

    def _try_to_tell(self, loop_thread: int, seconds: float) -> None:
        frame = sys._current_frames().get(loop_thread)
        telling = threading.Thread(target=self._tell, args=[frame, seconds], daemon=True)
        telling.start()
        telling.join(self._telling_seconds)

    def _tell(self, frame: FrameType | None, seconds: float) -> None:
        stack = [] if frame is None else [each for each, _ in traceback.walk_stack(frame)]
        asked = next((each for each in stack if each.f_code is ask.__code__), None)
        where = "".join(traceback.format_stack(frame)) if frame is not None else ""
        if asked is None:
            log.error("The loop hangs; this process ends", seconds=seconds, stack=where)
            return
        rule, method = asked.f_locals["rule"], asked.f_locals["method"]
        log.error(f"{rule.name}.{method} hangs; this process ends", seconds=seconds, stack=where)
