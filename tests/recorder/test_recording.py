"""Files of cases, and a recorder's answers on their way into one."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from recorder.recording import BadCases, Recorded, read_cases, record, write_cases

# Answers with what it was asked, leaves one case out, and says why.
PROGRAM = """#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    case = json.loads(line)
    if case["id"] == "odd":
        print("case odd is left out", file=sys.stderr)
    else:
        print(json.dumps({**case, "expected": {"asked": case["scenario"], "with": sys.argv[1:]}}))
"""


def make_program(folder: Path, text: str = PROGRAM) -> Path:
    program = folder / "recorder"
    program.write_text(text)
    program.chmod(0o755)
    return program


def make_case(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "family": "f", "scenario": {"pod": name}, **more}


@pytest.mark.parametrize("name", ["cases.jsonl", "cases.jsonl.gz"])
def test_cases_are_read_as_they_were_written(tmp_path: Path, name: str) -> None:
    cases = [make_case("one"), make_case("two")]
    assert write_cases(tmp_path / name, cases) == 2
    assert list(read_cases(tmp_path / name)) == cases


def test_the_same_cases_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("first.gz", "second.gz"):
        write_cases(tmp_path / name, [make_case("one")])
    assert (tmp_path / "first.gz").read_bytes() == (tmp_path / "second.gz").read_bytes()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("{", "line 2 is not JSON", id="rejects half an object"),
        pytest.param("[]", "line 2 is not a case; one has id", id="rejects a list"),
        pytest.param('{"id": "x"}', "line 2 is not a case", id="rejects a case without scenario"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text('{"id": "a", "family": "f", "scenario": {}}\n' + text + "\n")
    with pytest.raises(BadCases, match=said):
        list(read_cases(file))


def test_a_file_that_is_not_gzipped_is_named(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl.gz"
    file.write_text("{}")
    with pytest.raises(BadCases, match=r"cases\.jsonl\.gz cannot be read"):
        list(read_cases(file))


def test_answers_are_kept_in_order_and_what_is_left_out_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    cases = [make_case("one", expected="an old answer"), make_case("odd"), make_case("two")]
    file = tmp_path / "recorded.jsonl.gz"
    done = record(make_program(tmp_path), cases, repeat=2, path=file, say=said.append)
    assert done == Recorded(answered=2, problems=("case odd is left out",))
    assert said == ["recorder: 1 of 3 cases", "recorder: 2 of 3 cases"]
    assert [(case["id"], case["expected"]) for case in read_cases(file)] == [
        ("one", {"asked": {"pod": "one"}, "with": ["-repeat=2"]}),
        ("two", {"asked": {"pod": "two"}, "with": ["-repeat=2"]}),
    ]


def test_a_recorder_that_ends_early_leaves_no_file(tmp_path: Path) -> None:
    text = "#!/bin/sh\necho 'out of memory' >&2\nexit 3\n"
    file = tmp_path / "recorded.jsonl.gz"
    with pytest.raises(BadCases, match="ended with 3: out of memory"):
        record(make_program(tmp_path, text), [make_case("a")], repeat=1, path=file, say=print)
    assert not file.exists()


def test_packed_files_hold_one_line_a_case(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl.gz"
    write_cases(file, [make_case("one")])
    assert gzip.decompress(file.read_bytes()) == (
        b'{"id":"one","family":"f","scenario":{"pod":"one"}}\n'
    )
