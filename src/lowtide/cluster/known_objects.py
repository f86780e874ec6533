"""Objects other than nodes and pods that rules read, as the watches say or as they are assumed.

Kept by ClusterState. What a rule reserves for a pod is assumed: rules see it so until the watch
brings a newer version, or until it is taken back because the pod was not bound after all.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class KnownObjects:
    """`on_change` is told of each change as (before, after), with None for what is not there."""

    def __init__(self, on_change: Callable[[Any, Any], None]) -> None:
        self._on_change = on_change
        self._by_kind: dict[type, dict[tuple[str, str], Any]] = {}
        self._in_namespace: dict[tuple[type, str], dict[str, Any]] = {}
        self._watched: dict[tuple[type, str, str], Any] = {}  # what is assumed to be otherwise
        self._assumed: dict[str, tuple[Any, ...]] = {}  # by the uid of the pod it is reserved for

    def of(self, kind: type[T]) -> Mapping[tuple[str, str], T]:
        """By namespace and name."""
        return self._by_kind.get(kind, {})

    def inside(self, kind: type[T], namespace: str) -> Mapping[str, T]:
        """Those of one namespace, by name."""
        return self._in_namespace.get((kind, namespace), {})

    def watched(self, kind: type[T], namespace: str, name: str) -> T | None:
        """As the watch says, whatever is assumed."""
        found: T | None = self.of(kind).get((namespace, name))
        return self._watched.get((kind, namespace, name), found)

    def like(self, thing: T) -> T | None:
        """The one of its kind and name, as rules see it now."""
        kind, namespace, name = _full_key(thing)
        found: T | None = self.of(kind).get((namespace, name))
        return found

    def put(self, thing: Any) -> bool:
        """As a watch says; whether a rule can tell it from what was there before."""
        known, key = self._watched.get(_full_key(thing)), _full_key(thing)
        if known is not None:
            if known.metadata.resource_version == thing.metadata.resource_version:
                self._watched[key] = thing
                return False
            del self._watched[key]
        return self._set(thing)

    def remove(self, thing: Any) -> None:
        kind, namespace, name = _full_key(thing)
        self._watched.pop((kind, namespace, name), None)
        before = self._by_kind.get(kind, {}).pop((namespace, name), None)
        self._in_namespace.get((kind, namespace), {}).pop(name, None)
        self._on_change(before, None)

    def assume(self, uid: str, things: Iterable[Any]) -> None:
        """Each replaces the one of its name, for the pod with this uid."""
        things = tuple(things)
        self._assumed[uid] = (*self.assumed(uid), *things)
        for thing in things:
            kind, namespace, name = _full_key(thing)
            before = self.of(kind).get((namespace, name))
            self._watched.setdefault((kind, namespace, name), before)
            self._set(thing)

    def assumed(self, uid: str) -> tuple[Any, ...]:
        return self._assumed.get(uid, ())

    def take_back(self, uid: str) -> tuple[tuple[Any, Any], ...]:
        """Rules see again what the watch said of them; returns what has changed by that, as it was
        assumed and as it is."""
        changed = []
        for thing in self._assumed.pop(uid, ()):
            watched = self._watched.pop(_full_key(thing), None)
            if watched is not None and self._set(watched):
                changed.append((thing, watched))
        return tuple(changed)

    def settle(self, uid: str) -> None:
        """The pod is bound: what is still assumed stays so until the watch tells more."""
        self._assumed.pop(uid, None)

    def _set(self, thing: Any) -> bool:
        kind, namespace, name = _full_key(thing)
        of_kind = self._by_kind.setdefault(kind, {})
        before = of_kind.get((namespace, name))
        of_kind[namespace, name] = thing
        self._in_namespace.setdefault((kind, namespace), {})[name] = thing
        self._on_change(before, thing)
        return before is None or _without_version(before) != _without_version(thing)


def _full_key(thing: Any) -> tuple[type, str, str]:
    return (type(thing), thing.metadata.namespace, thing.metadata.name)


def _without_version(thing: Any) -> Any:
    """Controllers write status all the time, of which only the version is seen here."""
    metadata = msgspec.structs.replace(thing.metadata, resource_version="", generation=0)
    return msgspec.structs.replace(thing, metadata=metadata)
