"""`make bench` with --flame: where the time of a benchmark goes, as a flame graph for a browser.

A decision is looked at in this process; a scheduler that runs by itself is asked for its stacks at
/debug/profile, and where it waits is left out. Beside the picture, the same stacks are written as
text."""

import signal
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from flame_svg import flame_svg
from lowtide.server.sampling import Names, Stacks, collapsed_text

LOOK_SECONDS = 0.001
PIECE_SECONDS = 2.0
PIECE_HZ = 250.0
# A benchmark that measures only a part of what it does has that part in a function of this name:
# all else is left out of the picture.
MEASURED = "_measured_turn"
# What runs in a scheduler runs below the innermost of these; uvloop has no frames of its own.
RUNNERS = {
    "asyncio.runners:Runner.run",
    "asyncio.events:Handle._run",
    "threading:Thread.run",
    "concurrent.futures.thread:_WorkItem.run",
}
# Where nothing is below one of these, a scheduler waits. What uvloop does by itself cannot be
# told from that.
WAITING = {
    "asyncio.runners:Runner.run",
    "selectors:EpollSelector.select",
    "threading:Condition.wait",
    "concurrent.futures.thread:_worker",
}


class FlameError(Exception):
    """The picture cannot be made; says why."""


class Flame:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._stacks: Stacks = Counter()
        self._scheduler_stacks: Stacks = Counter()
        self._problem = "nothing was seen running"

    @contextmanager
    def of_this_process(self) -> Iterator[None]:
        """Looks at the main thread, whatever it does meanwhile, waiting included."""
        names = Names()

        def look(_: int, frame: FrameType | None) -> None:
            if frame is not None:
                stack = names.of_stack(frame)
                # Time inside numpy shows on the line that called it.
                line = frame.f_lineno or frame.f_code.co_firstlineno
                stack.append(f"{stack[-1]}:{line}")
                self._stacks[tuple(stack)] += 1

        before = signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, LOOK_SECONDS, LOOK_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)

    @contextmanager
    def of_scheduler(self, url: str) -> Iterator[None]:
        """Asks a scheduler with --debug at this address for its stacks, piece by piece."""
        is_over = threading.Event()
        thread = threading.Thread(target=self._ask, args=(url, is_over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def write(self) -> list[Path]:
        """The picture, and the stacks as text."""
        stacks = _measured(self._stacks) + without_waiting(self._scheduler_stacks)
        if not stacks:
            raise FlameError(f"{self._file} is not written: {self._problem}")
        text_file = self._file.with_suffix(".txt")
        try:
            text_file.write_text(collapsed_text(stacks))
            self._file.write_text(flame_svg(stacks))
        except OSError as error:
            raise FlameError(f"{self._file} is not written: {error}") from error
        return [self._file, text_file]

    def left_out(self) -> str:
        """For the line that tells where the picture is."""
        main = Counter(
            {
                stack: count
                for stack, count in self._scheduler_stacks.items()
                if stack[0] == "MainThread"
            }
        )
        if not main:
            return ""
        share = 1.0 - without_waiting(main).total() / main.total()
        return (
            f" (left out: the {100 * share:.0f} % of the time in which the scheduler waited or was "
            "in the event loop itself)"
        )

    def _ask(self, url: str, is_over: threading.Event) -> None:
        """In vain before the server listens, and when it ends in the middle of a piece."""
        asked = f"{url}/debug/profile?seconds={PIECE_SECONDS:g}&hz={PIECE_HZ:g}"
        while not is_over.is_set():
            try:
                with urllib.request.urlopen(asked, timeout=30.0) as response:
                    text = response.read().decode()
            except urllib.error.HTTPError as failure:
                self._problem = f"{asked} was answered {failure.code}; is --debug on?"
                return
            except OSError:
                is_over.wait(0.05)
                continue
            for line in text.splitlines():
                stack, _, count = line.rpartition(" ")
                self._scheduler_stacks[tuple(stack.split(";"))] += int(count)


def _measured(stacks: Stacks) -> Stacks:
    """From the function on that is measured, where there is one."""
    found: Stacks = Counter()
    for stack, count in stacks.items():
        for depth, name in enumerate(stack):
            if name.replace(":", ".").rpartition(".")[2] == MEASURED:
                found[stack[depth + 1 :]] += count
                break
    return found or stacks


def without_waiting(stacks: Stacks) -> Stacks:
    """From what the event loop or a thread runs on, as all begins alike before."""
    found: Stacks = Counter()
    for stack, count in stacks.items():
        if stack[-1] not in WAITING:
            begin = max((at + 1 for at, name in enumerate(stack) if name in RUNNERS), default=0)
            found[stack[begin:] or stack[-1:]] += count
    return found
