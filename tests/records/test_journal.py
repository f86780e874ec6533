"""Decision records on disk."""

from pathlib import Path

import msgspec
import pytest
from tests.records.test_flips import QUIET, ROOMY, record

from lowtide.records.journal import Journal, JournalError, read_journal
from lowtide.records.record import DecisionRecord


def numbered(count: int, start: int = 1) -> list[DecisionRecord]:
    made = record(QUIET, ROOMY)
    return [msgspec.structs.replace(made, seq=number) for number in range(start, start + count)]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    journal = Journal(path)
    journal.write(numbered(2))
    journal.write(numbered(1, 3))
    assert list(read_journal(path)) == numbered(3)


def test_a_full_file_is_put_aside_and_the_oldest_go(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    line = len(msgspec.json.encode(numbered(1)[0])) + 1
    journal = Journal(path, max_bytes=2 * line, kept_files=2)
    for number in range(1, 9):
        journal.write(numbered(1, number))
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "decisions.jsonl",
        "decisions.jsonl.1",
        "decisions.jsonl.2",
    ]
    assert [each.seq for each in read_journal(path)] == [3, 4, 5, 6, 7, 8]


def test_a_last_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    Journal(path).write(numbered(2))
    path.write_bytes(path.read_bytes()[:-10])
    assert list(read_journal(path)) == numbered(1)


def test_a_file_of_something_else_is_rejected_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    with pytest.raises(JournalError, match=r"notes.txt:1: no decision record"):
        list(read_journal(path))
    with pytest.raises(JournalError, match="cannot be read: No such file"):
        list(read_journal(tmp_path / "none"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param(b'{"new": ' + b"[" * 5000 + b"\n", "nested too deeply", id="nested"),
        pytest.param(b'{"seq": "' + b"a" * 2**24, "longer than 16 MiB", id="long"),
    ],
)
def test_a_line_that_would_take_too_much_is_no_record(
    tmp_path: Path, line: bytes, why: str
) -> None:
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(line)
    with pytest.raises(JournalError, match=f"jsonl:1: no decision record: it is {why}"):
        list(read_journal(path))
    Journal(path).write(numbered(1))
    assert list(read_journal(path)) == numbered(1)


def test_what_follows_a_line_that_was_cut_is_read(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    Journal(path).write(numbered(2))
    path.write_bytes(path.read_bytes()[:-10])
    Journal(path).write(numbered(1, 3))
    assert [each.seq for each in read_journal(path)] == [1, 3]


def test_a_first_line_that_was_cut_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    Journal(path).write(numbered(1))
    path.rename(tmp_path / "decisions.jsonl.1")
    path.write_text('{"seq": 2, "po')
    Journal(path).write(numbered(1, 3))
    path.with_name("decisions.jsonl.2").write_text("\0\0\0")
    assert [each.seq for each in read_journal(path)] == [1, 3]


def test_without_any_sound_line_the_first_of_the_newest_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello\nworld\n")
    path.with_name("notes.txt.1").write_text("older\n")
    with pytest.raises(JournalError, match=r"notes.txt:1: no decision record"):
        list(read_journal(path))


def test_an_empty_journal_has_no_decisions(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    path.touch()
    assert list(read_journal(path)) == []


def test_no_file_grows_beyond_its_size_and_none_is_for_others(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    line = len(msgspec.json.encode(numbered(1)[0])) + 1
    Journal(path, max_bytes=3 * line, kept_files=9).write(numbered(9))
    assert [each.seq for each in read_journal(path)] == list(range(1, 10))
    files = list(tmp_path.iterdir())
    assert len(files) == 3
    assert {each.stat().st_size <= 3 * line for each in files} == {True}
    assert {each.stat().st_mode & 0o777 for each in files} == {0o600}
