"""A file that is on no disk, for those who read from files only."""

import os

import pytest

from lowtide.memory_file import MemoryFile


def test_it_is_read_by_its_path_from_the_beginning_and_often() -> None:
    with MemoryFile(b"content") as file:
        assert [file.path.read_bytes() for _ in range(2)] == [b"content"] * 2


def test_nothing_is_left_of_it() -> None:
    with MemoryFile(b"content") as file:
        path = file.path
    with pytest.raises(OSError):
        path.read_bytes()


def test_it_needs_no_folder_that_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", os.devnull)
    with MemoryFile(b"content") as file:
        assert file.path.read_bytes() == b"content"


def test_a_system_without_such_files_has_one_for_us_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with MemoryFile(b"content") as file:
        path = file.path
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"content", 0o600)
    assert not path.exists()
