"""Rules that a configuration names and nobody has registered: of an installed distribution, by its
entry point, or `module:Class`. The registry asks when it meets a name that it does not know."""

import re
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from lowtide.config.errors import did_you_mean
from lowtide.framework.registry import OutsideRuleError, why_no_rule

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP: Final = "lowtide.plugins"

_DOTTED: Final = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_PLACE: Final = re.compile(rf"(?P<module>{_DOTTED}):(?P<names>{_DOTTED})")


class InstalledRules:
    """Looks at entry points only when asked: that takes longer than all other names together."""

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({each.name for each in _offers()}))

    def find(self, name: str) -> type[Any] | None:
        if ":" in name:
            return _rule_at(name)
        offers = tuple(_offers().select(name=name))
        if not offers:
            return None
        if len(offers) > 1:
            told = " and ".join(map(_in_words, offers))
            raise OutsideRuleError(
                f'"{name}" is offered by {told}; uninstall one, or write the module:Class that '
                "is meant"
            )
        return _offered(offers[0])


def _offers() -> "EntryPoints":
    # Most runs name no such rule, and start sooner without it.
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def _offered(offer: "EntryPoint") -> type[Any]:
    try:
        rule = _rule_at(f"{offer.module}:{offer.attr}")
    except OutsideRuleError as error:
        raise OutsideRuleError(
            f'"{offer.name}" is offered by {_in_words(offer)}, and cannot be used: {error}'
        ) from error
    if rule.name != offer.name:
        raise OutsideRuleError(
            f'"{offer.name}" is offered by {_in_words(offer)}, whose `name` is {rule.name!r}; '
            "both must be the same"
        )
    return rule


def _in_words(offer: "EntryPoint") -> str:
    distribution = "a distribution without a name" if offer.dist is None else offer.dist.name
    return f"{distribution} ({offer.value})"


def _rule_at(place: str) -> type[Any]:
    found = _PLACE.fullmatch(place)
    if found is None:
        raise OutsideRuleError(
            f'"{place}" must be a module and a class in it, such as my_rules:SameRack'
        )
    module = _imported(found["module"])
    rule: Any = module
    try:
        for name in found["names"].split("."):
            rule = getattr(rule, name)
    except AttributeError:
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        near = did_you_mean(found["names"], classes).rstrip(";")
        raise OutsideRuleError(
            f"the module {found['module']} has no {found['names']}{near}"
        ) from None
    problem = why_no_rule(rule)
    if problem is not None:
        raise OutsideRuleError(f"{place} is no rule: {problem}")
    found_rule: type[Any] = rule
    return found_rule


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _not_imported(name, error) from error
        raise OutsideRuleError(
            f"there is no module {error.name}; install it, or name its folder in PYTHONPATH"
        ) from error
    except Exception as error:
        raise _not_imported(name, error) from error


def _not_imported(name: str, error: Exception) -> OutsideRuleError:
    told = " ".join(f"{type(error).__name__}: {error}".split())
    return OutsideRuleError(f"the module {name} cannot be imported: {told}")
