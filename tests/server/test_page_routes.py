import re
from importlib.resources import files

import aiohttp
import pytest
from tests.server.conftest import running

from lowtide.server.http import Server
from lowtide.server.page_routes import page_routes

NAMES = sorted(
    file.name for file in (files("lowtide.server") / "page").iterdir() if file.name != "index.html"
)


def make_server() -> Server:
    return Server(page_routes(), port=0)


@pytest.mark.parametrize(
    ("path", "name", "content_type"),
    [
        pytest.param("/", "index.html", "text/html", id="serves the page itself"),
        pytest.param("/page/page.css", "page.css", "text/css", id="serves styles"),
        pytest.param("/page/main.js", "main.js", "text/javascript", id="serves scripts"),
        pytest.param("/page/icon.svg", "icon.svg", "image/svg+xml", id="serves the icon"),
    ],
)
async def test_a_file_is_served(path: str, name: str, content_type: str) -> None:
    async with (
        running(make_server()) as url,
        aiohttp.ClientSession() as session,
        session.get(url + path) as response,
    ):
        assert response.status == 200
        assert await response.read() == (files("lowtide.server") / "page" / name).read_bytes()
        wanted = {
            "Content-Type": f"{content_type}; charset=utf-8",
            "Content-Security-Policy": (
                "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            ),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
        }
        assert {header: response.headers[header] for header in wanted} == wanted


async def test_a_file_that_is_known_is_not_sent_again() -> None:
    async with running(make_server()) as url, aiohttp.ClientSession() as session:
        async with session.get(f"{url}/page/main.js") as first:
            tag = first.headers["ETag"]
        async with session.get(f"{url}/page/main.js", headers={"If-None-Match": tag}) as again:
            assert (again.status, await again.read()) == (304, b"")
            assert again.headers["ETag"] == tag
        old = {"If-None-Match": '"of-another-version"'}
        async with session.get(f"{url}/page/main.js", headers=old) as other:
            assert other.status == 200


@pytest.mark.parametrize(
    "path",
    ["/page/", "/page/index.html", "/page/../page_routes.py", "/page/%2e%2e/http.py", "/main.js"],
)
async def test_nothing_else_is_served(path: str) -> None:
    async with (
        running(make_server()) as url,
        aiohttp.ClientSession() as session,
        session.get(url + path) as response,
    ):
        assert response.status == 404


async def test_every_file_is_asked_for_by_another() -> None:
    """And each that is asked for is there."""
    async with running(make_server()) as url, aiohttp.ClientSession() as session:
        found, wanted = {"main.js"}, ["main.js"]
        async with session.get(url) as response:
            index = await response.text()
        named = set(re.findall(r'(?:href|src)="page/([^"]+)"', index))
        while wanted:
            async with session.get(f"{url}/page/{wanted.pop()}") as response:
                assert response.status == 200
                imported = set(re.findall(r'from "\./([^"]+)"', await response.text()))
            wanted += imported - found
            found |= imported
        assert sorted(found | named) == NAMES
