import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from lowtide.server.sampling import Stacks, collapsed_text, sample_stacks, top_text


class Clock:
    """Each reading is so many seconds after the one before."""

    def __init__(self, *steps_seconds: float) -> None:
        self._now = 0.0
        self._steps = iter(steps_seconds)

    def __call__(self) -> float:
        now = self._now
        self._now += next(self._steps, 1.0)
        return now


class Worker:
    """A thread that waits in a function of its own."""

    def __init__(self) -> None:
        self._is_begun, self._may_end = threading.Event(), threading.Event()

    def works(self) -> None:
        self._is_begun.set()
        self._may_end.wait()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self.works, name="a worker; of ours")
        thread.start()
        self._is_begun.wait()
        try:
            yield
        finally:
            self._may_end.set()
            thread.join()


def of_worker(stacks: Stacks) -> list[tuple[str, int]]:
    """Which of this file's functions the worker was seen in, and how often."""
    return [
        (name, count)
        for stack, count in stacks.items()
        if stack[0] == "a_worker:_of_ours"
        for name in stack
        if name.endswith(":Worker.works")
    ]


def sampled(seconds: float, hz: float, clock: Clock) -> Stacks:
    with Worker().running():
        return sample_stacks(seconds=seconds, hz=hz, is_ended=threading.Event(), clock=clock)


def test_every_other_thread_is_looked_at_as_often_as_asked_for() -> None:
    # Begun at 0; then a reading for how long to wait, and one for when it is.
    stacks = sampled(3.0, 1000.0, Clock(0.5, 0.5, 0.0, 1.0, 0.0, 1.0))
    ((name, count),) = of_worker(stacks)
    assert name.endswith("test_sampling:Worker.works")
    assert count == 2001  # due at 0, 0.001 ... up to 2 s
    assert not any("sample_stacks" in name for stack in stacks for name in stack)


def test_a_late_look_counts_for_those_that_were_due() -> None:
    stacks = sampled(1.0, 100.0, Clock(0.0, 0.0, 0.0, 0.05, 1.0))
    ((_, count),) = of_worker(stacks)
    assert count == 6  # at 0, and at 0.05 for 0.01 to 0.05


def test_a_profile_that_is_ended_looks_no_more() -> None:
    is_ended = threading.Event()
    is_ended.set()
    assert sample_stacks(seconds=60, hz=1, is_ended=is_ended, clock=Clock()) == Counter()


STACKS: Stacks = Counter(
    {
        ("MainThread", "app:run", "loop:wait"): 6,
        ("MainThread", "app:run", "plugins:score"): 2,
        ("worker", "plugins:again", "plugins:again", "plugins:score"): 2,
    }
)


def test_collapsed_stacks_are_lines_for_flame_graphs() -> None:
    assert collapsed_text(STACKS) == (
        "MainThread;app:run;loop:wait 6\n"
        "MainThread;app:run;plugins:score 2\n"
        "worker;plugins:again;plugins:again;plugins:score 2\n"
    )


def test_the_top_counts_a_function_once_in_a_stack() -> None:
    assert top_text(STACKS) == (
        "10 looks at 2 threads\n"
        "   self  anywhere  function\n"
        "  60.0%     60.0%  loop:wait\n"
        "  40.0%     40.0%  plugins:score\n"
        "   0.0%     80.0%  app:run\n"
        "   0.0%     20.0%  plugins:again\n"
    )


def test_nothing_seen_is_a_table_without_lines() -> None:
    assert top_text(Counter()) == "0 looks at 0 threads\n   self  anywhere  function\n"
