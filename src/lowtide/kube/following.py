"""Whether a watch keeps up with the objects of its kind, and if not, since when and why. The watch
tells it how it fares; the page shows it."""

from collections.abc import Callable

import msgspec

# Until then a cut is ordinary: a server restarts, a proxy tidies up.
ORDINARY_SECONDS = 2.0
# What ends sooner after it was opened brings nothing.
STEADY_SECONDS = 1.0


class Lost(msgspec.Struct, frozen=True):
    """Nothing is heard of these objects since then."""

    plural: str
    since: float
    why: str


class Following:
    def __init__(self, plural: str, clock: Callable[[], float]) -> None:
        self._plural = plural
        self._clock = clock
        self._lost: Lost | None = None
        self._opened_at: float | None = None

    def failed(self, why: str) -> None:
        """Perhaps once more."""
        before = None if self._is_steady() else self._lost
        since = self._clock() if before is None else before.since
        self._lost, self._opened_at = Lost(self._plural, since, why), None

    def opened(self) -> None:
        """The watch is answered again."""
        self._opened_at = self._clock()

    def renewed(self) -> None:
        """All of them are listed."""
        self._lost = None

    @property
    def lost(self) -> Lost | None:
        """None where all is well."""
        lost = self._lost
        if lost is None or self._is_steady():
            return None
        return lost if self._clock() - lost.since >= ORDINARY_SECONDS else None

    def _is_steady(self) -> bool:
        opened_at = self._opened_at
        return opened_at is not None and self._clock() - opened_at >= STEADY_SECONDS
