"""Works out which plugins run at each extension point: merges a profile with the defaults.

It knows nothing about plugins: the registry calls `expand_profiles` with a function that tells
which extension points a plugin implements."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace

from lowtide.config.errors import ConfigError, Path, Problem, did_you_mean, path_text
from lowtide.config.load import LoadedConfig
from lowtide.config.types import (
    EXTENSION_POINTS,
    MULTI_POINT,
    EnabledPlugin,
    KubeSchedulerConfiguration,
    Plugins,
    PluginSet,
    Profile,
)

Implements = Callable[[str, str], bool]  # (plugin name, extension point) -> bool
Expansion = dict[str, tuple[EnabledPlugin, ...]]  # extension point -> plugins in order

ALL = "*"
WEIGHTED_POINTS = ("score", "placementScore")
REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")

_HIGHEST_SCORE = 100
_HIGHEST_INT64 = 2**63 - 1


def merge_with_defaults(defaults: Sequence[EnabledPlugin], custom: Plugins) -> Plugins:
    """Add the default plugins to multiPoint, except those that the profile disables there."""
    custom_set = custom.multi_point
    disabled = {plugin.name for plugin in custom_set.disabled}
    # If a name has several entries, the last one takes the default's place. The others remain and
    # are rejected as enabled twice.
    index_by_name = {plugin.name: index for index, plugin in enumerate(custom_set.enabled)}
    enabled: list[EnabledPlugin] = []
    used: set[int] = set()
    for default in () if ALL in disabled else defaults:
        if default.name in disabled:
            continue
        index = index_by_name.get(default.name)
        if index is None:
            enabled.append(default)
        else:
            enabled.append(custom_set.enabled[index])
            used.add(index)
    enabled += (plugin for i, plugin in enumerate(custom_set.enabled) if i not in used)
    return replace(custom, multi_point=replace(custom_set, enabled=tuple(enabled)))


def expand(plugins: Plugins, implements: Implements) -> Expansion:
    """Return the plugins of each extension point, in order, with weights where they count."""
    expansion, problems = _expand(plugins, implements)
    if problems:
        raise ConfigError([f"{path_text(problem.path)}: {problem.text}" for problem in problems])
    return expansion


def expand_profiles(
    loaded: LoadedConfig, defaults: Sequence[EnabledPlugin], implements: Implements
) -> dict[str, Expansion]:
    """Expand every profile, by scheduler name. Raises ConfigError with all mistakes."""
    expansions: dict[str, Expansion] = {}
    problems: list[Problem] = []
    for index, profile in enumerate(loaded.config.profiles):
        merged = merge_with_defaults(defaults, profile.plugins)
        expansion, found = _expand(merged, implements)
        expansions[profile.scheduler_name] = expansion
        problems += (Problem(("profiles", index, *one.path), one.text) for one in found)
    problems += _queue_sort_problems(loaded.config.profiles, expansions)
    if problems:
        raise ConfigError([loaded.problem(problem.path, problem.text) for problem in problems])
    return expansions


def unknown_plugin(name: str, place: str, known: Sequence[str]) -> str:
    """Return the error for an unknown plugin name."""
    if name in REMOVED_PLUGINS:
        return f'{place}: "{name}" was removed from Kubernetes; NodeVolumeLimits replaces it'
    near = did_you_mean(name, known)
    others = "" if near.endswith("?") else f" known are {', '.join(sorted(known))}"
    return f'{place}: no plugin is called "{name}"{near}{others}'


def named_plugins(config: KubeSchedulerConfiguration) -> Iterator[tuple[Path, str]]:
    """Yield every plugin that a profile enables or configures, with the path of its name.

    Plugins that are only disabled are left out: disabling an unknown plugin is allowed."""
    for index, profile in enumerate(config.profiles):
        path: Path = ("profiles", index)
        for point in (*EXTENSION_POINTS, MULTI_POINT):
            for number, plugin in enumerate(profile.plugins.plugin_set(point).enabled):
                yield (*path, "plugins", point, "enabled", number, "name"), plugin.name
        for number, entry in enumerate(profile.plugin_config):
            yield (*path, "pluginConfig", number, "name"), entry.name


def _expand(plugins: Plugins, implements: Implements) -> tuple[Expansion, list[Problem]]:
    problems = [*_repeated(plugins), *_misplaced(plugins, implements)]
    expansion = {
        point: _weighed(point, _at_point(point, plugins, implements), plugins)
        for point in EXTENSION_POINTS
    }
    problems += _count_problems(expansion)
    problems += _overflows(expansion)
    return expansion, problems


def _at_point(point: str, plugins: Plugins, implements: Implements) -> list[str]:
    """Return the names at a point in order: those that override multiPoint's, the other ones of
    multiPoint, then the rest of the point's own."""
    own: PluginSet = plugins.plugin_set(point)
    own_names = [plugin.name for plugin in own.enabled]
    disabled = {plugin.name for plugin in own.disabled}
    if ALL in disabled:
        return _distinct(own_names)
    from_multi_point = [
        plugin.name
        for plugin in plugins.multi_point.enabled
        if plugin.name not in disabled and implements(plugin.name, point)
    ]
    overriding = [name for name in own_names if name in from_multi_point]
    return _distinct([*overriding, *from_multi_point, *own_names])


