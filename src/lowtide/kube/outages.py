"""What keeps watches from following, told once for all of them: each reason when it comes up, then
once a minute while it lasts.

One for all watches of a mode, which report to it."""

from collections.abc import Callable

from lowtide.kube.errors import CredentialsError, KubeError, NoAnswer, NotConnected, NotTrusted
from lowtide.logs import Log

TOLD_EVERY_SECONDS = 60.0
_PATHS_NAMED = 3

log = Log("kube")


class Outages:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._why_by_path: dict[str, str] = {}
        self._told_at: dict[str, float] = {}  # by reason

    def failed(self, path: str, error: KubeError) -> None:
        why, now = why_of(error), self._clock()
        self._why_by_path[path] = why
        told_at = self._told_at.get(why)
        if told_at is not None and now - told_at < TOLD_EVERY_SECONDS:
            return
        self._told_at[why] = now
        if isinstance(error, NotConnected | NotTrusted | CredentialsError):
            log.warning("Cannot reach the cluster, trying again", err=why)
        else:
            log.warning(f"Cannot follow {self._named(why)}, trying again", err=why)

    def ended(self, path: str) -> None:
        if self._why_by_path.pop(path, None) is not None and not self._why_by_path:
            self._told_at.clear()
            log.info("The cluster answers again")

    def _named(self, why: str) -> str:
        paths = [path for path, each in self._why_by_path.items() if each == why]
        more = len(paths) - _PATHS_NAMED
        return ", ".join(paths[:_PATHS_NAMED]) + (f" and {more} more" if more > 0 else "")


def why_of(error: KubeError) -> str:
    """The same for all requests that fail by it."""
    return error.why if isinstance(error, NoAnswer) else str(error)
