"""How the rules of a profile are asked; where a clock is handed in, the time of each adds up.

A profile has one; what a Verdict consists of asks by it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lowtide.framework.plugin import ask

_NO_TIME: Mapping[str, float] = {}


class Asking:
    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}

    def __call__(self, rule: Any, method: str, *arguments: Any) -> Any:
        if self._clock is None:
            return ask(rule, method, *arguments)
        began_at = self._clock()
        try:
            return ask(rule, method, *arguments)
        finally:
            spent = self._clock() - began_at
            self._seconds[rule.name] = self._seconds.get(rule.name, 0.0) + spent

    def take_seconds_by_rule(self) -> Mapping[str, float]:
        """Since it was taken last; nothing of rules that were not asked, as what they had said
        was still true."""
        if not self._seconds:
            return _NO_TIME
        taken, self._seconds = self._seconds, {}
        return taken
