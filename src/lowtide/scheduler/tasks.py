"""The tasks that perform actions: bindings, look-ups, evictions, questions to extenders. Live
starts them, and ends them with the process."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from lowtide.logs import Log

log = Log("scheduler")


class Tasks:
    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._unsent: set[asyncio.Task[None]] = set()
        self.are_ending = False

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    @contextmanager
    def unsent(self) -> Iterator[None]:
        """Inside this block a task has sent nothing yet, so that `end` cancels it at once."""
        task = asyncio.current_task()
        if task not in self._running:
            yield
            return
        if self.are_ending:
            raise asyncio.CancelledError
        self._unsent.add(task)
        try:
            yield
        finally:
            self._unsent.discard(task)

    async def end(self, timeout_seconds: float) -> None:
        """Cancel unsent tasks, wait for the others, and cancel those after the timeout."""
        self.are_ending = True
        if self._unsent:
            log.info(
                "Leaving pods that are not bound yet to the next leader",
                count=len(self._unsent),
            )
            for task in self._unsent:
                task.cancel()
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._running:  # the end of a binding may start more
                    await asyncio.wait(self._running)
        except TimeoutError:
            left = list(self._running)
            log.warning("Cancelling bindings, because the process ends", count=len(left))
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
