"""The heat map in a real browser: cells, groups, order, pointer, and the table beside it."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, Position, expect
from tests.browser.page_server import PageServer

pytestmark = pytest.mark.real("chromium")

# Within the first cell: the title of its group is 18 px high.
FIRST_CELL: Position = {"x": 12, "y": 30}
HOT_IN_LIGHT = [217, 72, 15]


def canvas(page: Page) -> Locator:
    return page.locator("#heat-marks")


def tip_title(page: Page) -> Locator:
    return page.locator("#tooltip b")


def pixels_of(page: Page, colour: list[int]) -> int:
    """How many pixels of the cells have exactly this colour."""
    found = page.evaluate(
        """([red, green, blue]) => {
          const cells = document.getElementById("heat-cells");
          const {data} = cells.getContext("2d").getImageData(0, 0, cells.width, cells.height);
          let found = 0;
          for (let at = 0; at < data.length; at += 4) {
            found += data[at] === red && data[at + 1] === green && data[at + 2] === blue;
          }
          return found;
        }""",
        colour,
    )
    return int(found)


def drawn(page: Page) -> str:
    return str(page.evaluate("document.getElementById('heat-cells').toDataURL()"))


def test_a_click_opens_the_node(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    page = open_page(serve().url)
    expect(page.locator("#busiest tbody tr")).to_have_count(20)
    canvas(page).click(position=FIRST_CELL)
    expect(page.locator("#node-title")).to_have_text("node-0000")
    assert page.evaluate("location.hash") == "#node=node-0000"


def test_the_pointer_is_told_what_lies_under_it(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    page = open_page(server.url)
    expect(page.locator("#busiest tbody tr")).to_have_count(20)
    canvas(page).hover(position=FIRST_CELL)
    server.cluster.usual_shares[0] = 0.25
    expect(page.locator("#tooltip")).to_contain_text("25 %")
    assert page.locator("#tooltip").inner_text().splitlines() == [
        "node-0000",
        "25 % of 10 Gb/s",
        "2.5 Gb/s in, 1 Gb/s out",
        "0 pods, 0 % of its cpu requested",
        "zone-a, rack-000",
    ]
    page.mouse.move(2, 2)
    expect(page.locator("#tooltip")).to_be_hidden()


@pytest.mark.parametrize(
    ("order", "want"),
    [
        pytest.param("name", "node-0000", id="begins with the first name"),
        pytest.param("share", "node-0003", id="begins with the busiest"),
    ],
)
def test_order(
    order: str, want: str, open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    page = open_page(serve().url)
    expect(page.locator("#busiest tbody tr")).to_have_count(20)
    page.locator("#order-by").select_option(order)
    canvas(page).hover(position=FIRST_CELL)
    expect(tip_title(page)).to_have_text(want)


@pytest.mark.parametrize(
    ("group", "next_group"),
    [
        pytest.param("zones", "node-0001", id="puts zones apart"),
        pytest.param("racks", "node-0040", id="puts racks apart"),
    ],
)
def test_groups(
    group: str, next_group: str, open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    page = open_page(serve(nodes=90).url)
    expect(page.locator("#busiest tbody tr")).to_have_count(20)
    page.locator("#group-by").select_option(group)
    canvas(page).press("Home")
    canvas(page).press("PageDown")
    expect(page.locator("#heat-told")).to_contain_text(next_group)


def test_without_groups_all_nodes_are_one(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    page = open_page(serve(nodes=90).url)
    expect(page.locator("#busiest tbody tr")).to_have_count(20)
    page.locator("#group-by").select_option(label="nothing")
    for key, want in [
        ("Home", "node-0000"),
        ("ArrowRight", "node-0001"),
        ("ArrowLeft", "node-0000"),
        ("End", "node-0089"),
        ("PageDown", "node-0089"),
        ("PageUp", "node-0000"),
    ]:
        canvas(page).press(key)
        expect(page.locator("#heat-told")).to_contain_text(want)


def test_hot_nodes_are_outlined_and_unsure_ones_hatched(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    page = open_page(server.url)
    expect(page.locator("#busiest tbody tr")).to_have_count(20)
    assert pixels_of(page, HOT_IN_LIGHT) > 100
    before = drawn(page)
    canvas(page).focus()
    page.locator("#order-by").select_option("name")
    assert drawn(page) == before
    server.cluster.states[0] = "s"
    page.wait_for_function(
        "before => document.getElementById('heat-cells').toDataURL() !== before", arg=before
    )


def test_the_busiest_nodes_are_a_table_too(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    page = open_page(server.url)
    rows = page.locator("#busiest tbody tr")
    expect(rows).to_have_count(20)
    shares = {name: server.cluster.share(at) for at, name in enumerate(server.cluster.names)}
    ranked = sorted(shares, key=lambda name: -(shares[name] or -1.0))[:20]
    assert rows.locator("a").all_inner_texts() == ranked
    assert rows.first.locator("td").all_inner_texts() == [
        "node-0003",
        "",
        "93 %",
        "9.34 Gb/s",
        "3.74 Gb/s",
        "10 Gb/s",
        "3",
    ]
    rows.first.locator("a").click()
    expect(page.locator("#node-title")).to_have_text("node-0003")


def test_what_changes_is_seen(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    page = open_page(server.url)
    expect(page.locator("#summary")).to_contain_text("93 % node-0003")
    before = drawn(page)
    server.cluster.usual_shares[10] = 0.97
    expect(page.locator("#summary")).to_contain_text("node-0010")
    assert drawn(page) != before


def test_five_thousand_nodes_fit_and_are_found(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    page = open_page(serve(nodes=5000).url)
    expect(page.locator("#summary")).to_contain_text("5,000")
    canvas(page).press("End")
    expect(page.locator("#heat-told")).to_contain_text("node-4997")  # the last of zone-c
    canvas(page).press("Enter")
    expect(page.locator("#node-title")).to_have_text("node-4997")
