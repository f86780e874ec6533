"""How soon the page answers a click with thousands of nodes, in a real browser, while new data come
each second: from the event to the frame in which its answer is painted."""

import json
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Page, sync_playwright
from rich.table import Table
from tests.browser.chromium import SWITCHES
from tests.browser.made_cluster import MadeCluster
from tests.browser.page_server import PageServer

from realparts.parts import obtain
from report_lines import Compared, Report

NODES = 5000
TIMES = 40
GOAL_MS = 100.0
SELECT, DECISION, REGROUP = "select a node", "open a decision", "regroup"

# Takes the time of the next event of a kind until `isAnswered()` and the frame after it is painted:
# the second frame begins when the first is out. The timer makes sure that each is a whole one.
WATCH = """
window.answered = (kind, isAnswered) => new Promise((resolve) => {
  document.addEventListener(kind, (event) => {
    const begun = event.timeStamp;
    const look = () => requestAnimationFrame(() => {
      if (!isAnswered()) return look();
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun)));
    });
    look();
  }, {capture: true, once: true});
});
"""


@dataclass(frozen=True, slots=True)
class PageResult:
    workload: str
    nodes: int
    scheduler: str
    action: str
    round: int
    median_ms: float
    p95_ms: float
    most_ms: float


def measure_page(rounds: int, say: Callable[[str], None]) -> Iterator[PageResult]:
    chromium = obtain("chromium")["chromium"]
    cluster = MadeCluster(NODES)
    for number in range(200):
        cluster.decide(f"team/web-{number}")
    with PageServer(cluster, moves=True).serve() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(SWITCHES))
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.add_init_script(WATCH)
        page.goto(server.url)
        page.wait_for_selector(f"#decisions-list li:nth-child({len(cluster.decisions)})")
        for number in range(1, rounds + 1):
            for action, take_one in ((SELECT, _select), (DECISION, _open), (REGROUP, _regroup)):
                say(f"page: round {number} of {rounds}, {action} {TIMES} times ...")
                chance = random.Random(number)
                took = [take_one(page, chance, each) for each in range(TIMES)]
                yield _result(action, number, took)
        browser.close()


def _result(action: str, number: int, took_ms: Sequence[float]) -> PageResult:
    p95_ms = statistics.quantiles(took_ms, n=20)[-1]
    return PageResult(
        workload="page",
        nodes=NODES,
        scheduler="lowtide",
        action=action,
        round=number,
        median_ms=statistics.median(took_ms),
        p95_ms=p95_ms,
        most_ms=max(took_ms),
    )


def _select(page: Page, chance: random.Random, number: int) -> float:
    """Somewhere in the heat map, until its panel with chart and pods is there."""
    box = page.locator("#heat-marks").bounding_box()
    assert box is not None
    x, y = box["x"] + chance.uniform(10, 500), box["y"] + chance.uniform(25, 200)
    page.mouse.move(x, y)
    if not page.locator("#tooltip").is_visible():  # between two groups
        return _select(page, chance, number)
    took_ms = _until(
        page,
        "click",
        "new URLSearchParams(location.hash.slice(1)).get('node')"
        " === document.getElementById('node-view').dataset.node",
        lambda: page.mouse.click(x, y),
    )
    page.keyboard.press("Escape")
    return took_ms


def _open(page: Page, _: random.Random, number: int) -> float:
    """A decision, until its score table is there."""
    line = page.locator("#decisions-list a").nth(number % 20)
    pod = line.get_attribute("data-pod")
    took_ms = _until(
        page,
        "click",
        f"document.getElementById('pod-title')?.textContent === {json.dumps(pod)}"
        " && document.querySelectorAll('.scores tbody tr').length === 20",
        line.click,
    )
    page.keyboard.press("Escape")
    return took_ms


def _regroup(page: Page, _: random.Random, number: int) -> float:
    """The heat map by rack or by zone, which is drawn before the event is over."""
    group = ("racks", "zones")[number % 2]
    choose = page.locator("#group-by")
    return _until(page, "change", "true", lambda: choose.select_option(group))


def _until(page: Page, kind: str, is_answered: str, act: Callable[[], object]) -> float:
    page.evaluate(f"window.took = window.answered('{kind}', () => {is_answered}); null")
    act()
    return float(page.evaluate("window.took"))


def page_report(results: Sequence[PageResult]) -> Report:
    table = Table()
    for heading in ("the page is to", "nodes", "round"):
        table.add_column(heading)
    for heading in ("median ms", "p95 ms", "longest"):
        table.add_column(heading, justify="right")
    for each in results:
        figures = (f"{value:.0f}" for value in (each.median_ms, each.p95_ms, each.most_ms))
        table.add_row(each.action, str(each.nodes), str(each.round), *figures)
    yield table
    for action in dict.fromkeys(each.action for each in results):
        found = [each for each in results if each.action == action]
        p95_ms = statistics.median(each.p95_ms for each in found)
        yield Compared(
            f"page, {found[0].nodes} nodes, {action}: p95 {p95_ms:.0f} ms in the median of rounds",
            f"under {GOAL_MS:.0f} ms",
            is_met=p95_ms < GOAL_MS,
        )
