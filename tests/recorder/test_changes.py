"""What differs between two recordings, by kind and with an example."""

from collections import Counter
from typing import Any

from recorder.changes import Change, Comparison, compare, table


def make_case(name: str, expected: dict[str, Any], family: str = "f") -> dict[str, Any]:
    return {"id": name, "family": family, "scenario": {}, "expected": expected}


def test_equal_recordings_have_no_changes() -> None:
    cases = [make_case("one", {"best": ["a"]})]
    assert compare(cases, cases) == Comparison(same=1, different=0, missing=(), changes=())


def test_a_kind_names_the_plugin_and_not_the_node() -> None:
    before = [
        make_case("one", {"scores": {"ImageLocality": {"a": {"raw": 24}, "b": {"raw": 3}}}}),
        make_case("two", {"scores": {"ImageLocality": {"c": {"raw": 1}}}}, family="g"),
    ]
    after = [
        make_case("one", {"scores": {"ImageLocality": {"a": {"raw": 16}, "b": {"raw": 2}}}}),
        make_case("two", {"scores": {"ImageLocality": {"c": {"raw": 0}}}}, family="g"),
    ]
    assert compare(before, after).changes == (
        Change(
            "scores/ImageLocality/NODE/raw",
            cases=Counter({"f": 1, "g": 1}),
            example="one",
            before="24",
            after="16",
        ),
    )


def test_a_kind_that_more_cases_show_comes_first() -> None:
    before = [make_case(name, {"fit_error": "x", "best": ["a"]}) for name in ("one", "two")]
    after = [
        make_case("one", {"fit_error": "y", "best": ["b"]}),
        make_case("two", {"fit_error": "y", "best": ["a"]}),
    ]
    assert [(each.where, each.cases.total()) for each in compare(before, after).changes] == [
        ("fit_error", 2),
        ("best", 1),
    ]


def test_a_case_in_one_recording_only_is_named() -> None:
    comparison = compare([make_case("one", {}), make_case("two", {})], [make_case("one", {})])
    assert comparison == Comparison(same=1, different=0, missing=("two",), changes=())


def test_the_table_keeps_bars_apart_from_columns() -> None:
    before = [make_case("one", {"filter": {"a": "ok"}})]
    after = [make_case("one", {"filter": {"a": "x|y"}})]
    assert table(compare(before, after)).splitlines() == [
        "1 of 1 answers changed.",
        "",
        "| what | cases | families | example | before | after |",
        "|---|---|---|---|---|---|",
        "| `filter/NODE` | 1 | f 1 | one | `ok` | `x\\|y` |",
    ]
