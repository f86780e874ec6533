"""What pages lead to is there: files, and sections by the names that GitHub gives them."""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            page
            for folder in ("docs", "examples", "tools", "deploy", "bench")
            for page in (ROOT / folder).rglob("*.md")
        ),
    ]
)
_FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_ELSEWHERE = ("http://", "https://", "mailto:")


def without_code(page: Path) -> str:
    return _FENCED.sub("", page.read_text())


def broken(page: Path) -> Iterator[str]:
    # A link may stand in code to show how one is written.
    for link in _LINK.findall(re.sub(r"`[^`\n]*`", "", without_code(page))):
        if link.startswith(_ELSEWHERE):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.is_relative_to(ROOT) or not target.exists():
            yield f"{link}: there is no such file"
        elif anchor and anchor not in anchors(target):
            yield f"{link}: there is no such section; {', '.join(sorted(anchors(target)))}"


def anchors(page: Path) -> set[str]:
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", without_code(page), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        names = (slug if not number else f"{slug}-{number}" for number in count())
        found.add(next(name for name in names if name not in found))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


def test_the_readme_leads_to_every_page_once_in_its_list() -> None:
    listed = re.findall(r"^\| \[(docs/[\w-]+\.md)\]", (ROOT / "README.md").read_text(), re.M)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/*.md"))
