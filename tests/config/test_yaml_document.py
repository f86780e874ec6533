"""Text to plain data with lines."""

from textwrap import dedent
from typing import Any

import pytest

from lowtide.config.errors import ConfigError, Path
from lowtide.config.yaml_document import Document, read_documents, read_embedded


def read_one(text: str) -> Document:
    (document,) = read_documents(dedent(text), file="f.yaml")
    return document


@pytest.mark.parametrize(
    ("text", "data"),
    [
        pytest.param("a: 1\nb: [x, true]\n", {"a": 1, "b": ["x", True]}, id="reads YAML"),
        pytest.param('{"a": {"b": null}}', {"a": {"b": None}}, id="reads JSON"),
        pytest.param('{\n\t"a": "b\\tc"\n}', {"a": "b\tc"}, id="reads JSON indented by tabs"),
        pytest.param("a: 'yes'\nb: \"1\"\n", {"a": "yes", "b": "1"}, id="leaves quoted a string"),
        pytest.param("a: !!str 1\nb: !!int '2'\n", {"a": "1", "b": 2}, id="heeds a core tag"),
        pytest.param("on: 1\n2: b\n", {"true": 1, "2": "b"}, id="makes every key a string"),
        pytest.param("a: &x [1]\nb: *x\n", {"a": [1], "b": [1]}, id="follows an alias"),
        pytest.param(
            "a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  p: 3\n",
            {"a": {"p": 1, "q": 2}, "b": {"p": 3, "q": 2}},
            id="merges a mapping under the keys given beside it",
        ),
        pytest.param(
            "a: &a {p: 1}\nb: &b {p: 2, q: 2}\nc:\n  <<: [*a, *b]\n",
            {"a": {"p": 1}, "b": {"p": 2, "q": 2}, "c": {"p": 1, "q": 2}},
            id="takes the first of several merged mappings",
        ),
        pytest.param("\ufeffa: 1\n", {"a": 1}, id="skips a byte order mark"),
    ],
)
def test_data(text: str, data: Any) -> None:
    document = read_one(text)
    assert (document.data, document.problems) == (data, ())


def test_empty_documents_are_left_out() -> None:
    documents = read_documents("---\n# nothing\n---\na: 1\n---\n", file="f.yaml")
    assert [document.data for document in documents] == [{"a": 1}]


