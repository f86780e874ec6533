"""Decisions are written to a file beside the scheduling."""

import asyncio
import logging
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.records.kept_decisions import Keeping

from lowtide.app.journaling import MOST_WAITING, Journaling
from lowtide.records.journal import Journal, read_journal
from lowtide.records.record import DecisionRecord
from lowtide.testing import make_node, make_pod


async def test_what_is_noted_is_written(tmp_path: Path) -> None:
    kept = Keeping(make_node("a"), make_node("b")).decide(make_pod("one"), make_pod("two"))
    journaling = Journaling(Journal(tmp_path / "decisions"))
    for each in kept:
        journaling.note(each)
    await journaling.flush()
    await journaling.flush()
    assert list(read_journal(tmp_path / "decisions")) == [
        DecisionRecord.from_kept(each) for each in kept
    ]


async def test_a_file_that_cannot_be_written_is_told_of_once_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    (kept,) = Keeping(make_node("a")).decide(make_pod("one"))
    folder = tmp_path / "later"
    journaling = Journaling(Journal(folder / "decisions"))
    for _ in range(2):
        journaling.note(kept)
        await journaling.flush()
    folder.mkdir()
    journaling.note(kept)
    await journaling.flush()
    said = [record.getMessage() for record in caplog.records]
    assert [line for line in said if "cannot be written" in line] == said[:1]
    assert len(said) == 2
    assert caplog.records[1].__dict__["lowtide_fields"] == {"lost": 2}
    assert len(list(read_journal(folder / "decisions"))) == 1


async def test_what_waits_is_bounded_and_what_is_lost_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    (kept,) = Keeping(make_node("a")).decide(make_pod("one"))
    journaling = Journaling(Journal(tmp_path / "decisions"))
    for _ in range(MOST_WAITING + 3):
        journaling.note(kept)
    await journaling.flush()
    assert len(list(read_journal(tmp_path / "decisions"))) == MOST_WAITING
    (line,) = caplog.records
    assert line.__dict__["lowtide_fields"] == {"lost": 3}


class SlowJournal(Journal):
    """A disk that takes its time: a write goes on when `may_go_on` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()
        self.writers = self.most_writers = 0

    def write(self, records: Iterable[DecisionRecord]) -> None:
        self.writers += 1
        self.most_writers = max(self.most_writers, self.writers)
        self.has_begun.set()
        assert self.may_go_on.wait(10)
        super().write(records)
        self.writers -= 1


async def test_the_last_write_waits_for_one_under_way(tmp_path: Path) -> None:
    first, second = Keeping(make_node("a")).decide(make_pod("one"), make_pod("two"))
    journal = SlowJournal(tmp_path / "decisions")
    journaling = Journaling(journal, every_seconds=0.0)
    journaling.note(first)
    running = asyncio.create_task(journaling.run())
    assert await asyncio.to_thread(journal.has_begun.wait, 10)
    running.cancel()
    await asyncio.wait([running], timeout=1)
    journaling.note(second)
    journal.has_begun.clear()
    closing = asyncio.create_task(journaling.flush())
    began_beside = await asyncio.to_thread(journal.has_begun.wait, 0.2)
    journal.may_go_on.set()
    await closing
    await asyncio.wait([running])
    assert (began_beside, journal.most_writers) == (False, 1)
    assert [each.pod for each in read_journal(tmp_path / "decisions")] == [
        "default/one",
        "default/two",
    ]
