"""Pages for whoever decides whether to install it."""

from html.parser import HTMLParser

import pytest
from tests.simulator.test_shadow_report import hottest, shadowed

from lowtide.simulator.html_report import comparison_page, shadow_page
from lowtide.simulator.link_course import LinkFigures
from lowtide.simulator.plot import chart_of_courses
from lowtide.simulator.rerun_report import Compared, Elsewhere
from lowtide.simulator.shadow_report import ShadowReport

LINKS = LinkFigures(
    readings=3,
    window_seconds=60.0,
    peak=0.81,
    peak_node="node-7",
    p95=0.5,
    fairness=0.9,
    cpu_imbalance=1.2,
)


class Read(HTMLParser):
    """The text of each element by its tag, and every address that it would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {}
        self.addresses: list[str] = []
        self._tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        while self._tags and self._tags.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._tags and data.strip():
            self.texts.setdefault(self._tags[-1], []).append(data)


def test_configurations_side_by_side() -> None:
    elsewhere = [Elsewhere("ns/<b>pod</b>", "node-7", "node-3", "NetworkTraffic")]
    rows = [
        Compared(
            name="as recorded", placed=2, pending=0, evicted=3, links=LINKS, course=[(0.0, 0.8)]
        ),
        Compared(name="b.yaml", placed=2, pending=1, links=LINKS, moved_pods=elsewhere),
    ]
    chart = chart_of_courses({"as recorded": [(5.0, 0.2), (20.0, 0.8)]}, "run")
    page = Read(comparison_page("run.lowtide", rows, chart))
    assert page.texts["h1"] == ["run.lowtide"]
    assert page.texts["p"] == ["Hottest link: 81% as recorded, 81% b.yaml, averages over 1m"]
    assert page.texts["td"][:9] == [
        *("as recorded", "2", "0", "3", "81% (node-7)", "50%", "0.90", "1.20"),
        "b.yaml",
    ]
    assert page.texts["td"][-4:] == ["ns/<b>pod</b>", "node-7", "node-3", "NetworkTraffic"]
    assert page.addresses == []
    assert "polyline" in comparison_page("run.lowtide", rows, chart)


def test_the_shadow() -> None:
    report = ShadowReport(since=0.0)
    report.note(shadowed("1", "small"), 60.0)
    report.note(shadowed("1", "roomy"), 60.0)
    report.look(hottest(0.81, 0.54))
    summary = report.summary(120.0, nodes=2, pending=0, measured=LINKS)
    page = Read(shadow_page(summary))
    assert page.texts["p"][:3] == [
        "Hottest link 81% (node-7), averages over 1m",
        "With what was just placed 81% (at-0.81) → 54% (at-0.54) predicted",
        "50.0% of 2 pods are where these plugins would put them",
    ]
    assert page.texts["td"][-5:][:3] == ["default/web", "small", "roomy"]
    assert page.addresses == []


@pytest.mark.parametrize(
    ("count", "shown", "told"),
    [
        pytest.param(10_000, 10_000, [], id="all of them"),
        pytest.param(
            10_002,
            10_000,
            ["The first 10000 of 10002 pods; lowtide replay --output json has all of them."],
            id="as many as a browser stays quick with, and where the others are",
        ),
    ],
)
def test_pods_that_would_be_elsewhere_after_a_replay(
    count: int, shown: int, told: list[str]
) -> None:
    elsewhere = [Elsewhere(f"ns/pod-{number}", "a", "b") for number in range(count)]
    rows = [
        Compared(name="as recorded", placed=count, pending=0),
        Compared(name="b.yaml", placed=count, pending=0, moved_pods=elsewhere),
    ]
    written = comparison_page("run.lowtide", rows, "")
    page = Read(written)
    assert sum(text.startswith("ns/pod-") for text in page.texts["td"]) == shown
    assert page.texts["p"][1:] == told
    assert len(written) < 2_000_000


def test_pods_that_would_be_elsewhere_beyond_those_that_a_shadow_keeps() -> None:
    report = ShadowReport(since=0.0, kept_differences=2)
    for name in ("small", "small", "small", "roomy"):
        report.note(shadowed("1", name), 60.0)
    page = Read(shadow_page(report.summary(120.0, nodes=2, pending=0)))
    assert page.texts["td"].count("default/web") == 2
    assert page.texts["p"][-1] == (
        "The last 2 of 3 pods; with -v 2 lowtide shadow logs each of them."
    )


def test_nothing_seen_is_a_page_too() -> None:
    page = Read(shadow_page(ShadowReport(since=0.0).summary(1.0, nodes=0, pending=0)))
    assert page.texts["p"][0] == "No pod was placed while it looked"
    assert "Nothing was measured" in comparison_page("run", [], "")
