"""How the demo is shown: a table that moves in a terminal, plain lines elsewhere."""

from collections import Counter

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lowtide.app.demo import REPLICAS, DemoStory, NodeLoad, PlacedInDemo
from lowtide.framework.plugin import MAX_SCORE
from lowtide.plugins.network_traffic import RECOMMENDED_WEIGHT

SCORE_IN_WORDS = (
    "A node's score is the sum over all plugins; a quiet network counts up to "
    f"{RECOMMENDED_WEIGHT * MAX_SCORE} of it."
)

_BAR = 24
_GIGABIT = 125_000_000
_LINES_SHOWN = 10
_SECONDS_BETWEEN_LINES = 5.0


class PlainView:
    """One line per thing that happens."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._logged_at = 0.0

    def start(self, story: DemoStory) -> None:
        if story.page_url:
            self._say(f"Open {story.page_url} in a browser to see it all")
        self._say(f"API server {story.api_url}, Prometheus {story.prometheus_url}")
        self._say(f"12 nodes in 3 racks; the busiest is {in_words(story.busiest)}")
        self._say(SCORE_IN_WORDS)

    def deployed(self, story: DemoStory, name: str) -> None:
        self._say(f"{story.deployments[-1][0]:5.1f} s  deployed {name}: 5 pods to place")

    def placed(self, story: DemoStory, placed: PlacedInDemo) -> None:
        self._say(f"{placed.at_seconds:5.1f} s  {why(placed)}")

    def show(self, story: DemoStory, now: float) -> None:
        if now - self._logged_at >= _SECONDS_BETWEEN_LINES:
            self._logged_at = now
            seconds = now - story.started_at
            self._say(f"{seconds:5.1f} s  busiest node: {in_words(story.busiest)}")

    def finish(self, story: DemoStory) -> None:
        self._console.print(summary(story))

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)


class LiveView:
    """A table of nodes that is drawn again and again."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def start(self, story: DemoStory) -> None:
        self._live.start()

    def deployed(self, story: DemoStory, name: str) -> None:
        pass

    def placed(self, story: DemoStory, placed: PlacedInDemo) -> None:
        pass

    def show(self, story: DemoStory, now: float) -> None:
        self._live.update(self._picture(story, now), refresh=True)

    def finish(self, story: DemoStory) -> None:
        self._live.stop()
        self._console.print(nodes_table(story))
        self._console.print(summary(story))

    def _picture(self, story: DemoStory, now: float) -> Group:
        lines = [
            Text(
                f"{placed.at_seconds:5.1f} s  {in_short(placed)}", no_wrap=True, overflow="ellipsis"
            )
            for placed in story.placed[-_LINES_SHOWN:]
        ]
        seconds = now - story.started_at
        head = f"Lowtide demo, {seconds:.0f} s. Each pod goes where the network is quiet. "
        return Group(
            Text(f"{head}(Ctrl-C ends it)", no_wrap=True),
            Text(f"Open {story.page_url} in a browser; API server {story.api_url}", no_wrap=True),
            nodes_table(story),
            Text(SCORE_IN_WORDS, style="dim", no_wrap=True, overflow="ellipsis"),
            *lines,
        )


def nodes_table(story: DemoStory) -> Table:
    table = Table()
    for heading in ("rack", "node", "link"):
        table.add_column(heading)
    table.add_column("traffic", min_width=_BAR + 6)
    table.add_column("pods", justify="right")
    rack = ""
    for load in sorted(story.loads, key=lambda load: load.name):
        if rack and load.rack != rack:
            table.add_section()
        table.add_row(
            "" if load.rack == rack else load.rack,
            load.name,
            speed(load),
            bar(load),
            Text("●" * load.pods or "-", style="cyan" if load.pods else "dim"),
        )
        rack = load.rack
    return table


def bar(load: NodeLoad) -> Text:
    filled = round(min(load.share, 1.0) * _BAR)
    style = "green" if load.share < 0.3 else "yellow" if load.share < 0.6 else "red"
    return Text.assemble(
        ("█" * filled, style), ("░" * (_BAR - filled), "dim"), f" {load.share:4.0%}"
    )


def why(placed: PlacedInDemo) -> str:
    """One decision in one line: the node, its traffic, its score, and what it won against."""
    best = placed.decided.decision.best
    last = f", last {best[-1].node_name} {best[-1].total}" if best else ""
    return (
        f"{placed.decided.decision.pod.key} -> {_choice(placed)}{last} "
        f"(busiest: {placed.busiest.name} {placed.busiest.share:.0%})"
    )


def in_short(placed: PlacedInDemo) -> str:
    """The same beside the table that shows every node, where a line has 80 columns."""
    return f"…{placed.decided.decision.pod.name[-5:]} -> {_choice(placed)}"


def _choice(placed: PlacedInDemo) -> str:
    decision, load = placed.decided.decision, placed.load
    words = f"{load.name}: traffic {load.share:.0%} of {speed(load)}"
    for node in decision.best:
        if node.node_name == decision.node_name:
            words += f", score {node.total}"
    rivals = [node for node in decision.best if node.node_name != decision.node_name]
    return f"{words}, next {rivals[0].node_name} {rivals[0].total}" if rivals else words


def summary(story: DemoStory) -> Group:
    """What the demo showed, in a few lines that can be checked against the table."""
    lines = [Text("Summary", style="bold")]
    if not story.deployments:
        lines.append(Text("  nothing was deployed yet: the first pods come after 2.5 s"))
    if story.earlier_deployments:
        earlier, pods = story.earlier_deployments, story.earlier_placed
        deployments = "1 earlier deployment" if earlier == 1 else f"{earlier} earlier deployments"
        lines.append(Text(f"  {deployments}: {pods} pods placed"))
    for number, (seconds, name) in enumerate(story.deployments):
        ends = [*(at for at, _ in story.deployments), float("inf")][number + 1]
        placed = [each for each in story.placed if seconds <= each.at_seconds < ends]
        nodes = Counter(each.load.name for each in placed)
        where = ", ".join(f"{node} ({count})" for node, count in sorted(nodes.items())) or "nowhere"
        lines.append(Text(f"  {name}, deployed at {seconds:.1f} s: {_placed(len(placed))}"))
        lines.append(Text(f"    on {where}"))
        if placed:
            busiest = placed[0].busiest
            on_busiest = nodes.get(busiest.name, 0)
            highest = max(each.load.share for each in placed)
            lines.append(
                Text(
                    f"    the busiest node then was {busiest.name} at {busiest.share:.0%}: "
                    f"{on_busiest} pods; the pods' own nodes were at {highest:.0%} or less"
                )
            )
    return Group(*lines)


def _placed(count: int) -> str:
    return f"{count} of {REPLICAS} placed" if count <= REPLICAS else f"{count} placed"


def in_words(load: NodeLoad) -> str:
    return f"{load.name} with {load.share:.0%} of {speed(load)}"


def speed(load: NodeLoad) -> str:
    return f"{load.capacity_bytes_per_second / _GIGABIT:g} Gb/s"
