"""The page as a whole in a real browser: health, keys, colours, addresses, and a server that is
away."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

import pytest
from playwright.sync_api import Page, expect
from tests.browser.made_cluster import BEGIN, MadeCluster
from tests.browser.page_server import PageServer

from realparts.process import free_port

pytestmark = pytest.mark.real("chromium")

BEGIN_TOLD = f"{datetime.fromtimestamp(BEGIN, UTC):%H:%M:%S}"
NOWHERE = "0/30 nodes are available: 30 Insufficient cpu."


def focused(page: Page) -> str:
    """The id of what has the focus, or what it says."""
    return str(
        page.evaluate(
            "document.activeElement.id || document.activeElement.dataset.pod"
            " || document.activeElement.textContent"
        )
    )


def ground(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


# Health.


@pytest.mark.parametrize(
    ("plurals", "words"),
    [
        pytest.param(["pods"], "pods are", id="one kind"),
        pytest.param(["pods", "nodes"], "pods, nodes are", id="two kinds"),
        pytest.param(
            ["pods", "nodes", "services", "namespaces", "storageclasses"],
            "pods, nodes, services and 2 more are",
            id="many kinds",
        ),
    ],
)
def test_it_is_told_what_the_api_server_does_not_renew(
    plurals: list[str],
    words: str,
    open_page: Callable[..., Page],
    serve: Callable[..., PageServer],
) -> None:
    server = serve()
    page = open_page(server.url, timezone_id="UTC")
    banner = page.locator("#stale-watches")
    expect(page.locator("#health .figures").first).to_be_visible()
    expect(banner).to_be_hidden()
    server.cluster.stale_watches = {
        "since": BEGIN,
        "resources": plurals,
        "reason": "GET /api/v1/pods: Connection refused",
    }
    expect(banner).to_have_text(
        f"Since {BEGIN_TOLD} {words} not renewed, and what you see of them is from then: "
        "GET /api/v1/pods: Connection refused"
    )
    assert banner.get_attribute("role") == "alert"
    expect(page.locator("#banner")).to_be_hidden()
    server.cluster.stale_watches = None
    expect(banner).to_be_hidden()


def test_queue_lengths_and_bindings_are_shown(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    page = open_page(server.url)
    figures = page.locator("#health .figures").first
    expect(figures).to_be_visible()
    words = figures.locator("dt").all_inner_texts()
    values = figures.locator("dd").all_inner_texts()
    assert dict(zip(words, values, strict=True)) == {
        "active": "2",
        "backoff": "1",
        "unschedulable": "0",
        "gated": "4",
        "bindings under way": "3",
        "of the lease": "holder",
    }
    server.cluster.decide("team/large", message=NOWHERE)
    expect(figures.locator("div", has_text="unschedulable").locator("dd")).to_have_text("1")


def test_the_health_of_the_readings_and_the_doctors_verdicts_are_shown(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    page = open_page(serve().url)
    reading = page.locator("#health .reading")
    expect(reading).to_contain_text("NetworkTraffic of http://127.0.0.1:9090")
    expect(reading).to_contain_text("measured 4.2 s ago over 60 s")
    assert reading.locator("dt").all_inner_texts() == ["fresh", "stale", "missing", "implausible"]
    assert reading.locator("dd").all_inner_texts() == ["27", "1", "1", "1"]
    findings = page.locator("#health .findings summary")
    assert findings.all_inner_texts() == [
        "✗ fault the series of these nodes carry another name; it should be the node's",
        "! note something could not be checked: it is rejected",
    ]


def test_a_verdict_opens_by_keys_to_what_fixes_it_and_stays_open(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    page = open_page(server.url)
    first, second = page.locator("#health .findings details").all()
    expect(first.locator("pre")).to_be_hidden()
    first.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(first.locator("pre")).to_have_text(
        "# in the args of NetworkTraffic\nnodeLabel: kubernetes_node"
    )
    expect(first.locator("p")).to_have_text("25 nodes: node-0001, node-0002 and 23 more")
    server.cluster.round = 45  # what is shown beside it changes
    expect(page.locator("#health")).to_contain_text("examined 2 min ago")
    expect(first.locator("pre")).to_be_visible()
    expect(first.locator("summary")).to_be_focused()
    page.keyboard.press("Enter")
    expect(first.locator("pre")).to_be_hidden()
    second.locator("summary").click()
    expect(second.locator("pre")).to_have_text("There is no fix to paste.")
    expect(second.locator("p")).to_have_count(0)
    server.cluster.findings = []
    expect(page.locator("#health")).to_contain_text("All is well; examined 2 min ago")
    expect(page.locator("#health .findings li")).to_have_count(0)
    server.cluster.is_examined = False
    expect(page.locator("#health")).to_contain_text("Nothing was examined yet.")


# The keyboard.


def test_everything_is_reached_by_keys_alone(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    server.cluster.decide("team/web-1")
    record = server.cluster.decide("team/web-2")
    page = open_page(server.url)
    expect(page.locator("#decisions-list li")).to_have_count(2)
    keyboard = page.keyboard

    keyboard.press("h")
    assert focused(page) == "heat-marks"
    keyboard.press("ArrowRight")
    expect(page.locator("#tooltip b")).to_have_text("node-0003")
    keyboard.press("Enter")
    assert focused(page) == "node-title"
    expect(page.locator("#node-view .chart")).to_be_visible()
    keyboard.press("Escape")
    expect(page.locator("#node-view")).to_be_hidden()
    assert focused(page) == "heat-marks"

    busy = page.locator("#busiest a").nth(1)
    busy.focus()
    keyboard.press("Enter")
    expect(page.locator("#node-title")).to_be_focused()
    keyboard.press("Escape")
    expect(busy).to_be_focused()

    keyboard.press("d")
    assert focused(page) == "team/web-2"
    keyboard.press("ArrowDown")
    assert focused(page) == "team/web-1"
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    assert focused(page) == "pod-title"
    expect(page.locator(".scores tbody tr")).to_have_count(20)
    keyboard.press("Tab")
    assert focused(page) == "Close"
    keyboard.press("Tab")  # the links of the verdict
    keyboard.press("Tab")
    keyboard.press("Tab")
    assert focused(page) == record["best"][0]["node"]
    keyboard.press("ArrowRight")
    expect(page.locator("#tooltip b")).to_have_text(f"Measured on {record['node']}")
    keyboard.press("ArrowRight")
    expect(page.locator("#tooltip")).to_contain_text("normalised")
    keyboard.press("ArrowDown")
    expect(page.locator("#tooltip b")).to_contain_text(record["best"][1]["node"])
    keyboard.press("Escape")
    expect(page.locator("#pod-view")).to_be_hidden()
    assert focused(page) == "team/web-2"

    keyboard.press("/")
    keyboard.type("web-1")
    expect(page.locator("#decisions-list li:visible")).to_have_count(1)
    keyboard.press("Escape")  # empties the filter
    expect(page.locator("#decisions-list li:visible")).to_have_count(2)
    keyboard.press("Tab")
    keyboard.press("p")
    expect(page.locator("#pause")).to_have_attribute("aria-pressed", "true")
    keyboard.press("g")
    expect(page.locator("#group-by")).to_have_value("racks")
    keyboard.press("o")
    expect(page.locator("#order-by")).to_have_value("share")
    keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()


def test_tab_goes_through_the_page_in_its_order(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve(nodes=2)
    for number in range(5):
        server.cluster.decide(f"team/web-{number}")
    page = open_page(server.url)
    expect(page.locator("#decisions-list li")).to_have_count(5)
    visited = []
    for _ in range(13):
        page.keyboard.press("Tab")
        visited.append(focused(page))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
    busiest = page.locator("#busiest a").all_inner_texts()
    verdicts = page.locator("#health .findings summary").all_inner_texts()
    assert visited == [
        "Skip to the decisions",
        "theme",
        "show-keys",
        "group-by",
        "order-by",
        "heat-marks",
        *busiest,
        *verdicts,
        "filter",
        "pause",
        "team/web-4",
    ]


# Colours and room.


@pytest.mark.parametrize(
    ("system", "want"),
    [
        pytest.param("light", "rgb(244, 246, 248)", id="is light where the system is"),
        pytest.param("dark", "rgb(17, 22, 27)", id="is dark where the system is"),
    ],
)
def test_colours_follow_the_system(
    system: Literal["light", "dark"],
    want: str,
    open_page: Callable[..., Page],
    serve: Callable[..., PageServer],
) -> None:
    page = open_page(serve().url, color_scheme=system)
    assert ground(page) == want


def test_colours_are_chosen_and_remembered(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    page = open_page(serve().url, color_scheme="light")
    expect(page.locator("#busiest tbody tr")).to_have_count(20)
    expect(page.locator("#theme")).to_have_text("Theme: system")
    seen = [ground(page)]
    cells = [page.evaluate("document.getElementById('heat-cells').toDataURL()")]
    for _ in range(3):
        page.locator("#theme").click()
        seen.append(ground(page))
        cells.append(page.evaluate("document.getElementById('heat-cells').toDataURL()"))
    light, dark = "rgb(244, 246, 248)", "rgb(17, 22, 27)"
    assert seen == [light, dark, light, light]
    assert [each == cells[0] for each in cells] == [True, False, True, True]
    page.locator("#theme").click()
    page.reload()
    assert ground(page) == dark
    expect(page.locator("#theme")).to_have_text("Theme: dark")


@pytest.mark.parametrize("width", [1000, 1400, 2200])
def test_nothing_is_cut_off(
    width: int, open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve(nodes=500)
    server.cluster.decide("team/web")
    size = {"width": width, "height": 760}
    page = open_page(f"{server.url}/#node=node-0003", viewport=size)
    expect(page.locator("#node-view .chart")).to_be_visible()
    wider = (
        "[...document.querySelectorAll('html, .column, .card, .bar, .summary')]"
        ".filter(each => each.scrollWidth > each.clientWidth)"
        ".map(each => `${each.id} ${each.className} ${each.scrollWidth} ${each.clientWidth}`)"
    )
    assert page.evaluate(wider) == []
    page.locator("#node-view button").click()
    assert page.evaluate(wider) == []


def test_nothing_moves_while_data_come(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    for number in range(30):
        server.cluster.decide(f"team/web-{number}")
    page = open_page(server.url)
    expect(page.locator("#health .findings li")).to_have_count(2)
    page.evaluate(
        """() => {
          window.shifts = 0;
          new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) window.shifts += entry.value;
          }).observe({type: "layout-shift"});
        }"""
    )
    # Other figures of other lengths everywhere; a new decision would move the others on purpose.
    server.cluster.usual_shares = [share / 20 for share in server.cluster.usual_shares]
    server.cluster.unplaced["team/large"] = NOWHERE
    expect(page.locator("#busiest td").nth(3)).to_contain_text("Mb/s")
    expect(page.locator("#health .figures").first).to_contain_text("unschedulable1")
    assert page.evaluate("window.shifts") == 0


# Addresses.


def test_an_address_opens_what_it_names_and_back_goes_back(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    server.cluster.decide("team/web")
    page = open_page(f"{server.url}/#pod=team/web&node=node-0003")
    expect(page.locator("#pod-title")).to_have_text("team/web")
    expect(page.locator("#node-title")).to_have_text("node-0003")
    page.locator("#node-view button").click()
    expect(page.locator("#node-view")).to_be_hidden()
    assert page.evaluate("location.hash") == "#pod=team/web"
    assert focused(page) == "pod-title"
    page.locator("#pod-view button").first.click()
    expect(page.locator("#pod-view")).to_be_hidden()
    assert page.evaluate("location.hash") == ""
    page.go_back()
    expect(page.locator("#pod-title")).to_have_text("team/web")
    expect(page.locator("#node-view")).to_be_hidden()
    page.go_back()
    expect(page.locator("#node-title")).to_have_text("node-0003")
    page.go_forward()
    expect(page.locator("#node-view")).to_be_hidden()


def test_names_are_shown_as_text_whatever_they_hold(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve(nodes=4)
    hostile = "<img src=x onerror=alert(1)>"
    server.cluster.names[3] = hostile
    server.cluster.decide(f"team/{hostile}", message=hostile)
    page = open_page(server.url)
    expect(page.locator("#busiest a").first).to_have_text(hostile)
    page.locator("#busiest a").first.click()
    expect(page.locator("#node-title")).to_have_text(hostile)
    expect(page.locator("#node-view .chart")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("#decisions-list a").click()
    expect(page.locator("#pod-view .verdict")).to_have_text(f"Fits nowhere. {hostile}")
    assert page.locator("img").count() == 0


# Asking.


def test_a_server_that_is_away_is_told_and_found_again(open_page: Callable[..., Page]) -> None:
    port = free_port()
    server = PageServer(MadeCluster(30))
    with server.serve(port):
        page = open_page(server.url)
        expect(page.locator("#busiest tbody tr")).to_have_count(20)
    banner = page.locator("#banner")
    expect(banner).to_contain_text("the server cannot be reached. What you see is from before")
    expect(page.locator("#busiest tbody tr")).to_have_count(20)
    with server.serve(port):
        expect(banner).to_be_hidden(timeout=20_000)
        server.cluster.decide("team/after")
        expect(page.locator("#decisions-list li")).to_have_count(1)


def test_a_slow_server_is_not_asked_twice_at_once(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve(delay_seconds=1.2)
    page = open_page(f"{server.url}/#node=node-0003")
    expect(page.locator("#node-view .chart")).to_be_visible()
    with page.expect_response("**/api/cluster*"):
        with page.expect_request("**/api/cluster*"):
            pass
        # Somebody looks again.
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert {kind: most for kind, most in server.most_at_once.items() if most > 1} == {}


def test_nobody_is_asked_while_nobody_looks(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    page = open_page(server.url)
    expect(page.locator("#health .findings li")).to_have_count(2)

    def look(state: str) -> None:
        page.evaluate(
            """state => {
              const now = {value: state, configurable: true};
              Object.defineProperty(document, "visibilityState", now);
              document.dispatchEvent(new Event("visibilitychange"));
            }""",
            state,
        )

    page.clock.install()
    look("hidden")
    page.clock.run_for(3000)
    before = server.asked.copy()
    page.clock.run_for(60_000)
    assert server.asked == before
    look("visible")
    with page.expect_response("**/api/cluster*"):
        page.clock.run_for(1000)


def test_lists_of_nodes_are_sent_only_when_they_change(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    page = open_page(server.url)
    expect(page.locator("#summary")).to_contain_text("30")
    with page.expect_response("**/api/cluster?known=1") as known:
        pass
    assert "names" not in known.value.json()
    server.cluster.version = 2
    server.cluster.names[3] = "renamed"
    expect(page.locator("#busiest a").first).to_have_text("renamed")
