"""Where every task and thread of this process is at the moment, as text; /debug/stacks shows it."""

import asyncio
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from types import FrameType


def stacks_text(tasks: Iterable[asyncio.Task[object]]) -> str:
    """The outermost call first, as in a traceback."""
    of_tasks = [_task_text(task) for task in sorted(tasks, key=lambda task: task.get_name())]
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    of_threads = [
        f"thread {names.get(ident, 'without a name')}\n{_frames_text(_callers(frame))}"
        for ident, frame in sys._current_frames().items()
    ]
    titles = (f"{len(of_tasks)} tasks\n", f"{len(of_threads)} threads\n")
    return "\n".join([titles[0], *of_tasks, titles[1], *of_threads])


def _task_text(task: asyncio.Task[object]) -> str:
    coroutine = task.get_coro()
    name = getattr(coroutine, "__qualname__", type(coroutine).__name__)
    return f"task {task.get_name()}: {name}\n{_frames_text(_awaited(coroutine))}"


def _frames_text(frames: Iterable[FrameType]) -> str:
    summary = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in frames)
    return "".join(summary.format()) or "  (its frames are not Python's)\n"


def _callers(frame: FrameType) -> list[FrameType]:
    frames = [found for found, _ in traceback.walk_stack(frame)]
    return frames[::-1]


def _awaited(waiting: object) -> Iterator[FrameType]:
    """The frames from a task's coroutine to the one that waits; a Task itself tells the first."""
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is None:
            return
        yield frame
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