def _distinct(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _weighed(point: str, names: Sequence[str], plugins: Plugins) -> tuple[EnabledPlugin, ...]:
    if point not in WEIGHTED_POINTS:
        return tuple(EnabledPlugin(name) for name in names)
    weights: dict[str, int] = {}
    for plugin in chain(plugins.plugin_set(point).enabled, plugins.multi_point.enabled):
        weights.setdefault(plugin.name, plugin.weight)
    return tuple(EnabledPlugin(name, weights[name] or 1) for name in names)


def _repeated(plugins: Plugins) -> Iterator[Problem]:
    for point in (*EXTENSION_POINTS, MULTI_POINT):
        seen: set[str] = set()
        for index, plugin in enumerate(plugins.plugin_set(point).enabled):
            if plugin.name in seen:
                # Merging the defaults has moved multiPoint's entries, so their index is unknown.
                place: Path = () if point == MULTI_POINT else (index, "name")
                yield Problem(
                    ("plugins", point, "enabled", *place),
                    f'"{plugin.name}" is enabled twice; enable it once',
                )
            seen.add(plugin.name)


def _misplaced(plugins: Plugins, implements: Implements) -> Iterator[Problem]:
    for point in EXTENSION_POINTS:
        for index, plugin in enumerate(plugins.plugin_set(point).enabled):
            if implements(plugin.name, point):
                continue
            points = ", ".join(one for one in EXTENSION_POINTS if implements(plugin.name, one))
            yield Problem(
                ("plugins", point, "enabled", index, "name"),
                f'"{plugin.name}" does nothing at {point}; it can be enabled at {points or "none"}',
            )


def _count_problems(expansion: Expansion) -> Iterator[Problem]:
    if len(expansion["queueSort"]) != 1:
        yield Problem(
            ("plugins", "queueSort"),
            f"must leave one plugin to sort the queue, not {_names(expansion['queueSort'])}",
        )
    if not expansion["bind"]:
        yield Problem(("plugins", "bind"), "must leave at least one plugin to bind pods, not none")
    if len(expansion["placementGenerate"]) > 1:
        yield Problem(
            ("plugins", "placementGenerate"),
            f"must leave at most one plugin, not {_names(expansion['placementGenerate'])}",
        )


def _overflows(expansion: Expansion) -> Iterator[Problem]:
    for point in WEIGHTED_POINTS:
        total = sum(plugin.weight for plugin in expansion[point])
        if total * _HIGHEST_SCORE > _HIGHEST_INT64:
            yield Problem(
                ("plugins", point),
                f"the weights add up to {total}; the maximum is {_HIGHEST_INT64 // _HIGHEST_SCORE}",
            )


def _queue_sort_problems(
    profiles: Sequence[Profile], expansions: Mapping[str, Expansion]
) -> Iterator[Problem]:
    # All profiles share one queue.
    first = profiles[0]
    wanted = expansions[first.scheduler_name]["queueSort"]
    for index, profile in enumerate(profiles):
        sorts = expansions[profile.scheduler_name]["queueSort"]
        if sorts != wanted:
            yield Problem(
                ("profiles", index, "plugins", "queueSort"),
                f"must be the same in every profile, but is {_names(sorts)} here "
                f'and {_names(wanted)} in "{first.scheduler_name}"',
            )
        elif any(_args(profile, one.name) != _args(first, one.name) for one in sorts):
            yield Problem(
                ("profiles", index, "pluginConfig"),
                f"the args of {_names(sorts)} must be the same in every profile, "
                f'but differ from those in "{first.scheduler_name}"',
            )


def _args(profile: Profile, name: str) -> Any:
    return next((entry.args for entry in profile.plugin_config if entry.name == name), None)


def _names(plugins: Sequence[EnabledPlugin]) -> str:
    return ", ".join(plugin.name for plugin in plugins) or "none"
