"""The demo on a clock that runs faster than the world's, so that minutes of it are seconds."""

import re
import time
from collections.abc import Callable

from rich.console import Console

from lowtide.app.demo import DEPLOYMENTS_KEPT, REPLICAS, Demo, DemoStory, PlacedInDemo
from lowtide.app.demo_view import summary

TIMES_FASTER = 12


class UntilSeen:
    """A view that looks on until `is_seen` of what the story has come to."""

    def __init__(self, is_seen: Callable[[DemoStory], bool]) -> None:
        self._is_seen = is_seen
        self.names: list[str] = []
        self.demo: Demo | None = None

    def start(self, story: DemoStory) -> None: ...
    def deployed(self, story: DemoStory, name: str) -> None:
        self.names.append(name)

    def placed(self, story: DemoStory, placed: PlacedInDemo) -> None: ...
    def show(self, story: DemoStory, now: float) -> None:
        assert self.demo is not None
        if self._is_seen(story):
            self.demo.stop()

    def finish(self, story: DemoStory) -> None:
        console = Console(width=200)
        with console.capture() as written:
            console.print(summary(story))
        self.summary = written.get().splitlines()


def fast_clock(clock: Callable[[], float]) -> Callable[[], float]:
    start = clock()
    return lambda: start + (clock() - start) * TIMES_FASTER


async def test_it_goes_on_deploying_and_takes_the_oldest_away() -> None:
    def is_seen(story: DemoStory) -> bool:
        placed = story.earlier_placed + len(story.placed)
        pods_there = sum(load.pods for load in story.loads)
        return (
            story.deployed >= DEPLOYMENTS_KEPT + 3
            and placed == story.deployed * REPLICAS
            and pods_there == DEPLOYMENTS_KEPT * REPLICAS
        )

    view = UntilSeen(is_seen)
    view.demo = Demo(
        view,
        clock=fast_clock(time.monotonic),
        wall_clock=fast_clock(time.time),
        for_seconds=None,
    )
    await view.demo.run()
    count = len(view.names)
    assert view.names[:2] == ["test-scheduler", "test-scheduler-2"]
    assert view.names[-1] == f"test-scheduler-{count}"
    earlier = count - DEPLOYMENTS_KEPT
    assert re.fullmatch(rf"  {earlier} earlier deployments: \d+ pods placed", view.summary[1])
    assert view.summary[2].startswith(f"  test-scheduler-{earlier + 1}, deployed at ")
