"""Checks that a plugin class keeps the contract of `framework/plugin.py`, where a misspelled method
would never be called. The registry checks plugins from outside; lowtide.testing checks all."""

import inspect
from collections.abc import Iterable, Iterator
from typing import Any, Final, get_args

from lowtide.config.errors import did_you_mean
from lowtide.framework import log_words
from lowtide.framework import plugin as api

_PROTOCOLS: Final = (
    api.Plugin,
    api.PreEnqueuePlugin,
    api.QueueSortPlugin,
    api.PreFilterPlugin,
    api.FilterPlugin,
    api.PostFilterPlugin,
    api.ScorePlugin,
    api.ReservePlugin,
    api.PermitPlugin,
    api.PreBindPlugin,
    api.BindPlugin,
    api.PostBindPlugin,
    api.PluginOptions,
)
_INHERITED: Final = (log_words.LogsScores, log_words.LogsVerdicts)  # only where a class inherits it
_NO_LONGER_NEEDED: Final = ("reads", "reads_about")
_NEAR_MISS: Final = 0.8  # an attribute of its own is not unlikely to be spelled a bit like ours


def broken_contract(plugin: type[Any]) -> str | None:
    """The first thing about the class that breaks the contract, in one sentence."""
    return next(_problems(plugin), None)


def broken_options(plugin: Any) -> str | None:
    """The first option of a plugin, which is an instance, that has a wrong value."""
    scale, scales = getattr(plugin, "scale", None), get_args(get_args(api.Scale)[0])
    if scale is not None and scale not in scales:
        return f"its `scale` is {scale!r}; it must be {', '.join(map(repr, scales))} or None"
    retry_on = getattr(plugin, "retry_on", 0)
    if not isinstance(retry_on, int):
        return (
            f"its `retry_on` is {retry_on!r}; it must be changes joined by |, such as NODE | PODS"
        )
    for name in ("readings", "kinds"):
        value = getattr(plugin, name, ())
        if not isinstance(value, Iterable) or isinstance(value, str):
            shown = getattr(value, "__name__", type(value).__name__)
            return f"its `{name}` must be several, such as a tuple, not {shown}"
    return None


def _problems(plugin: type[Any]) -> Iterator[str]:
    contract = _contract(plugin)
    for name, value in _public_members(plugin).items():
        if name in _NO_LONGER_NEEDED:
            yield f"delete `{name}`, which is no longer needed: what a plugin reads is recorded"
        elif name in contract:
            yield from _wrong_method(name, value, contract[name])
        elif _is_method(value):
            near = did_you_mean(name, tuple(contract)).rstrip(";")
            yield (
                f'its public method "{name}" is not in the contract, and names of its own methods '
                f"must start with an underscore{near}"
            )
        else:
            near = did_you_mean(name, tuple(contract), likeness=_NEAR_MISS)
            if near != ";":
                yield (
                    f'its public attribute "{name}" is not in the contract, and is spelled too '
                    f"much like one that is{near}"
                )


def _wrong_method(name: str, value: Any, wanted: Any) -> Iterator[str]:
    """Whether the method takes the arguments that it is called with."""
    if not inspect.isfunction(wanted) or not _is_method(value):
        return
    function, given = _function(value), inspect.signature(wanted).parameters.values()
    try:
        signature = inspect.signature(function)
    except ValueError:
        return
    positional = [each.name for each in given if each.kind is each.POSITIONAL_ONLY]
    named = [each.name for each in given if each.kind is each.KEYWORD_ONLY]
    asked = positional[isinstance(value, staticmethod) :]
    try:
        signature.bind(*asked, **dict.fromkeys(named))
    except TypeError:
        memory = signature.parameters.get("memory")
        if memory is not None and memory.default is memory.empty:
            yield (
                f"the parameter `memory` of its method `{name}` must be a keyword with a default, "
                "such as `*, memory=None`: it is passed only where `reserve` returned some"
            )
        takes = [each for each in signature.parameters if each not in ("self", "cls")]
        yield (
            f"its method `{name}` takes ({', '.join(takes)}) and must take "
            f"({', '.join([*positional[1:], *named])})"
        )
    if inspect.iscoroutinefunction(function) != inspect.iscoroutinefunction(wanted):
        is_async = inspect.iscoroutinefunction(wanted)
        yield f"its method `{name}` must {'' if is_async else 'not '}be async"


def _contract(plugin: type[Any]) -> dict[str, Any]:
    """Every member by its name: methods as functions, other attributes as their type."""
    found: dict[str, Any] = {}
    for each in (*_PROTOCOLS, *(each for each in _INHERITED if issubclass(plugin, each))):
        found |= each.__annotations__ | _public_members(each)
    return found


def _public_members(plugin: type[Any]) -> dict[str, Any]:
    """Its own and those that it inherits."""
    found: dict[str, Any] = {}
    for each in reversed(plugin.__mro__[:-1]):
        found |= {name: value for name, value in vars(each).items() if not name.startswith("_")}
    return found


def _is_method(value: Any) -> bool:
    return inspect.isroutine(value) or isinstance(value, staticmethod | classmethod)


def _function(method: Any) -> Any:
    return method.__func__ if isinstance(method, staticmethod | classmethod) else method
