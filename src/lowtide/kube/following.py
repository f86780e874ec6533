"""Whether the watches of a mode keep up with the objects of their kinds, and if not, since when and
why. Each watch tells its Following how it fares; Outages looks over all of them, for the log (each
reason when it comes up, then once a minute while it lasts) and for who looks at the page."""

from collections.abc import Callable
from typing import Any

import msgspec

from lowtide.kube.errors import CredentialsError, KubeError, NoAnswer, NotConnected, NotTrusted
from lowtide.logs import Log
from lowtide.objects.kinds import Kind

# Until then a cut is ordinary: a server restarts, a proxy tidies up.
ORDINARY_SECONDS = 2.0
# A watch that ends sooner after it was opened, without news, brings nothing.
STEADY_SECONDS = 1.0
TOLD_EVERY_SECONDS = 60.0
_PATHS_NAMED = 3

log = Log("kube")


class StaleWatches(msgspec.Struct, frozen=True):
    """Watches that fail. Objects of these resources are known as of `since`, by the clock of the
    watches."""

    since: float
    resources: list[str]
    reason: str


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a kind is not followed now."""

    since: float
    why: str
    reason: str  # the same for all kinds that fail by it
    is_logged: bool = False
    is_away: bool = False  # no kind can be followed
    is_rejection: bool = False


class Following:
    """Of one kind. Made by Outages, told by the Watch."""

    def __init__(
        self,
        kind: Kind[Any],
        clock: Callable[[], float],
        on_change: Callable[[Failure | None, Failure | None], None],
    ) -> None:
        self.plural = kind.plural
        self.path = f"{kind.api}/{kind.plural}"
        self.failure: Failure | None = None
        self.was_listed = False
        self.is_answered = False
        self._clock = clock
        self._on_change = on_change  # is handed the failure before and now
        self._opened_at: float | None = None

    def failed(self, error: KubeError) -> None:
        """Perhaps once more."""
        is_first_cut = isinstance(error, NoAnswer) and self.was_listed and self.failure is None
        failure = Failure(
            since=self._since(),
            why=str(error),
            reason=error.why if isinstance(error, NoAnswer) else str(error),
            is_logged=not is_first_cut,
            is_away=isinstance(error, NotConnected | NotTrusted | CredentialsError),
        )
        self._become(failure, is_answered=False)

    def rejected(self, why: str) -> None:
        """The list is answered, by that there is none: it is forbidden, or the kind unknown."""
        failure = Failure(since=self._since(), why=why, reason=why, is_rejection=True)
        self._become(failure, is_answered=True)

    def answered(self) -> None:
        """There is a list, or a line of the watch."""
        self.was_listed = True
        if self.failure is not None or not self.is_answered:
            self._become(None, is_answered=True)

    def opened(self) -> None:
        """The watch is answered, perhaps long before its first line."""
        self._opened_at = self._clock()

    def ended(self) -> bool:
        """The watch is over, for whatever reason; whether it had stayed open."""
        is_steady, self._opened_at = self._is_steady(), None
        if is_steady:
            self.answered()
        return is_steady

    @property
    def lost(self) -> Failure | None:
        """None where all is well, or only a moment ago was, or there never was anything to lose."""
        failure = self.failure
        if failure is None or self._is_steady() or self._is_lacking(failure):
            return None
        return failure if self._clock() - failure.since >= ORDINARY_SECONDS else None

    def settle(self) -> None:
        """An open watch without news is as good as one with."""
        if self._is_steady():
            self.failure, self.is_answered = None, True

    def _since(self) -> float:
        before = self.failure
        return self._clock() if before is None or self._is_lacking(before) else before.since

    def _is_lacking(self, failure: Failure) -> bool:
        return failure.is_rejection and not self.was_listed

    def _is_steady(self) -> bool:
        opened_at = self._opened_at
        return opened_at is not None and self._clock() - opened_at >= STEADY_SECONDS

    def _become(self, failure: Failure | None, *, is_answered: bool) -> None:
        before, self.failure = self.failure, failure
        self.is_answered = is_answered
        self._on_change(before, failure)


class Outages:
    """What all watches of a mode cannot follow."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._followings: list[Following] = []
        self._reported_at: dict[str, float] = {}  # by reason

    def following(self, kind: Kind[Any]) -> Following:
        made = Following(kind, self._clock, self._note)
        self._followings.append(made)
        return made

    def stale_watches(self) -> StaleWatches | None:
        """What is lost, together; None where all is kept up with. On any thread."""
        found = [(each.plural, each.lost) for each in self._followings]
        lost = [(plural, failure) for plural, failure in found if failure is not None]
        if not lost:
            return None
        first = min((failure for _, failure in lost), key=lambda each: each.since)
        return StaleWatches(first.since, [plural for plural, _ in lost], first.why)

    def never_listed(self) -> dict[str, str]:
        """Why, by plural; empty where nothing has answered or failed yet."""
        return {
            each.plural: "" if each.failure is None else each.failure.reason
            for each in self._followings
            if not each.was_listed
        }

    # What is logged

    def _note(self, before: Failure | None, now: Failure | None) -> None:
        if before is not None and before.is_logged:
            self._log_end(before.reason)
        if now is not None and now.is_logged:
            self._tell(now)

    def _tell(self, failure: Failure) -> None:
        reason, now = failure.reason, self._clock()
        self._reported_at = {
            each: at for each, at in self._reported_at.items() if now - at < TOLD_EVERY_SECONDS
        }
        if reason in self._reported_at:
            return
        self._reported_at[reason] = now
        if failure.is_away:
            log.warning("Cannot reach the cluster, trying again", err=reason)
        else:
            log.warning(f"Cannot follow {self._named(reason)}, trying again", err=reason)

    def _log_end(self, reason: str) -> None:
        """Where the last kind that failed by it does no more, and not all others fail, too."""
        for each in self._followings:
            each.settle()
        left = [each.failure for each in self._followings if each.failure is not None]
        logged = {each.reason for each in left if each.is_logged}
        if reason in logged or not any(each.is_answered for each in self._followings):
            return
        self._reported_at = {each: at for each, at in self._reported_at.items() if each in logged}
        if not any(each.is_away for each in left if each.is_logged):
            log.info("The cluster answers again")

    def _named(self, reason: str) -> str:
        paths = [
            each.path
            for each in self._followings
            if each.failure is not None and each.failure.reason == reason
        ]
        more = len(paths) - _PATHS_NAMED
        return ", ".join(paths[:_PATHS_NAMED]) + (f" and {more} more" if more > 0 else "")
