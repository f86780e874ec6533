"""The tasks that run beside each other in a mode: started, looked after, ended."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


def started(*works: Coroutine[Any, Any, None]) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(work) for work in works]


def failures(tasks: Iterable[asyncio.Task[None]]) -> list[BaseException]:
    return [
        error
        for task in tasks
        if task.done() and not task.cancelled() and (error := task.exception()) is not None
    ]


async def end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancels them and waits until they have tidied up."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
