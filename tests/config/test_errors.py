"""The wording shared by all problems."""

import pytest

from lowtide.config.errors import ConfigError, Path, did_you_mean, path_text, value_text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param((), "", id="writes nothing for the whole document"),
        pytest.param(("profiles", 0, "plugins"), "profiles[0].plugins", id="writes an index"),
        pytest.param(
            ("data", "scheduler-config.yaml", "kind"),
            'data["scheduler-config.yaml"].kind',
            id="quotes a key with a dot",
        ),
        pytest.param(("", "a b"), '[""]["a b"]', id="quotes an empty key"),
    ],
)
def test_path_text(path: Path, text: str) -> None:
    assert path_text(path) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("scores", ', did you mean "score"?', id="offers a near name"),
        pytest.param("MULTIPOINT", ', did you mean "multiPoint"?', id="looks past capitals"),
        pytest.param("zebra", ";", id="offers nothing when nothing is near"),
    ],
)
def test_did_you_mean(name: str, text: str) -> None:
    assert did_you_mean(name, ["filter", "score", "multiPoint"]) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(None, "null", id="names null"),
        pytest.param(True, "the boolean true", id="names a boolean"),
        pytest.param(3, "the integer 3", id="names an integer"),
        pytest.param(1.5, "the number 1.5", id="names a fraction"),
        pytest.param('a"b', 'the string "a\\"b"', id="quotes a string"),
        pytest.param("x" * 70, f'the string "{"x" * 60}…"', id="cuts a long string"),
        pytest.param({"a": 1}, "a mapping", id="names a mapping"),
        pytest.param([1], "a list", id="names a list"),
    ],
)
def test_value_text(value: object, text: str) -> None:
    assert value_text(value) == text


def test_an_error_prints_one_problem_a_line() -> None:
    error = ConfigError(["first", "second"])
    assert (error.problems, str(error)) == (("first", "second"), "first\nsecond")
