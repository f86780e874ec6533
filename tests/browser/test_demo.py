"""The page of `lowtide demo` in a real browser: real decisions on the embedded cluster. Takes the
README's pictures where LOWTIDE_SCREENSHOTS names a folder for them."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from realparts.process import Process, free_port

pytestmark = pytest.mark.real("chromium")

LOWTIDE = Path(sys.executable).parent / "lowtide"
SIZE = {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = Process(
        "demo",
        [LOWTIDE, "demo", "--plain", f"--page-port={port}"],
        folder=tmp_path_factory.mktemp("demo"),
        url=url,
    )
    process.start()
    process.wait_until_ready(lambda: f"Open {url}" in process.log())
    yield url
    process.stop()


def test_the_page_shows_what_the_scheduler_does(
    demo_url: str, open_page: Callable[..., Page]
) -> None:
    page = open_page(demo_url, viewport=SIZE)
    expect(page.locator("#mode")).to_have_text("demo")
    expect(page.locator("#busiest tbody tr")).to_have_count(12, timeout=20_000)
    expect(page.locator("#decisions-list li").first).to_be_visible(timeout=60_000)
    expect(page.locator("#health .reading")).to_contain_text("measured")

    line = page.locator("#decisions-list a").first
    pod, node = line.locator(".pod").inner_text(), line.locator(".node").inner_text()[2:]
    line.click()
    expect(page.locator("#pod-title")).to_have_text(pod)
    expect(page.locator(".scores tr.chosen th")).to_have_text(node)
    heads = page.locator(".scores thead th").all_inner_texts()
    assert "NetworkTraffic" in ["".join(head.split()) for head in heads]
    total = page.locator(".scores tr.chosen td.total").inner_text()
    parts = page.locator(".scores tr.chosen td.score").all_inner_texts()
    assert sum(map(_number, parts)) == _number(total)

    page.locator(".scores tr.chosen a").click()
    expect(page.locator("#node-title")).to_have_text(node)
    expect(page.locator("#node-view .chart path.receive")).to_be_visible(timeout=20_000)
    expect(page.locator(f'#node-view .pods a[data-pod="{pod}"]')).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("#heat-marks")).to_be_visible()


@pytest.mark.parametrize(
    ("colours", "hash_of"),
    [
        pytest.param("light", lambda pod, node: "", id="shows the cluster in light"),
        pytest.param(
            "dark", lambda pod, node: f"#pod={pod}&node={node}", id="shows a decision in dark"
        ),
    ],
)
def test_a_picture(
    colours: Literal["light", "dark"],
    hash_of: Callable[[str, str], str],
    demo_url: str,
    open_page: Callable[..., Page],
    tmp_path: Path,
) -> None:
    page = open_page(demo_url, viewport=SIZE, color_scheme=colours)
    first = page.locator("#decisions-list a").first
    expect(first).to_be_visible(timeout=60_000)
    if "LOWTIDE_SCREENSHOTS" in os.environ:  # with more to see
        expect(page.locator("#decisions-list a").nth(14)).to_be_visible(timeout=90_000)
    pod = str(first.get_attribute("data-pod"))
    node = first.locator(".node").inner_text()[2:]
    page.evaluate("hash => { location.hash = hash; }", hash_of(pod, node))
    shown = page.locator("#node-view .chart path.receive, #cluster-view #health .reading")
    expect(shown.locator("visible=true").first).to_be_visible(timeout=30_000)
    page.evaluate("document.activeElement.blur()")
    folder = Path(os.environ.get("LOWTIDE_SCREENSHOTS", tmp_path))
    picture = folder / f"page-{colours}.png"
    page.screenshot(path=picture)
    assert 10_000 < picture.stat().st_size < 300_000


def _number(text: str) -> int:
    return int(re.sub(r"\D", "", text))
