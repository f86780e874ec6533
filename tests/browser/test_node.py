"""The panel of one node in a real browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from tests.browser.page_server import PageServer

pytestmark = pytest.mark.real("chromium")


def test_its_traffic_is_drawn_against_the_capacity(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    page = open_page(f"{server.url}/#node=node-0003")
    view = page.locator("#node-view")
    history = server.cluster.node_answer("node-0003")
    assert history is not None
    for line in ("receive", "transmit"):
        path = view.locator(f".chart path.{line}")
        expect(path).to_have_count(1)
        # One point for each reading.
        drawn = path.get_attribute("d") or ""
        assert drawn.count("M") + drawn.count("L") == len(history["history"]["times"])
    expect(view.locator(".chart")).to_contain_text("capacity 10 Gb/s")
    capacity, received, sent = (
        view.locator(f".chart .{line}").evaluate("line => line.getBoundingClientRect().top")
        for line in ("capacity", "receive", "transmit")
    )
    assert capacity < received < sent


def test_the_chart_is_read_by_pointer_and_by_keys(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    page = open_page(f"{server.url}/#node=node-0003")
    chart = page.locator("#node-view .chart")
    chart.focus()
    chart.press("ArrowLeft")
    answer = server.cluster.node_answer("node-0003")
    assert answer is not None
    received = answer["history"]["receive"][-2]
    expect(page.locator("#tooltip")).to_contain_text(f"in {8 * received / 1e9:.2f}".rstrip("0"))
    chart.hover(position={"x": 5, "y": 50})
    received = answer["history"]["receive"][0]
    expect(page.locator("#tooltip")).to_contain_text(f"in {8 * received / 1e9:.2f}".rstrip("0"))


def test_its_pods_resources_and_labels_are_told(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    page = open_page(f"{serve().url}/#node=node-0003")
    view = page.locator("#node-view")
    expect(view.locator(".pods tr")).to_have_count(3)
    assert [row.locator("td").all_inner_texts() for row in view.locator(".pods tr").all()] == [
        [f"team/worker-3-{number}", "", "0.5 cpu", "512 MiB"] for number in range(3)
    ]
    assert [row.locator("td").all_inner_texts() for row in view.locator(".resources tr").all()] == [
        ["cpu", "", "1.5 of 16", "9.4 %"],
        ["memory", "", "1.5 GiB of 64 GiB", "2.3 %"],
        ["pods", "", "3 of 110", "2.7 %"],
    ]
    assert view.locator(".labels li").all_inner_texts() == [
        "kubernetes.io/hostname=node-0003",
        "topology.kubernetes.io/zone=zone-a",
        "topology.kubernetes.io/rack=rack-000",
    ]
    expect(view).to_contain_text("Cordoned: no new pods.")
    view.locator(".pods a").first.click()
    expect(page.locator("#pod-title")).to_have_text("team/worker-3-0")
    assert page.evaluate("location.hash") == "#node=node-0003&pod=team/worker-3-0"


def test_why_waiting_pods_are_rejected_there_is_told(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    server = serve()
    page = open_page(f"{server.url}/#node=node-0004")
    rejections = page.locator('[data-part="rejections"]')
    expect(rejections).to_contain_text("None.")
    server.cluster.decide("team/large", message="0/30 nodes are available: 30 Insufficient cpu.")
    expect(rejections.locator("tr")).to_have_count(1)
    assert rejections.locator("td").all_inner_texts() == [
        "team/large",
        "Insufficient cpu; Insufficient memory NodeResourcesFit",
    ]
    expect(page.locator("#node-view")).to_contain_text("dedicated=batch:NoSchedule")


def test_a_node_without_a_reading_says_so(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    page = open_page(f"{serve().url}/#node=node-0005")
    view = page.locator("#node-view")
    expect(view.locator(".measured")).to_have_text("no traffic known of 10 Gb/s, no reading")
    expect(view).to_contain_text("Too few readings yet for a chart.")


def test_an_unknown_node_is_told(
    open_page: Callable[..., Page], serve: Callable[..., PageServer]
) -> None:
    page = open_page(f"{serve().url}/#node=gone")
    expect(page.locator("#node-view")).to_contain_text("nothing is known of /api/nodes/gone")
    expect(page.locator("#banner")).to_be_hidden()
