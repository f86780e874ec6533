"""A sampling profile of this process: where its threads are, many times a second.

/debug/profile takes one in a thread of its own and tells it in one of two forms."""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType

# Function names from a thread's first to the one that runs, behind the thread's name.
Stacks = Counter[tuple[str, ...]]

_TOP_FUNCTIONS = 40


def sample_stacks(
    *, seconds: float, hz: float, is_ended: threading.Event, clock: Callable[[], float]
) -> Stacks:
    """Looks at every other thread `hz` times a second, until `seconds` are over or `is_ended`.

    A thread that waits counts where it waits. A look that comes late counts for all that were
    due: the interpreter was held up, most likely by what is seen then.
    """
    stacks: Stacks = Counter()
    names = Names()
    own_ident = threading.get_ident()
    begun = clock()
    looks = 0
    while not is_ended.wait(max(0.0, begun + looks / hz - clock())):
        passed_seconds = clock() - begun
        if passed_seconds >= seconds:
            break
        due = int(passed_seconds * hz) + 1
        threads = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident != own_ident:
                thread_name = threads.get(ident, "thread without a name")
                stacks[(_safe(thread_name), *names.of_stack(frame))] += max(1, due - looks)
        looks = max(looks + 1, due)
    return stacks


class Names:
    """The names of functions in stacks: `module:Class.function`."""

    def __init__(self) -> None:
        self._by_code: dict[CodeType, str] = {}

    def of_stack(self, innermost: FrameType) -> list[str]:
        names = []
        frame: FrameType | None = innermost
        while frame is not None:
            names.append(self._of(frame))
            frame = frame.f_back
        names.reverse()
        return names

    def _of(self, frame: FrameType) -> str:
        code = frame.f_code
        name = self._by_code.get(code)
        if name is None:
            module = frame.f_globals.get("__name__", "?")
            name = self._by_code[code] = _safe(f"{module}:{code.co_qualname}")
        return name


def collapsed_text(stacks: Stacks) -> str:
    """A line for each stack, `frame;frame;frame count`, as tools for flame graphs read it."""
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in stacks.most_common())


def top_text(stacks: Stacks) -> str:
    """A line for each function: the share of looks that found it running (or waiting) itself,
    and the share that found it anywhere in a stack."""
    looks = stacks.total()
    by_itself: Counter[str] = Counter()
    anywhere: Counter[str] = Counter()
    for (_, *functions), count in stacks.items():
        by_itself[functions[-1]] += count
        anywhere.update(dict.fromkeys(functions, count))
    order = sorted(anywhere, key=lambda name: (-by_itself[name], -anywhere[name], name))
    lines = [
        f"{by_itself[name] / looks:7.1%} {anywhere[name] / looks:9.1%}  {name}\n"
        for name in order[:_TOP_FUNCTIONS]
    ]
    threads = len({stack[0] for stack in stacks})
    return "".join(
        [f"{looks} looks at {threads} threads\n", "   self  anywhere  function\n", *lines]
    )


def _safe(name: str) -> str:
    return name.replace(";", ":").replace(" ", "_").replace("\n", "_")
