"""Plugin args: from a profile's `pluginConfig` to the plugins' own types. The registry calls it.

It also translates other names of a plugin, and args in an older spelling."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace as with_fields

from lowtide.config.decoding import Decoder
from lowtide.config.errors import Path
from lowtide.config.load import LoadedConfig
from lowtide.config.types import EXTENSION_POINTS, MULTI_POINT, Plugins, PluginSet, Profile

T = TypeVar("T", bound=Struct)


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a profile is written: the apiVersion of its file, and the plugin names it enables."""

    api_version: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class OlderArgs:
    """Args in an older spelling, translated to the current one."""

    args: dict[str, Any]
    warning: str
    written_as: Mapping[str, str] = field(default_factory=dict)  # current field -> older field
    problems: tuple[tuple[str, str], ...] = ()  # field and text, where two spellings contradict


ReadOlderArgs = Callable[[dict[str, Any], Spelling], OlderArgs | None]  # None: they are current


class ArgsOf:
    """The `pluginConfig` of one profile. `decode` collects problems and warnings."""

    def __init__(self, loaded: LoadedConfig, index: int, written: Profile) -> None:
        """`loaded` has each plugin under its own name; `written` is the profile as it was."""
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self._loaded = loaded
        self._path: Path = ("profiles", index, "pluginConfig")
        self._spelling = Spelling(loaded.written_for, names_enabled(written))
        self._entries = {
            entry.name: (number, entry.args)
            for number, entry in enumerate(loaded.config.profiles[index].plugin_config)
        }
        self._used: set[str] = set()

    @property
    def unused(self) -> list[str]:
        """The plugins whose args have not been decoded."""
        return [name for name in self._entries if name not in self._used]

    def decode(
        self, plugin_name: str, kind: type[T], older_args: ReadOlderArgs | None = None
    ) -> T | None:
        """The plugin's args; None where a problem has been found, in these args or before."""
        self._used.add(plugin_name)
        index, raw = self._entries.get(plugin_name, (0, None))
        given = self._without_header(plugin_name, index, raw)
        written_as: Mapping[str, str] = {}
        older = (
            older_args(given, self._spelling) if older_args and isinstance(given, dict) else None
        )
        if older is not None:
            given, written_as = older.args, older.written_as
            self.warnings.append(self._loaded.problem(self._at(index), older.warning))
            for name, text in older.problems:
                self._add(index, (name,), text)
        decoder = Decoder()
        decoded = decoder.decode(kind, given)
        found = [(problem.path, problem.text) for problem in decoder.problems]
        found += _problems_of_values(decoded, given, decoder)
        for (first, *rest), text in ((path or ("",), text) for path, text in found):
            self._add(index, (written_as.get(str(first), first), *rest), text)
        return None if self.problems else decoded

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


def _problems_of_values(decoded: Any, given: Any, decoder: Decoder) -> Iterator[tuple[Path, str]]:
    """What the args themselves report by their method `problems`."""
    if not hasattr(decoded, "problems") or decoder.has_replaced:
        return
    broken = {problem.path[0] for problem in decoder.problems if problem.path}
    for name, text in decoded.problems():
        # Where decoding failed, a field that is missing may only be misspelled.
        if not decoder.problems or _field(name) in {*given} - broken:
            yield (name,), text


def _field(name: str) -> str:
    """The first step of a place: `prometheus` of prometheus.timeout."""
    return re.split(r"[.\[]", name)[0]


def names_enabled(profile: Profile) -> frozenset[str]:
    return frozenset(
        plugin.name
        for point in (*EXTENSION_POINTS, MULTI_POINT)
        for plugin in profile.plugins.plugin_set(point).enabled
    )


def with_own_names(loaded: LoadedConfig, name_of: Mapping[str, str]) -> LoadedConfig:
    """The configuration with each plugin under its own name. `name_of` maps the other names."""
    profiles = tuple(_renamed(profile, name_of) for profile in loaded.config.profiles)
    return replace(loaded, config=with_fields(loaded.config, profiles=profiles))


def _renamed(profile: Profile, name_of: Mapping[str, str]) -> Profile:
    def renamed(plugins: Any) -> Any:
        return tuple(with_fields(each, name=name_of.get(each.name, each.name)) for each in plugins)

    def sets(plugins: PluginSet) -> PluginSet:
        return PluginSet(enabled=renamed(plugins.enabled), disabled=renamed(plugins.disabled))

    fields = {name: sets(getattr(profile.plugins, name)) for name in Plugins.__struct_fields__}
    return with_fields(
        profile,
        plugins=with_fields(profile.plugins, **fields),
        plugin_config=renamed(profile.plugin_config),
    )
