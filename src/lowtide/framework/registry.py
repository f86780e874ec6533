"""From names in a configuration to rules: which rules there are, their args, and the profiles.

`plugins.BUILT_IN` fills a Registry; outsiders add their own classes to it. `app` calls `build`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lowtide.config.errors import ConfigError
from lowtide.config.extender_settings import ENTRY, ExtenderSettings
from lowtide.config.load import LoadedConfig
from lowtide.config.plugin_sets import Expansion, expand_profiles, named_plugins, unknown_plugin
from lowtide.config.types import EnabledPlugin
from lowtide.framework.args import ArgsOf, Spelling, names_enabled, with_true_names
from lowtide.framework.profile import METHOD_AT_POINT, Profile
from lowtide.objects.kinds import KIND_OF

Supplies = Mapping[type, Any]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """One rule, whole: its class, its default weight, whether the default profile has it.

    `points` are kube-scheduler's extension points, where it has more of them than there are
    methods here: a rule that judges all nodes at once needs no PreFilter or PreScore to hand data
    to a per-node call.
    """

    name: str
    rule: type[Any]
    weight: int = 0
    points: tuple[str, ...] = ()
    is_default: bool = True
    aliases: tuple[str, ...] = ()  # other names that configurations give it

    def implements(self, point: str) -> bool:
        if self.points:
            return point in self.points
        method = METHOD_AT_POINT.get(point)
        return method is not None and hasattr(self.rule, method)


@dataclass(frozen=True, slots=True)
class Built:
    """The profiles of a configuration, by scheduler name, and what a user should know of them."""

    profiles: dict[str, Profile]
    expansions: dict[str, Expansion]
    extender_settings: dict[str, ExtenderSettings]
    warnings: tuple[str, ...]


class _ExtenderEntry:
    """No rule: what a pluginConfig says to the extender mode."""

    name = ENTRY
    args = ExtenderSettings


class Registry:
    def __init__(self, rows: Sequence[BuiltIn]) -> None:
        self._rows = {row.name: row for row in rows}
        self._name_of = {alias: row.name for row in rows for alias in row.aliases}

    def with_plugins(self, plugins: Mapping[str, type[Any]]) -> "Registry":
        """The same and these; a name can be given once."""
        problems = [
            f"a plugin named {name} already exists" for name in plugins if name in self._rows
        ]
        problems += [
            f"the class {rule.__name__} is registered as {name}; its `name` must be that too, "
            f"not {getattr(rule, 'name', None)!r}"
            for name, rule in plugins.items()
            if getattr(rule, "name", None) != name
        ]
        if problems:
            raise ConfigError(problems)
        added = [BuiltIn(name, rule, is_default=False) for name, rule in plugins.items()]
        return Registry([*self._rows.values(), *added])

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
        problems = [
            unknown_plugin(name, loaded.where(path), self.names)
            for path, name in named_plugins(loaded.config)
            if name not in self._rows and name not in self._name_of
            if path[2:3] != ("pluginConfig",) or name != ENTRY
        ]
        if problems:
            raise ConfigError(problems)
        written, loaded = loaded.config.profiles, with_true_names(loaded, self._name_of)
        expansions = expand_profiles(
            loaded, self.defaults, lambda name, point: self._rows[name].implements(point)
        )
        profiles: dict[str, Profile] = {}
        settings: dict[str, ExtenderSettings] = {}
        warnings: list[str] = []
        for index, config in enumerate(loaded.config.profiles):
            spelling = Spelling(loaded.written_for, names_enabled(written[index]))
            args = ArgsOf(loaded, config, ("profiles", index, "pluginConfig"), spelling)
            expansion = expansions[config.scheduler_name]
            rules = {
                name: self._make(self._rows[name], args, supplies) for name in _names_in(expansion)
            }
            given = args.decode(_ExtenderEntry)
            settings[config.scheduler_name] = given or ExtenderSettings()
            args.check_the_rest({name: row.rule for name, row in self._rows.items()})
            problems += args.problems
            warnings += args.warnings
            if not args.problems:
                profiles[config.scheduler_name] = _profile(config.scheduler_name, expansion, rules)
        if problems:
            raise ConfigError(problems)
        return Built(profiles, expansions, settings, tuple(warnings))

    def _make(self, row: BuiltIn, args: ArgsOf, supplies: Supplies) -> Any:
        needs = getattr(row.rule, "needs", {})
        missing = [protocol.__name__ for protocol in needs.values() if protocol not in supplies]
        if missing:
            supplied = ", ".join(sorted(protocol.__name__ for protocol in supplies)) or "nothing"
            args.problems.append(
                f"plugin {row.name} needs {', '.join(missing)}, and {supplied} can be supplied here"
            )
            return None
        for kind in getattr(row.rule, "kinds", ()):
            if kind not in KIND_OF:
                known = ", ".join(each.name for each in KIND_OF.values())
                args.problems.append(
                    f"plugin {row.name} depends on {kind.__name__}, which is not watched; "
                    f"{known} can be"
                )
                return None
        given = {parameter: supplies[protocol] for parameter, protocol in needs.items()}
        kind = getattr(row.rule, "args", None)
        if kind is not None:
            decoded = args.decode(row.rule)
            if decoded is None:
                return None
            given["args"] = decoded
        return row.rule(**given)


def _profile(scheduler_name: str, expansion: Expansion, rules: Mapping[str, Any]) -> Profile:
    return Profile(
        scheduler_name,
        {point: [rules[plugin.name] for plugin in plugins] for point, plugins in expansion.items()},
        {plugin.name: plugin.weight for plugin in expansion.get("score", ())},
    )


def _names_in(expansion: Expansion) -> dict[str, None]:
    return {plugin.name: None for plugins in expansion.values() for plugin in plugins}