LINES = """\
profiles:
- schedulerName: a
  plugins:
    score:
      enabled:
      - name: X
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        pytest.param((), "f.yaml:1", id="names file and line for the whole"),
        pytest.param(("profiles",), "f.yaml:1: profiles", id="finds a key"),
        pytest.param(
            ("profiles", 0, "plugins", "score"),
            "f.yaml:4: profiles[0].plugins.score",
            id="finds a key inside",
        ),
        pytest.param(
            ("profiles", 0, "plugins", "score", "enabled", 0, "weight"),
            "f.yaml:6: profiles[0].plugins.score.enabled[0].weight",
            id="takes the line around what is not there",
        ),
    ],
)
def test_where(path: Path, place: str) -> None:
    assert read_one(LINES).where(path) == place


def test_a_key_that_overrides_a_merged_one_keeps_its_own_line() -> None:
    document = read_one("a: &x {p: [1]}\nb:\n  p:\n  - 2\n  <<: *x\n")
    assert (document.line(("b", "p")), document.line(("b", "p", 0))) == (3, 4)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "a:\n  b: 1\n  c: 2\n  b: 3\n",
            "f.yaml:2: a.b: is given again on line 4; keep one",
            id="rejects a duplicate key",
        ),
        pytest.param(
            '{"a": 1,\n "a": 1}',
            "f.yaml:1: a: is given again on line 2; keep one",
            id="rejects a duplicate key in JSON",
        ),
        pytest.param(
            "a: .inf\n",
            "f.yaml:1: a: must be a finite number or a quoted string, not .inf",
            id="rejects infinity",
        ),
        pytest.param(
            "a: !secret x\n",
            "f.yaml:1: a: has the YAML tag !secret, which is not supported; remove it",
            id="rejects a tag",
        ),
        pytest.param(
            "a: !!set {x}\n",
            "f.yaml:1: a: has the YAML tag !!set, which is not supported; remove it",
            id="rejects a set",
        ),
        pytest.param(
            "a:\n  <<: 3\n",
            "f.yaml:1: a: merges a value with << that is not a mapping",
            id="rejects to merge a number",
        ),
        pytest.param(
            "a:\n  ? [x]\n  : 1\n",
            "f.yaml:1: a: has a key that is not a string",
            id="rejects a list as a key",
        ),
    ],
)
def test_problems(text: str, problem: str) -> None:
    document = read_one(text)
    assert [document.problem(one.path, one.text) for one in document.problems] == [problem]


TOO_BIG = "is nested too deeply or holds more than 100000 values; a configuration is far smaller"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "a: 1\nb: [1\nc: 2\n",
            "f.yaml:3: is not valid YAML: expected ',' or ']', but got ':'",
            id="names the line of a syntax error",
        ),
        pytest.param(
            "a:\n\tb: 1\n",
            "f.yaml:2: is not valid YAML: found character '\\t' that cannot start any token",
            id="rejects tabs",
        ),
        pytest.param(
            "a: \x01\n",
            "f.yaml:1: is not valid YAML: special characters are not allowed",
            id="rejects control characters",
        ),
        pytest.param("a: &x [*x]\n", f"f.yaml:1: {TOO_BIG}", id="rejects an endless alias"),
        pytest.param("[" * 2000, f"f.yaml:1: {TOO_BIG}", id="rejects deep nesting"),
        pytest.param(
            "a0: &a0 [1]\n"
            + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)),
            f"f.yaml:1: {TOO_BIG}",
            id="rejects aliases that multiply",
        ),
    ],
)
def test_unreadable(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_documents(text, file="f.yaml")
    assert caught.value.problems == (problem,)


def test_a_document_of_too_many_values_is_rejected_before_all_of_it_is_read() -> None:
    syntax_error = "]]"
    with pytest.raises(ConfigError, match="holds more than 100000 values"):
        read_documents("a: [" + "x, " * 200_001 + syntax_error, file="f.yaml")


def test_many_documents_may_hold_more_values_than_one() -> None:
    text = "---\n" + "\n---\n".join(["a: [" + "x, " * 40_000 + "x]"] * 3)
    assert len(read_documents(text, file="f.yaml")) == 3


def test_a_text_that_is_far_too_long_is_rejected_unread() -> None:
    with pytest.raises(ConfigError) as caught:
        read_documents("a: " + "x" * 33 * 2**20, file="f.yaml")
    assert caught.value.problems == (
        "f.yaml: is longer than 32 MiB, the limit for YAML files; split it",
    )


@pytest.mark.parametrize(
    ("text", "places"),
    [
        pytest.param(
            "data:\n  a.yaml: | # comment\n    p: 1\n    q: 2\n",
            ['f.yaml:3: data["a.yaml"].p', 'f.yaml:4: data["a.yaml"].q'],
            id="counts the lines of a block",
        ),
        pytest.param(
            'data:\n  a.yaml: "p: 1\\nq: 2\\n"\n',
            ['f.yaml:2: data["a.yaml"].p', 'f.yaml:2: data["a.yaml"].q'],
            id="names the line of the key for a quoted string",
        ),
    ],
)
def test_embedded_lines(text: str, places: list[str]) -> None:
    outer = read_one(text)
    (inner,) = read_embedded(outer, ("data", "a.yaml"), outer.data["data"]["a.yaml"])
    assert [inner.where(("p",)), inner.where(("q",))] == places


def test_a_part_takes_along_the_problems_inside_it() -> None:
    document = read_one("x: {p: 1, p: 2}\nitems:\n- {q: 1, q: 2}\n")
    part = document.part(("items", 0), document.data["items"][0])
    assert [part.problem(one.path, one.text) for one in part.problems] == [
        "f.yaml:3: items[0].q: is given again on line 3; keep one"
    ]


def test_no_break_spaces_of_a_web_page_are_spaces() -> None:
    (document,) = read_documents("a:\n\u00a0\u00a0b: 1\n", file="pasted.yaml")
    assert document.data == {"a": {"b": 1}}
