"""The stream of decisions and the score table behind each, in a real browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.made_cluster import PLUGINS
from tests.browser.page_server import PageServer

pytestmark = pytest.mark.real("chromium")

NOWHERE = "0/30 nodes are available: 30 Insufficient cpu."


def lines(page: Page) -> Locator:
    return page.locator("#decisions-list li:visible")


def pods(page: Page) -> list[str]:
    return lines(page).locator(".pod").all_text_contents()


def test_a_line_tells_pod_node_margin_and_link(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    record = server.cluster.decide("team/web")
    server.cluster.decide("team/large", message=NOWHERE)
    page = open_page(server.url)
    expect(lines(page)).to_have_count(2)
    told = [line.locator("span").all_inner_texts()[1:] for line in lines(page).all()]
    share = record["best"][0]["measured"]["share"]
    assert told == [
        ["team/large", "nowhere", "–", "–"],
        ["team/web", f"→ {record['node']}", str(record["margin"]), f"{100 * share:.1f} %"],
    ]


def test_new_ones_come_on_top_and_old_ones_go(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    for number in range(250):
        server.cluster.decide(f"team/web-{number}")
    page = open_page(server.url)
    expect(lines(page)).to_have_count(200)
    server.cluster.decide("team/newest")
    expect(lines(page).first).to_contain_text("team/newest")
    assert pods(page) == ["team/newest", *(f"team/web-{at}" for at in range(249, 50, -1))]


def test_a_pause_holds_them_back(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    server.cluster.decide("team/first")
    page = open_page(server.url)
    expect(lines(page)).to_have_count(1)
    page.get_by_role("button", name="Pause").click()
    server.cluster.decide("team/second")
    told = page.locator("#decisions-told")
    expect(told).to_have_text("paused, 1 newer decision held back")
    assert pods(page) == ["team/first"]
    page.get_by_role("button", name="Go on").click()
    assert pods(page) == ["team/second", "team/first"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("API", ["shop/api"], id="finds a pod whatever its case"),
        pytest.param("team/", ["team/large", "team/web"], id="finds a namespace"),
        pytest.param("node-", ["shop/api", "team/web"], id="finds a node"),
        pytest.param("nothing", [], id="finds nothing"),
    ],
)
def test_the_filter(
    text: str,
    want: list[str],
    open_page: Callable[..., Page],
    serve: Callable[..., PageServer],
) -> None:
    server = serve()
    server.cluster.decide("team/web")
    server.cluster.decide("team/large", message=NOWHERE)
    server.cluster.decide("shop/api")
    page = open_page(server.url)
    expect(lines(page)).to_have_count(3)
    page.locator("#filter").fill(text)
    assert pods(page) == want
    expect(page.locator("#decisions-told")).to_have_text(f"{len(want)} of 3 match")


def test_a_server_that_was_started_again_is_followed(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    for number in range(3):
        server.cluster.decide(f"team/before-{number}")
    page = open_page(server.url)
    expect(lines(page)).to_have_count(3)
    server.cluster.decisions = []
    server.cluster.decide("team/after")
    expect(lines(page)).to_have_count(1)
    assert pods(page) == ["team/after"]


def test_a_click_opens_the_score_table(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    record = server.cluster.decide("team/web")
    page = open_page(server.url)
    lines(page).first.click()
    view = page.locator("#pod-view")
    expect(view.locator("#pod-title")).to_have_text("team/web")
    assert page.evaluate("location.hash") == "#pod=team/web"
    first, second = record["best"][:2]
    expect(view.locator(".verdict")).to_have_text(
        f"It goes to {first['node']}, {record['margin']} points ahead of {second['node']} "
        f"({first['total']:,} to {second['total']:,})."
    )
    expect(view.locator(".scores tbody tr")).to_have_count(20)
    assert view.locator(".scores tbody th").all_inner_texts() == [
        each["node"] for each in record["best"]
    ]
    # Plugins that tell nodes apart come first.
    heads = view.locator(".scores thead th").all_inner_texts()[5:]
    names = ["".join(head.split()) for head in heads]
    assert sorted(names) == sorted(PLUGINS)
    assert set(names[:4]) == {name for name, (_, is_telling) in PLUGINS.items() if is_telling}
    cells = view.locator("tr.chosen td.score")
    assert cells.all_inner_texts() == [str(first["scores"][name]["weighted"]) for name in names]


def test_plugins_that_gave_every_node_nothing_are_named_below_the_table(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    record = server.cluster.decide("team/web")
    silent = ("InterPodAffinity", "TaintToleration")
    for each in record["best"]:
        for plugin in silent:
            each["scores"][plugin] = {"raw": 0, "normalized": 0, "weighted": 0}
    page = open_page(f"{server.url}/#pod=team/web")
    heads = page.locator(".scores thead th").all_inner_texts()[5:]
    assert sorted("".join(head.split()) for head in heads) == sorted({*PLUGINS} - {*silent})
    expect(page.locator("#pod-view .all-zero")).to_have_text(
        "0 for all of these nodes: InterPodAffinity, TaintToleration"
    )


def test_equal_nodes_are_called_equal(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    record = server.cluster.decide("team/web")
    first, second = record["best"][:2]
    second.update(scores=first["scores"], total=first["total"])
    record["margin"] = 0
    page = open_page(server.url)
    expect(lines(page).first.locator(".margin")).to_have_text("equal")
    lines(page).first.click()
    view = page.locator("#pod-view")
    expect(view.locator(".verdict")).to_have_text(
        f"It goes to {first['node']}, with as many points as {second['node']} "
        f"({first['total']:,}): equal nodes take turns."
    )
    expect(view.locator(".note").first).to_have_text("Every plugin gave both the same score.")


@pytest.mark.parametrize(
    ("count", "words"),
    [
        pytest.param(1, "{node} alone was answered 7 of 10, the most; kube-scheduler ", id="one"),
        pytest.param(
            3,
            "3 of 30 nodes were answered 7 of 10, the most; "
            "kube-scheduler picks among equal ones by itself, and ",
            id="some are equal",
        ),
        pytest.param(
            30,
            "All 30 nodes were answered 7 of 10; "
            "kube-scheduler picks among equal ones by itself, and ",
            id="all are equal",
        ),
    ],
)
def test_what_kube_scheduler_was_answered_is_beside_our_points(
    count: int, words: str, open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    record = server.cluster.decide("team/web")
    by_node = {each["node"]: 7 if at < count else 6 for at, each in enumerate(record["best"])}
    record["extender_verb"] = "prioritize"
    record["priorities"] = {"by_node": by_node, "highest": 7, "highest_count": count}
    page = open_page(f"{server.url}/#pod=team/web")
    expect(page.locator("#pod-view .priorities")).to_have_text(
        f"{words.format(node=record['node'])}adds its own scores."
    )
    expect(page.locator(".scores thead th").nth(2)).to_have_text("of 10")
    told = page.locator(".scores td.priority").all_inner_texts()
    assert told == [str(each) for each in by_node.values()]


def test_bars_are_as_long_as_what_plugins_gave(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    record = server.cluster.decide("team/web")
    page = open_page(f"{server.url}/#pod=team/web")
    expect(page.locator(".scores tbody tr")).to_have_count(20)
    most = max(score["weighted"] for each in record["best"] for score in each["scores"].values())
    for each in (record["best"][0], record["best"][19]):
        for plugin, score in each["scores"].items():
            cell = page.locator(f'td[data-plugin="{plugin}"][data-node-name="{each["node"]}"]')
            size = cell.locator(".meter").evaluate("bar => getComputedStyle(bar).backgroundSize")
            part = float(size.split("%")[0]) / 100
            assert part == pytest.approx(score["weighted"] / most, abs=0.001)


def test_a_cell_tells_raw_and_normalised(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    record = server.cluster.decide("team/web")
    page = open_page(f"{server.url}/#pod=team/web")
    second = record["best"][1]
    score = second["scores"]["NetworkTraffic"]
    behind = record["best"][0]["scores"]["NetworkTraffic"]["weighted"] - score["weighted"]
    difference = f"−{behind}" if behind > 0 else f"+{-behind}" if behind else "0"
    cell = page.locator(f'td[data-plugin="NetworkTraffic"][data-node-name="{second["node"]}"]')
    want = [
        f"NetworkTraffic of {second['node']}",
        f"raw {score['raw']}",
        f"normalised {score['normalized']}",
        f"weighted {score['weighted']}, 9 times",
        f"{difference} against {record['node']}",
    ]
    cell.hover()
    assert page.locator("#tooltip").inner_text().splitlines() == want
    page.mouse.move(2, 2)
    expect(page.locator("#tooltip")).to_be_hidden()
    cell.focus()
    assert page.locator("#tooltip").inner_text().splitlines() == want


def test_what_was_measured_is_beside_the_scores(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    record = server.cluster.decide("team/web")
    page = open_page(f"{server.url}/#pod=team/web")
    first = record["best"][0]
    row = page.locator("tr.chosen")
    measured = first["measured"]
    assert row.locator("td.measured").all_inner_texts() == [
        f"{100 * measured['share']:.1f} %",
        "10 Gb/s",
        "+200 Mb/s" if measured["added_receive"] else "–",
    ]
    expect(page.locator("#pod-view")).to_contain_text(
        "The traffic had been measured 4.2 s before, over 60 s; "
        "of this pod 200 Mb/s in and 8 Mb/s out are expected."
    )


def test_reasons_and_times_are_told(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    server.cluster.decide("team/large", message=NOWHERE)
    page = open_page(f"{server.url}/#pod=team/large")
    view = page.locator("#pod-view")
    expect(view.locator(".verdict")).to_have_text(f"Fits nowhere. {NOWHERE}")
    assert view.locator(".reasons dt").all_inner_texts() == [
        "Insufficient cpu",
        "node(s) were unschedulable",
    ]
    assert view.locator(".reasons dd").all_inner_texts() == ["29", "1"]
    expect(view.locator(".times tr").first).to_contain_text("120 µs")
    expect(view.locator(".times + .note")).to_have_text(
        "Plugins that are not listed did not run: their answers for an equal pod were still valid."
    )
    expect(view.locator(".scores")).to_have_count(0)


def test_earlier_attempts_can_be_looked_at(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    server.cluster.decide("team/web", message=NOWHERE)
    page = open_page(f"{server.url}/#pod=team/web")
    view = page.locator("#pod-view")
    expect(view.locator(".verdict")).to_contain_text("Fits nowhere")
    record = server.cluster.decide("team/web")
    expect(view.locator(".verdict")).to_contain_text(f"It goes to {record['node']}")
    view.get_by_role("button", name="1.").click()
    expect(view.locator(".verdict")).to_contain_text("Fits nowhere")
    expect(view.get_by_role("button", name="1.")).to_have_attribute("aria-pressed", "true")


def test_a_pod_that_nothing_is_known_of_is_told(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    page = open_page(f"{serve().url}/#pod=team/unknown")
    expect(page.locator("#pod-view")).to_contain_text(
        "nothing is known of /api/decisions/team/unknown"
    )
