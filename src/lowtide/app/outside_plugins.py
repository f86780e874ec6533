"""Plugins that a configuration names and nobody has registered: of an installed distribution, by
its entry point, or `module:Class`. The registry asks when it meets a name that it does not know."""

import re
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from lowtide.config.errors import did_you_mean
from lowtide.framework.registry import OutsidePluginError, why_no_plugin

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP: Final = "lowtide.plugins"

_DOTTED: Final = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_PLACE: Final = re.compile(rf"(?P<module>{_DOTTED}):(?P<names>{_DOTTED})")


class InstalledPlugins:
    """Looks at entry points only when asked: that takes longer than all other names together."""

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({each.name for each in _offers()}))

    def find(self, name: str) -> type[Any] | None:
        if ":" in name:
            return _plugin_at(name)
        offers = tuple(_offers().select(name=name))
        if not offers:
            return None
        if len(offers) > 1:
            told = " and ".join(map(_in_words, offers))
            raise OutsidePluginError(
                f'"{name}" is offered by {told}; uninstall one, or write the module:Class that '
                "is meant"
            )
        return _offered(offers[0])


def _offers() -> "EntryPoints":
    # Most runs name no such plugin, and start sooner without it.
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def _offered(offer: "EntryPoint") -> type[Any]:
    try:
        plugin = _plugin_at(f"{offer.module}:{offer.attr}")
    except OutsidePluginError as error:
        raise OutsidePluginError(
            f'"{offer.name}" is offered by {_in_words(offer)}, and cannot be used: {error}'
        ) from error
    if plugin.name != offer.name:
        raise OutsidePluginError(
            f'"{offer.name}" is offered by {_in_words(offer)}, whose `name` is {plugin.name!r}; '
            "both must be the same"
        )
    return plugin


def _in_words(offer: "EntryPoint") -> str:
    distribution = "a distribution without a name" if offer.dist is None else offer.dist.name
    return f"{distribution} ({offer.value})"


def _plugin_at(place: str) -> type[Any]:
    found = _PLACE.fullmatch(place)
    if found is None:
        raise OutsidePluginError(
            f'"{place}" must be a module and a class in it, such as my_plugins:SameRack'
        )
    module = _imported(found["module"])
    plugin: Any = module
    try:
        for name in found["names"].split("."):
            plugin = getattr(plugin, name)
    except AttributeError:
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        near = did_you_mean(found["names"], classes).rstrip(";")
        raise OutsidePluginError(
            f"the module {found['module']} has no {found['names']}{near}"
        ) from None
    problem = why_no_plugin(plugin)
    if problem is not None:
        raise OutsidePluginError(f"{place} is not a plugin: {problem}")
    found_plugin: type[Any] = plugin
    return found_plugin


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _not_imported(name, error) from error
        raise OutsidePluginError(
            f"there is no module {error.name}; install it, or name its folder in PYTHONPATH"
        ) from error
    except Exception as error:
        raise _not_imported(name, error) from error


def _not_imported(name: str, error: Exception) -> OutsidePluginError:
    told = " ".join(f"{type(error).__name__}: {error}".split())
    return OutsidePluginError(f"the module {name} cannot be imported: {told}")
