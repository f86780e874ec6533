"""Draws docs/demo.svg, the picture in the README, from a run of the demo itself."""

import asyncio
import io
import re
import sys
import time
from pathlib import Path

import uvloop
from rich.console import Console
from rich.text import Text

from lowtide.app.clocks import steady_clock
from lowtide.app.demo import Demo, DemoStory
from lowtide.app.demo_view import PlainView, in_short, nodes_table

SECONDS = 14.5
TARGET = Path(__file__).resolve().parents[1] / "docs" / "demo.svg"


class PictureView(PlainView):
    """Draws what the terminal shows when the second Deployment has just been placed."""

    def __init__(self, console: Console) -> None:
        super().__init__(Console(file=io.StringIO()))
        self._picture = console

    def finish(self, story: DemoStory) -> None:
        self._picture.print(nodes_table(story))
        for placed in story.placed[-5:]:
            self._picture.print(Text(in_short(placed), no_wrap=True, overflow="ellipsis"))


def main() -> None:
    console = Console(record=True, width=84, file=io.StringIO(), force_terminal=True)
    demo = Demo(
        PictureView(console), clock=steady_clock(), wall_clock=time.time, for_seconds=SECONDS
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(demo.run())
    svg = console.export_svg(title="lowtide demo")
    # The picture needs no file from another host: the reader's own fixed-width font will do.
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg)
    svg = svg.replace("Fira Code", "ui-monospace, Menlo, Consolas")
    TARGET.write_text(svg)
    print(f"drew {TARGET.name}, {len(svg)} bytes", file=sys.stderr)


main()
