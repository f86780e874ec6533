"""The registry makes profiles from a configuration: it finds the plugins by name, decodes their
args, and constructs them.

It starts with `plugins.BUILT_IN`; `app` adds plugins from outside and calls `build`."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from lowtide.config.errors import ConfigError, Path
from lowtide.config.extender_settings import ENTRY, ExtenderSettings
from lowtide.config.load import LoadedConfig
from lowtide.config.plugin_sets import Expansion, expand_profiles, named_plugins, unknown_plugin
from lowtide.config.types import EnabledPlugin
from lowtide.framework.args import ArgsOf, ReadOlderArgs, with_own_names
from lowtide.framework.contract import broken_contract, broken_options
from lowtide.framework.profile import METHOD_AT_POINT, Profile
from lowtide.objects.kinds import KIND_OF

Supplies = Mapping[type, Any]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """What the registry knows about one plugin.

    `points` are the extension points of kube-scheduler's plugin of this name, if they differ from
    this class's methods: a plugin that judges all nodes at once needs no PreFilter or PreScore to
    prepare data for a per-node call."""

    name: str
    plugin: type[Any]
    weight: int = 0
    points: tuple[str, ...] = ()
    is_default: bool = True
    aliases: tuple[str, ...] = ()  # other names that configurations may use
    # kube-scheduler's plugin skips scoring in its PreScore. Where a profile enables it at score
    # alone, it scores 0 on every node where it would have no opinion.
    skips_at_pre_score: bool = False
    older_args: ReadOlderArgs | None = None

    def implements(self, point: str) -> bool:
        if self.points:
            return point in self.points
        method = METHOD_AT_POINT.get(point)
        return method is not None and hasattr(self.plugin, method)


@dataclass(frozen=True, slots=True)
class Built:
    """What a configuration gives, by scheduler name, and the warnings for its author."""

    profiles: dict[str, Profile]
    expansions: dict[str, Expansion]
    extender_settings: dict[str, ExtenderSettings]
    warnings: tuple[str, ...]


class OutsidePluginError(Exception):
    """Why a plugin that the configuration names cannot be used, in one sentence."""


class OutsidePlugins(Protocol):
    """Finds plugins that are not registered."""

    def names(self) -> tuple[str, ...]:
        """Every plugin that can be found by its name alone."""

    def find(self, name: str) -> type[Any] | None:
        """The class that the configuration means; None where there is none."""


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
        """This registry with more plugins. ConfigError where a name is taken, or where a class is
        no plugin."""
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
            return f"plugin {name} breaks the contract: {problem}"
        if plugin.name != name:
            return (
                f"the class {plugin.__name__} is registered as {name}; its `name` must be that "
                f"too, not {plugin.name!r}"
            )
        return None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._rows)

    @property
    def defaults(self) -> tuple[EnabledPlugin, ...]:
        """The default plugins of every profile, in order, with their weights."""
        return tuple(
            EnabledPlugin(row.name, row.weight) for row in self._rows.values() if row.is_default
        )

    def build(self, loaded: LoadedConfig, supplies: Supplies) -> Built:
        """Makes every profile. ConfigError lists everything wrong with the plugins and args."""
        registry, problems = self._with_named(loaded)
        if problems:
            raise ConfigError([*problems, *registry._problems_of_args(loaded)])
        return registry._build(loaded, supplies)

    def _with_named(self, loaded: LoadedConfig) -> "tuple[Registry, list[str]]":
        """This registry with the outside plugins that the configuration names, and a problem for
        each one that cannot be used."""
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

    def _unknown(self, loaded: LoadedConfig) -> Iterator[tuple[Path, str]]:
        for path, name in named_plugins(loaded.config):
            is_for_extender = path[2:3] == ("pluginConfig",) and name == ENTRY
            if not self._knows(name) and not is_for_extender:
                yield path, name

    def _knows(self, name: str) -> bool:
        return name in self._rows or name in self._name_of

    def _with_outside(self, written: str, plugin: type[Any]) -> "Registry":
        """Decisions use the plugin's own name, whatever the configuration calls it."""
        row = self._rows.get(plugin.name, BuiltIn(plugin.name, plugin, is_default=False))
        if row.plugin is not plugin:
            raise OutsidePluginError(
                f'"{written}" is a plugin whose `name` is {plugin.name!r}, and there is another '
                "one of that name; its `name` must be its own"
            )
        if written != plugin.name:
            row = replace(row, aliases=(*row.aliases, written))
        return Registry([*{**self._rows, plugin.name: row}.values()], self._outside)

    def _problems_of_args(self, loaded: LoadedConfig) -> Iterator[str]:
        """Of the known plugins, where an unknown one keeps the profiles from being made."""
        renamed = with_own_names(loaded, self._name_of)
        for index, written in enumerate(loaded.config.profiles):
            args = ArgsOf(renamed, index, written)
            args.decode(ENTRY, ExtenderSettings)
            self._decode_unused(args)
            yield from args.problems

    def _build(self, loaded: LoadedConfig, supplies: Supplies) -> Built:
        problems: list[str] = []
        written, loaded = loaded.config.profiles, with_own_names(loaded, self._name_of)
        expansions = expand_profiles(
            loaded, self.defaults, lambda name, point: self._rows[name].implements(point)
        )
        built = Built({}, expansions, {}, ())
        warnings: list[str] = []
        for index, config in enumerate(loaded.config.profiles):
            problems += _configured_twice(loaded, index)
            name, args = config.scheduler_name, ArgsOf(loaded, index, written[index])
            profile = self._profile(name, expansions[name], args, supplies)
            settings = args.decode(ENTRY, ExtenderSettings)
            self._decode_unused(args)
            problems += args.problems
            warnings += args.warnings
            if profile is not None and settings is not None:
                built.profiles[name], built.extender_settings[name] = profile, settings
        if problems:
            raise ConfigError(problems)
        return replace(built, warnings=tuple(warnings))

    def _profile(
        self, scheduler_name: str, expansion: Expansion, args: ArgsOf, supplies: Supplies
    ) -> Profile | None:
        """None where something is wrong; `args` has the problems."""
        names = {plugin.name: None for plugins in expansion.values() for plugin in plugins}
        made = {name: self._make(self._rows[name], args, supplies) for name in names}
        if args.problems:
            return None
        scorers = expansion.get("score", ())
        at_pre_score = {plugin.name for plugin in expansion.get("preScore", ())}
        return Profile(
            scheduler_name,
            {point: [made[each.name] for each in plugins] for point, plugins in expansion.items()},
            {plugin.name: plugin.weight for plugin in scorers},
            zero_if_skipped={
                plugin.name
                for plugin in scorers
                if self._rows[plugin.name].skips_at_pre_score and plugin.name not in at_pre_score
            },
        )

    def _make(self, row: BuiltIn, args: ArgsOf, supplies: Supplies) -> Any:
        """The plugin; None where something is wrong with it."""
        problem = _unmet(row, supplies)
        if problem is not None:
            args.problems.append(problem)
            return None
        needs = getattr(row.plugin, "needs", {})
        given = {parameter: supplies[protocol] for parameter, protocol in needs.items()}
        kind = getattr(row.plugin, "args", None)
        if kind is not None:
            given["args"] = args.decode(row.name, kind, row.older_args)
            if given["args"] is None:
                return None
        try:
            inspect.signature(row.plugin).bind(**given)
        except TypeError as error:
            call = f"{row.plugin.__name__}({', '.join(f'{parameter}=...' for parameter in given)})"
            args.problems.append(
                f"plugin {row.name} is made by {call}, and its constructor does not take that: "
                f"{error}"
            )
            return None
        try:
            plugin = row.plugin(**given)
        except ValueError as error:
            args.problems.append(f"plugin {row.name} cannot be made of its args: {error}")
            return None
        problem = broken_options(plugin)
        if problem is not None:
            args.problems.append(f"plugin {row.name} breaks the contract: {problem}")
        return plugin

    def _decode_unused(self, args: ArgsOf) -> None:
        """Args of plugins that the profile does not enable must be right too."""
        for name in args.unused:
            row = self._rows.get(name)
            if row is not None and hasattr(row.plugin, "args"):
                args.decode(name, row.plugin.args, row.older_args)


