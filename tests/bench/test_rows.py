"""The rows of bench/results.json: what each has, and which a run replaces."""

import json
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

import pytest

from benches import Result
from drain import TURNS
from replay import ReplayResult
from rows import write_rows

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
OURS = ReplayResult("replay/check", 5000, 10_000, "lowtide", 1, 7.0, 0, 1.0)


@pytest.mark.parametrize("result", get_args(Result))
def test_every_row_says_what_was_measured_of_whom(result: type) -> None:
    names = [field.name for field in fields(result)]
    assert {"workload", "scheduler"} <= set(names)


def test_the_page_tells_of_every_field() -> None:
    (table,) = re.findall(
        r"^\| field of a row \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE.read_text(), re.M
    )
    told = [name for row in table.splitlines() for name in re.findall("`(.+?)`", row.split("|")[1])]
    units = tuple(name.removeprefix("...") for name in told if name.startswith("..."))
    kept = {"bench"} | {field.name for result in get_args(Result) for field in fields(result)}
    assert [name for name in sorted(kept - {*told}) if not name.endswith(units)] == []
    assert [name for name in told if name not in kept and not name.startswith("...")] == []


@pytest.mark.parametrize(
    "before",
    [
        pytest.param({"bench": "drain/basic/5000", "scheduler": "none"}, id="no turn of this run"),
        pytest.param({"bench": "drain/basic/50000", "scheduler": "lowtide"}, id="another size"),
        pytest.param({"bench": "page"}, id="another benchmark's"),
    ],
)
def test_a_row_stays_that_is_of(before: dict[str, Any], tmp_path: Path) -> None:
    assert _after(before, tmp_path)[0] == before


@pytest.mark.parametrize(
    "before",
    [
        pytest.param({"bench": "drain/basic/5000", "scheduler": "lowtide"}, id="the same turn"),
        pytest.param({"bench": "drain/basic/5000"}, id="nobody, as some once were"),
        pytest.param({"bench": "drain/basic/5000", "scheduler": "gone"}, id="who has no turns"),
    ],
)
def test_a_row_is_replaced_that_is_of(before: dict[str, Any], tmp_path: Path) -> None:
    assert _after(before, tmp_path) == [{"bench": "drain/basic/5000", **asdict(OURS)}]


def _after(before: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    file = folder / "results.json"
    file.write_text(json.dumps([before]))
    write_rows(file, "drain/basic/5000", [OURS])
    assert list(folder.iterdir()) == [file]
    rows: list[dict[str, Any]] = json.loads(file.read_text())
    return rows


def test_a_scheduler_that_has_no_turns_is_no_scheduler() -> None:
    """As docs/performance.md has them."""
    assert sorted(TURNS) == ["kube-scheduler", "kube-scheduler-all-nodes", "lowtide", "none"]
