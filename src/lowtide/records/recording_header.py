"""The first line of a recording: what it is, who wrote it, and under which configuration.

`recorder` writes it and `recording` reads it."""

from collections.abc import Hashable, Iterable
from typing import Any, Final

import msgspec

from lowtide.framework.profile import Profile
from lowtide.scenario.scenario import ScenarioError

FORMAT: Final = "lowtide recording"
VERSION: Final = 2  # grows when what an older Lowtide would misread is written


class RecordingError(ScenarioError):
    """A recording that cannot be read or replayed; the sentence says what and where."""


class Source(msgspec.Struct, frozen=True, rename="camel"):
    """What a plugin wants measured. Readings name it by its place in the header."""

    type: str
    description: str  # in words, for people


class Header(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`now` is what the machine's clock showed at `time`, in RFC 3339: every `now` in the file is
    on that clock."""

    format: str = ""
    version: int = 0
    lowtide: str = ""
    time: str = ""
    now: float = 0.0
    names_are_hashed: bool = False
    keeps_every_score: bool = False  # also where a single node is left
    is_from_outside: bool = False  # beside other schedulers: without decisions
    scheduler_names: list[str] = []
    sources: list[Source] = []
    annotations: list[str] = []  # those that are kept besides the ones Lowtide's plugins read
    config: dict[str, Any] = {}


def sources_of(profiles: Iterable[Profile]) -> tuple[Hashable, ...]:
    """What all plugins want measured, each once, in an order that depends on the configuration
    alone."""
    return tuple(dict.fromkeys(each for profile in profiles for each in profile.readings))


def described(source: Hashable, *, with_words: bool) -> Source:
    return Source(type(source).__name__, repr(source) if with_words else "")


def sources_by_place(header: Header, sources: Iterable[Hashable]) -> list[Hashable | None]:
    """For each source of the recording the one that a replay has instead: the first of a type
    stands for the first, and so on. None where the replay has no such source."""
    by_type: dict[str, list[Hashable]] = {}
    for source in sources:
        by_type.setdefault(type(source).__name__, []).append(source)
    found: list[Hashable | None] = []
    for recorded in header.sources:
        left = by_type.get(recorded.type)
        found.append(left.pop(0) if left else None)
    return found