def _unmet(row: BuiltIn, supplies: Supplies) -> str | None:
    """What the plugin asks for and cannot have here."""
    needs = getattr(row.plugin, "needs", {})
    missing = [protocol.__name__ for protocol in needs.values() if protocol not in supplies]
    if missing:
        supplied = ", ".join(sorted(protocol.__name__ for protocol in supplies)) or "nothing"
        return f"plugin {row.name} needs {', '.join(missing)}, and {supplied} can be supplied here"
    for kind in getattr(row.plugin, "kinds", ()):
        if kind not in KIND_OF:
            known = ", ".join(each.name for each in KIND_OF.values())
            return (
                f"plugin {row.name} depends on {kind.__name__}, which is not watched; "
                f"{known} can be"
            )
    return None


def why_no_plugin(plugin: Any) -> str | None:
    """What makes this class from outside no plugin; None where it is one."""
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
    """A plugin may have several names, but its args must be given once."""
    first_with: dict[str, int] = {}
    for number, entry in enumerate(loaded.config.profiles[index].plugin_config):
        before = first_with.setdefault(entry.name, number)
        if before != number:
            yield loaded.problem(
                ("profiles", index, "pluginConfig", number, "name"),
                f'is "{entry.name}", which is already configured by pluginConfig[{before}]; '
                "give its args once",
            )
