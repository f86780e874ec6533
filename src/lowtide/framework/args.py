"""The args of plugins: from a profile's `pluginConfig` to the plugins' own types, strictly.

Called by the registry. Other names of a plugin, and older spellings of its args, end here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec.structs import replace as with_fields

from lowtide.config.decoding import Decoder
from lowtide.config.errors import Path
from lowtide.config.load import LoadedConfig
from lowtide.config.types import EXTENSION_POINTS, MULTI_POINT, Plugins, PluginSet, Profile


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a profile was written: the apiVersion of its file, the names that it enables."""

    api_version: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class OlderArgs:
    """Args in an older spelling, put into today's: `written_as` says which field was which, and
    `problems` (field and text) where two spellings contradict each other."""

    args: dict[str, Any]
    warning: str
    written_as: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[tuple[str, str], ...] = ()


class ArgsOf:
    """The `pluginConfig` of one profile; collects what is wrong and what to warn of."""

    def __init__(
        self, loaded: LoadedConfig, config: Profile, path: Path, spelling: Spelling
    ) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self._loaded = loaded
        self._path = path
        self._spelling = spelling
        self._entries = {
            entry.name: (number, entry.args) for number, entry in enumerate(config.plugin_config)
        }
        self._used: set[str] = set()

    def decode(self, plugin: Any) -> Any | None:
        """The plugin's args; None when something is wrong with them."""
        self._used.add(plugin.name)
        index, raw = self._entries.get(plugin.name, (0, None))
        given = self._without_header(plugin.name, index, raw)
        written_as: Mapping[str, str] = {}
        older = self._older(plugin, given)
        if older is not None:
            given, written_as = older.args, older.written_as
            self.warnings.append(self._loaded.problem(self._at(index), older.warning))
            for name, text in older.problems:
                self._add(index, (name,), text)
        decoder = Decoder()
        decoded = decoder.decode(plugin.args, given)
        found = [(problem.path, problem.text) for problem in decoder.problems]
        check = getattr(decoded, "problems", None)
        if check is not None and not found:
            found = [((name,), text) for name, text in check()]
        elif check is not None and not decoder.has_replaced:
            # What is not there, or is not whole, may only be misspelled.
            whole = {*given} - {path[0] for path, _ in found if path}
            found += [((name,), text) for name, text in check() if _field(name) in whole]
        for (first, *rest), text in ((path or ("",), text) for path, text in found):
            self._add(index, (written_as.get(str(first), first), *rest), text)
        return None if self.problems else decoded

    def check_the_rest(self, plugins: Mapping[str, Any]) -> None:
        """Args of plugins that the profile does not enable must be right all the same."""
        for name in [name for name in self._entries if name not in self._used]:
            plugin = plugins.get(name)
            if hasattr(plugin, "args"):
                self.decode(plugin)

    def _older(self, plugin: Any, given: Any) -> OlderArgs | None:
        if not hasattr(plugin, "older_args") or not isinstance(given, dict):
            return None
        older: OlderArgs | None = plugin.older_args(given, self._spelling)
        return older

    def _without_header(self, name: str, index: int, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return {} if raw is None else raw
        kind = raw.get("kind")
        if kind is not None and kind != f"{name}Args":
            self._add(index, ("kind",), f"must be {name}Args, not {kind!r}")
        return {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}

    def _at(self, index: int) -> Path:
        return (*self._path, index, "args")

    def _add(self, index: int, path: Path, text: str) -> None:
        steps = tuple(step for step in path if step != "")
        self.problems.append(self._loaded.problem((*self._at(index), *steps), text))


def _field(name: str) -> str:
    """The first step of a place: `prometheus` of prometheus.timeout."""
    return re.split(r"[.\[]", name)[0]


def names_enabled(profile: Profile) -> frozenset[str]:
    return frozenset(
        plugin.name
        for point in (*EXTENSION_POINTS, MULTI_POINT)
        for plugin in profile.plugins.plugin_set(point).enabled
    )


def with_true_names(loaded: LoadedConfig, name_of: Mapping[str, str]) -> LoadedConfig:
    """The same configuration, with each plugin under its own name."""
    profiles = tuple(_renamed(profile, name_of) for profile in loaded.config.profiles)
    return replace(loaded, config=with_fields(loaded.config, profiles=profiles))


def _renamed(profile: Profile, name_of: Mapping[str, str]) -> Profile:
    def true(plugin: Any) -> Any:
        return with_fields(plugin, name=name_of.get(plugin.name, plugin.name))

    def all_true(plugins: PluginSet) -> PluginSet:
        return PluginSet(
            enabled=tuple(map(true, plugins.enabled)), disabled=tuple(map(true, plugins.disabled))
        )

    fields = {name: all_true(getattr(profile.plugins, name)) for name in _SETS}
    return with_fields(
        profile,
        plugins=with_fields(profile.plugins, **fields),
        plugin_config=tuple(map(true, profile.plugin_config)),
    )


_SETS = Plugins.__struct_fields__
