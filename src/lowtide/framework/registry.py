"""From names in a configuration to plugins: which plugins there are, their args, and the profiles.

`plugins.BUILT_IN` fills a Registry; outsiders add their own classes to it, or are looked for when
a configuration names them. `app` calls `build`.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from lowtide.config.errors import ConfigError, Path
from lowtide.config.extender_settings import ENTRY, ExtenderSettings
from lowtide.config.load import LoadedConfig
from lowtide.config.plugin_sets import Expansion, expand_profiles, named_plugins, unknown_plugin
from lowtide.config.types import EnabledPlugin
from lowtide.framework.args import ArgsOf, Spelling, names_enabled, with_true_names
from lowtide.framework.contract import broken_contract
from lowtide.framework.profile import METHOD_AT_POINT, Profile
from lowtide.objects.kinds import KIND_OF

Supplies = Mapping[type, Any]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """One plugin, whole: its class, its default weight, whether the default profile has it.

    `points` are kube-scheduler's extension points, where it has more of them than there are
    methods here: a plugin that judges all nodes at once needs no PreFilter or PreScore to hand data
    to a per-node call.
    """

    name: str
    plugin: type[Any]
    weight: int = 0
    points: tuple[str, ...] = ()
    is_default: bool = True
    aliases: tuple[str, ...] = ()  # other names that configurations give it

    def implements(self, point: str) -> bool:
        if self.points:
            return point in self.points
        method = METHOD_AT_POINT.get(point)
        return method is not None and hasattr(self.plugin, method)


@dataclass(frozen=True, slots=True)
class Built:
    """The profiles of a configuration, by scheduler name, and what a user should know of them."""

    profiles: dict[str, Profile]
    expansions: dict[str, Expansion]
    extender_settings: dict[str, ExtenderSettings]
    warnings: tuple[str, ...]


class _ExtenderEntry:
    """No plugin: what a pluginConfig says to the extender mode."""

    name = ENTRY
    args = ExtenderSettings


class OutsidePluginError(Exception):
    """Why a plugin that a configuration names cannot be had, in one sentence."""


class OutsidePlugins(Protocol):
    """Where plugins are looked for that nobody has registered."""

    def names(self) -> tuple[str, ...]:
        """Those that can be had by name."""

    def find(self, name: str) -> type[Any] | None:
        """The class that a configuration calls so; None where there is none."""


class NothingOutside:
    def names(self) -> tuple[str, ...]:
        return ()

    def find(self, name: str) -> type[Any] | None:
        return None


class Registry:
    def __init__(
        self,
        rows: Sequence[BuiltIn],
        outside: OutsidePlugins = NothingOutside(),  # noqa: B008
    ) -> None:
        self._rows = {row.name: row for row in rows}
        self._name_of = {alias: row.name for row in rows for alias in row.aliases}
        self._outside = outside

    def with_plugins(self, plugins: Mapping[str, type[Any]]) -> "Registry":
        """The same and these; a name can be given once."""
        problems = [
            problem
            for name, plugin in plugins.items()
            if (problem := self._problem_with(name, plugin)) is not None
        ]
        if problems:
            raise ConfigError(problems)
        added = [BuiltIn(name, plugin, is_default=False) for name, plugin in plugins.items()]
        return Registry([*self._rows.values(), *added], self._outside)

    def _problem_with(self, name: str, plugin: Any) -> str | None:
        if name in self._rows:
            return f"a plugin named {name} already exists"
        problem = why_no_plugin(plugin)
        if problem is not None:
            return f"the plugin {name} is no plugin: {problem}"
        if plugin.name != name:
            return (
                f"the class {plugin.__name__} is registered as {name}; its `name` must be that "
                f"too, "
                f"not {plugin.name!r}"
            )
        return None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._rows)

    @property
    def defaults(self) -> tuple[EnabledPlugin, ...]:
        """What every profile has unless it says otherwise, in order, with weights."""
        return tuple(
            EnabledPlugin(row.name, row.weight) for row in self._rows.values() if row.is_default
        )

    def build(self, loaded: LoadedConfig, supplies: Supplies) -> Built:
        """Makes every profile; ConfigError tells all that is wrong with plugins and args."""
        registry, problems = self._with_named(loaded)
        if problems:
            raise ConfigError([*problems, *registry._problems_of_args(loaded)])
        return registry._build(loaded, supplies)

    def _with_named(self, loaded: LoadedConfig) -> "tuple[Registry, list[str]]":
        """The same and what the configuration names besides; and what of that cannot be had."""
        registry: Registry = self
        problems: list[str] = []
        # A plugin that is named with its module may be named without it too: modules come first.
        for path, name in sorted(self._unknown(loaded), key=lambda each: ":" not in each[1]):
            if registry._knows(name):
                continue
            try:
                plugin = self._outside.find(name)
                if plugin is not None:
                    registry = registry._with_outside(name, plugin)
                    continue
                known = (*registry.names, *self._outside.names())
                problems.append(unknown_plugin(name, loaded.where(path), known))
            except OutsidePluginError as error:
                problems.append(f"{loaded.where(path)}: {error}")
        return registry, problems

    def _problems_of_args(self, loaded: LoadedConfig) -> Iterator[str]:
        """Where no profile can be made, of the plugins that are known."""
        written, loaded = loaded.config.profiles, with_true_names(loaded, self._name_of)
        for index, config in enumerate(loaded.config.profiles):
            spelling = Spelling(loaded.written_for, names_enabled(written[index]))
            args = ArgsOf(loaded, config, ("profiles", index, "pluginConfig"), spelling)
            args.decode(_ExtenderEntry)
            args.check_the_rest({name: row.plugin for name, row in self._rows.items()})
            yield from args.problems

    def _unknown(self, loaded: LoadedConfig) -> Iterator[tuple[Path, str]]:
        for path, name in named_plugins(loaded.config):
            is_for_extender = path[2:3] == ("pluginConfig",) and name == ENTRY
            if not self._knows(name) and not is_for_extender:
                yield path, name

    def _knows(self, name: str) -> bool:
        return name in self._rows or name in self._name_of

    def _with_outside(self, written: str, plugin: type[Any]) -> "Registry":
        """In decisions a plugin has its own name, however a configuration calls it."""
        row = self._rows.get(plugin.name, BuiltIn(plugin.name, plugin, is_default=False))
        if row.plugin is not plugin:
            raise OutsidePluginError(
                f'"{written}" is a plugin whose `name` is {plugin.name!r}, and there is another '
                f"one of "
                "that name; its `name` must be its own"
            )
        if written != plugin.name:
            row = replace(row, aliases=(*row.aliases, written))
        return Registry([*{**self._rows, plugin.name: row}.values()], self._outside)

    def _build(self, loaded: LoadedConfig, supplies: Supplies) -> Built:
        problems: list[str] = []
        written, loaded = loaded.config.profiles, with_true_names(loaded, self._name_of)
        expansions = expand_profiles(
            loaded, self.defaults, lambda name, point: self._rows[name].implements(point)
        )
        profiles: dict[str, Profile] = {}
        settings: dict[str, ExtenderSettings] = {}
        warnings: list[str] = []
        for index, config in enumerate(loaded.config.profiles):
            problems += _configured_twice(loaded, index)
            spelling = Spelling(loaded.written_for, names_enabled(written[index]))
            args = ArgsOf(loaded, config, ("profiles", index, "pluginConfig"), spelling)
            expansion = expansions[config.scheduler_name]
            plugins = {
                name: self._make(self._rows[name], args, supplies) for name in _names_in(expansion)
            }
            given = args.decode(_ExtenderEntry)
            settings[config.scheduler_name] = given or ExtenderSettings()
            args.check_the_rest({name: row.plugin for name, row in self._rows.items()})
            problems += args.problems
            warnings += args.warnings
            if not args.problems:
                profiles[config.scheduler_name] = _profile(
                    config.scheduler_name, expansion, plugins
                )
        if problems:
            raise ConfigError(problems)
        return Built(profiles, expansions, settings, tuple(warnings))

    def _make(self, row: BuiltIn, args: ArgsOf, supplies: Supplies) -> Any:
        needs = getattr(row.plugin, "needs", {})
        missing = [protocol.__name__ for protocol in needs.values() if protocol not in supplies]
        if missing:
            supplied = ", ".join(sorted(protocol.__name__ for protocol in supplies)) or "nothing"
            args.problems.append(
                f"plugin {row.name} needs {', '.join(missing)}, and {supplied} can be supplied here"
            )
            return None
        for kind in getattr(row.plugin, "kinds", ()):
            if kind not in KIND_OF:
                known = ", ".join(each.name for each in KIND_OF.values())
                args.problems.append(
                    f"plugin {row.name} depends on {kind.__name__}, which is not watched; "
                    f"{known} can be"
                )
                return None
        given = {parameter: supplies[protocol] for parameter, protocol in needs.items()}
        kind = getattr(row.plugin, "args", None)
        if kind is not None:
            decoded = args.decode(row.plugin)
            if decoded is None:
                return None
            given["args"] = decoded
        try:
            inspect.signature(row.plugin).bind(**given)
        except TypeError as error:
            made = f"{row.plugin.__name__}({', '.join(f'{parameter}=...' for parameter in given)})"
            args.problems.append(
                f"plugin {row.name} is made by {made}, and its constructor does not take that: "
                f"{error}"
            )
            return None
        try:
            return row.plugin(**given)
        except ValueError as error:
            args.problems.append(f"plugin {row.name} cannot be made of its args: {error}")
            return None


def why_no_plugin(plugin: Any) -> str | None:
    """What an outsider's class lacks; None where it is a plugin."""
    if not isinstance(plugin, type):
        return f"it is {type(plugin).__name__} and must be a class"
    if not isinstance(getattr(plugin, "name", None), str):
        return "the class must have a `name`, such as its own"
    broken = broken_contract(plugin)
    if broken is not None:
        return broken
    methods = dict.fromkeys(METHOD_AT_POINT.values())
    if not any(hasattr(plugin, method) for method in methods):
        return f"the class must have one of the methods {', '.join(methods)}"
    return None


def _configured_twice(loaded: LoadedConfig, index: int) -> Iterator[str]:
    """A plugin may be called in several ways, but is to be given its args once."""
    first_with: dict[str, int] = {}
    for number, entry in enumerate(loaded.config.profiles[index].plugin_config):
        before = first_with.setdefault(entry.name, number)
        if before != number:
            yield loaded.problem(
                ("profiles", index, "pluginConfig", number, "name"),
                f'is "{entry.name}", which is already configured by pluginConfig[{before}]; '
                "give its args once",
            )


def _profile(scheduler_name: str, expansion: Expansion, built: Mapping[str, Any]) -> Profile:
    return Profile(
        scheduler_name,
        {point: [built[plugin.name] for plugin in plugins] for point, plugins in expansion.items()},
        {plugin.name: plugin.weight for plugin in expansion.get("score", ())},
    )


def _names_in(expansion: Expansion) -> dict[str, None]:
    return {plugin.name: None for plugins in expansion.values() for plugin in plugins}
