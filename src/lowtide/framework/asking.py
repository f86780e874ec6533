"""How the rules of a profile are asked; where a clock is handed in, the time of each adds up.

A profile has one; what a Verdict consists of asks by it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from lowtide.framework.plugin import ask


class Spent(NamedTuple):
    """Seconds by rule, and by the method that rules were asked by. Nothing of rules that were not
    asked, as what they had said was still true."""

    by_rule: Mapping[str, float]
    by_method: Mapping[str, float]


NOTHING_SPENT: Final = Spent({}, {})


class Asking:
    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock
        self._by_rule: dict[str, float] = {}
        self._by_method: dict[str, float] = {}

    def __call__(self, rule: Any, method: str, *arguments: Any) -> Any:
        if self._clock is None:
            return ask(rule, method, *arguments)
        began_at = self._clock()
        try:
            return ask(rule, method, *arguments)
        finally:
            spent = self._clock() - began_at
            self._by_rule[rule.name] = self._by_rule.get(rule.name, 0.0) + spent
            self._by_method[method] = self._by_method.get(method, 0.0) + spent

    def take_spent(self) -> Spent:
        """Since it was taken last."""
        if not self._by_rule:
            return NOTHING_SPENT
        taken = Spent(self._by_rule, self._by_method)
        self._by_rule, self._by_method = {}, {}
        return taken
