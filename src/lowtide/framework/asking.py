"""Calls the plugins' methods and, if given a clock, measures how long each call takes.

An Asking is made for one turn or question."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from types import GeneratorType
from typing import Any, Final, NamedTuple

import numpy as np

from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import PluginError
from lowtide.objects.quantity import QuantityError

_COMPLETE_TYPES: Final = (type(None), np.ndarray, list, tuple, set, frozenset, dict, str, bytes)
_COMPLETE: Final = frozenset(_COMPLETE_TYPES)


def ask(plugin: Any, method: str, *arguments: Any, **named: Any) -> Any:
    """Calls a plugin's method. Raises PluginError for any error in the plugin, except that a
    QuantityError passes: it is a mistake in the pod or object that the plugin read."""
    try:
        answer = getattr(plugin, method)(*arguments, **named)
        # The usual types first, which is cheapest: this runs for every answer.
        kind = type(answer)
        if kind is GeneratorType:
            return list(answer)
        return answer if kind in _COMPLETE else _completed(answer)
    except PluginError as error:
        error.plugin_name = plugin.name
        raise
    except QuantityError:
        raise
    except Exception as error:
        text = f"{plugin.name}.{method} failed: {error!r}"
        raise PluginError(text, plugin_name=plugin.name) from error


def _completed(answer: Any) -> Any:
    """The answer. If it may make its items only when they are asked for, they are made now: what
    the plugin reads for them must be recorded too."""
    is_lazy = hasattr(answer, "__iter__") and not isinstance(answer, _COMPLETE_TYPES)
    return list(answer) if is_lazy else answer


def readings_of(plugin: Any) -> tuple[Hashable, ...]:
    return tuple(getattr(plugin, "readings", ()))


class Spent(NamedTuple):
    """How many seconds each call of a plugin's method took. Plugins that were not asked, since
    their answers were kept, are missing."""

    questions: tuple[tuple[str, str, float], ...]

    @property
    def by_plugin(self) -> Mapping[str, float]:
        return _sums((plugin_name, seconds) for plugin_name, _, seconds in self.questions)

    @property
    def by_method(self) -> Mapping[str, float]:
        return _sums((method, seconds) for _, method, seconds in self.questions)


NOTHING_SPENT: Final = Spent(())


class Asking:
    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock
        self._spent: list[tuple[str, str, float]] = []

    def observed(
        self, state: ClusterState, plugin: Any, method: str, *arguments: Any, **named: Any
    ) -> tuple[Any, int]:
        """The answer, and the bits that the plugin touched. A call within another one adds its bits
        to both."""
        outer, state.touched = state.touched, 0
        began_at = 0.0 if self._clock is None else self._clock()
        try:
            return ask(plugin, method, *arguments, **named), state.touched
        finally:
            state.touched |= outer
            if self._clock is not None:
                self._spent.append((plugin.name, method, self._clock() - began_at))

    @property
    def spent(self) -> Spent:
        return Spent(tuple(self._spent)) if self._spent else NOTHING_SPENT


UNTIMED: Final = Asking()  # for calls that nobody measures


def _sums(amounts: Iterable[tuple[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, amount in amounts:
        sums[name] = sums.get(name, 0.0) + amount
    return sums
