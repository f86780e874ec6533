"""Open watches: every change of the store becomes a line in the buffer of each watch it concerns.

ApiServer opens a watch per request and writes its buffer to the connection."""

import asyncio
from collections.abc import Callable

from lowtide.localcluster.changes import Change
from lowtide.localcluster.failures import StatusError
from lowtide.localcluster.presentation import INITIAL_EVENTS_END, Presentation, encoded
from lowtide.localcluster.selectors import Selection
from lowtide.localcluster.store import Store


class Watch:
    """One client's view: only what its selection holds, entered and left as ADDED and DELETED."""

    def __init__(self, selection: Selection, presentation: Presentation) -> None:
        self._selection = selection
        self._presentation = presentation
        self._lines: list[bytes] = []
        self._has_lines = asyncio.Event()
        self.is_ended = False

    def start(self, store: Store, plural: str, version: int | None) -> None:
        """Fills the buffer: what exists when `version` is None, else what changed since."""
        if version is None:
            for record in store.records(plural, self._selection):
                self._lines.append(self._presentation.line("ADDED", record))
        else:
            try:
                changes = store.changes_since(plural, version)
            except StatusError as failure:
                self._lines.append(encoded({"type": "ERROR", "object": failure.status()}) + b"\n")
                self.is_ended = True
            else:
                for change in changes:
                    self.apply(change)
        if self._lines:
            self._has_lines.set()

    def apply(self, change: Change) -> None:
        is_in = change.current is not None and self._selection.matches(change.current.item)
        was_in = change.previous is not None and self._selection.matches(change.previous.item)
        if is_in:
            assert change.current is not None
            event_type = "MODIFIED" if was_in else "ADDED"
            self._lines.append(self._presentation.line(event_type, change.current))
        elif was_in:
            self._lines.append(self._presentation.line("DELETED", change.departed))
        else:
            return
        self._has_lines.set()

    def bookmark(self, version: int) -> None:
        self._lines.append(self._presentation.bookmark(version))
        self._has_lines.set()

    def end_initial_events(self, version: int) -> None:
        annotations = {INITIAL_EVENTS_END: "true"}
        self._lines.append(self._presentation.bookmark(version, annotations))
        self._has_lines.set()

    def end(self) -> None:
        self.is_ended = True
        self._has_lines.set()

    async def lines(self, wait_seconds: float | None) -> bytes:
        """All that is buffered; waits for the first line, at most `wait_seconds`, then b""."""
        if not self._lines and not self.is_ended:
            try:
                async with asyncio.timeout(wait_seconds):
                    await self._has_lines.wait()
            except TimeoutError:
                return b""
        lines = b"".join(self._lines)
        self._lines.clear()
        self._has_lines.clear()
        return lines


class Watches:
    """All open watches by the plural of what they look at."""

    def __init__(self) -> None:
        self._open: dict[str, set[Watch]] = {}

    def follow(self, store: Store) -> Callable[[], None]:
        return store.subscribe(self._apply)

    def open(self, plural: str, watch: Watch) -> None:
        self._open.setdefault(plural, set()).add(watch)

    def close(self, plural: str, watch: Watch) -> None:
        self._open.get(plural, set()).discard(watch)

    def end_all(self) -> None:
        for watches in self._open.values():
            for watch in watches:
                watch.end()

    def count(self, plural: str) -> int:
        return len(self._open.get(plural, ()))

    def _apply(self, change: Change) -> None:
        for watch in self._open.get(change.plural, ()):
            watch.apply(change)
