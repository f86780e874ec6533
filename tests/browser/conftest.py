"""How the tests of the page get a real browser, and what holds whatever they do: no script fails,
and nothing is asked of any host but the one that served the page."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.browser.chromium import SWITCHES
from tests.browser.made_cluster import MadeCluster
from tests.browser.page_server import PageServer

# What the browser itself says of an answer that is an error or does not come.
OF_THE_NETWORK = "Failed to load resource"


@pytest.fixture(scope="module")
def browser(parts: Callable[..., dict[str, Path]]) -> Iterator[Browser]:
    chromium = parts("chromium")["chromium"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=list(SWITCHES))
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens an address in a window of its own; settings are those of Browser.new_context."""
    failures: list[str] = []
    hosts: set[str] = set()
    own_hosts: set[str] = set()
    with ExitStack() as windows:

        def open_one(url: str, **settings: Any) -> Page:
            window = {"viewport": {"width": 1400, "height": 900}, **settings}
            context = browser.new_context(**window)
            windows.callback(context.close)
            page = context.new_page()
            own_hosts.add(urlsplit(url).netloc)
            page.on("pageerror", lambda error: failures.append(str(error)))
            page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
            page.on(
                "console",
                lambda message: (
                    failures.append(message.text)
                    if message.type == "error" and not message.text.startswith(OF_THE_NETWORK)
                    else None
                ),
            )
            page.goto(url)
            return page

        yield open_one
    assert failures == []
    assert hosts == own_hosts


@pytest.fixture
def serve() -> Iterator[Callable[..., PageServer]]:
    """Serves a made-up cluster of that many nodes; settings are PageServer's."""
    with ExitStack() as running:

        def start(nodes: int = 30, **settings: Any) -> PageServer:
            return running.enter_context(PageServer(MadeCluster(nodes), **settings).serve())

        yield start
