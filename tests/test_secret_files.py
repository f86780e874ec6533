"""What a file with a token or a password may hold."""

import re
from pathlib import Path

import pytest

from lowtide.secret_files import PASSWORD, TOKEN, read_secret


@pytest.mark.parametrize(
    ("content", "form", "want"),
    [
        pytest.param(b" token\n", TOKEN, "token", id="leaves out the spaces around a token"),
        pytest.param("pass wörd\r\n".encode(), PASSWORD, "pass wörd", id="takes any one line"),
    ],
)
def test_a_good_file(tmp_path: Path, content: bytes, form: re.Pattern[str], want: str) -> None:
    (tmp_path / "file").write_bytes(content)
    assert read_secret(tmp_path / "file", "token", form) == want


@pytest.mark.parametrize(
    ("content", "form"),
    [
        pytest.param(b"to ken", TOKEN, id="a space in a token"),
        pytest.param("tokén".encode(), TOKEN, id="a letter that a header cannot hold"),
        pytest.param(b"pass\nword", PASSWORD, id="a line break in a password"),
        pytest.param(b"pass\0word", PASSWORD, id="a control character"),
    ],
)
def test_a_file_that_holds_something_else(
    tmp_path: Path, content: bytes, form: re.Pattern[str]
) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match="it should hold the token on one line and nothing else"):
        read_secret(tmp_path / "file", "token", form)
