"""Objects other than nodes and pods, as watched or as assumed. Kept by ClusterState.

An object that a plugin reserves for a pod is assumed: plugins see it until the watch brings a newer
version, or until it is forgotten because the pod was not bound.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Replaced:
    """An object as watched, and what is assumed in its place: plugins see what came last."""

    watched: Any
    assumed: dict[str, Any] = field(default_factory=dict)  # by the uid of the pod, in order


class KnownObjects:
    """`on_change(before, after, is_visible)` is called with each change. `before` is None for a new
    object, `after` for a deleted one; `is_visible` is whether plugins can tell the two apart."""

    def __init__(self, on_change: Callable[[Any, Any, bool], None]) -> None:
        self._on_change = on_change
        self._by_kind: dict[type, dict[tuple[str, str], Any]] = {}
        self._in_namespace: dict[tuple[type, str], dict[str, Any]] = {}
        self._replaced: dict[tuple[type, str, str], _Replaced] = {}
        self._assumed: dict[str, tuple[Any, ...]] = {}  # by the uid of the pod it is reserved for

    def objects_by_key(self, kind: type[T]) -> Mapping[tuple[str, str], T]:
        """By namespace and name."""
        return self._by_kind.get(kind, {})

    def objects_in(self, kind: type[T], namespace: str) -> Mapping[str, T]:
        """Objects of one namespace, by name."""
        return self._in_namespace.get((kind, namespace), {})

    def watched(self, kind: type[T], namespace: str, name: str) -> T | None:
        """The object as watched, even if another version is assumed."""
        replaced = self._replaced.get((kind, namespace, name))
        found: T | None = self.objects_by_key(kind).get((namespace, name))
        return found if replaced is None else replaced.watched

    def current(self, thing: T) -> T | None:
        """The known object of the same kind and name, as plugins see it now."""
        kind, namespace, name = _full_key(thing)
        found: T | None = self.objects_by_key(kind).get((namespace, name))
        return found

    def put(self, thing: Any) -> bool:
        """Add or replace a watched object. Returns whether a plugin can see a difference."""
        key = _full_key(thing)
        replaced = self._replaced.pop(key, None)
        if replaced is not None and _is_same_version(replaced.watched, thing):
            self._replaced[key] = _Replaced(thing, replaced.assumed)
            return False
        return self._set(thing)

    def remove(self, thing: Any) -> None:
        self._replaced.pop(_full_key(thing), None)
        self._unset(thing)

    def assume(self, uid: str, things: Iterable[Any]) -> None:
        """Assume these objects for the pod with this uid; each replaces the one of its name."""
        things = tuple(things)
        keys = [_full_key(thing) for thing in things]  # before anything changes: it may fail
        self._assumed[uid] = (*self.assumed(uid), *things)
        for key, thing in zip(keys, things, strict=True):
            replaced = self._replaced.setdefault(key, _Replaced(self.current(thing)))
            replaced.assumed.pop(uid, None)
            replaced.assumed[uid] = thing
            self._set(thing)

    def assumed(self, uid: str) -> tuple[Any, ...]:
        return self._assumed.get(uid, ())

    def forget(self, uid: str) -> tuple[tuple[Any, Any], ...]:
        """Undo `assume`: plugins see the watched objects again, or what is assumed for another pod.
        Returns (assumed, now) for each object that looks different to plugins; `now` is None if the
        object was never watched."""
        changed: list[tuple[Any, Any]] = []
        for thing in self._assumed.pop(uid, ()):
            key = _full_key(thing)
            replaced = self._replaced.get(key)
            if replaced is None or replaced.assumed.pop(uid, None) is None:
                continue  # the watch brought a newer version; another pod may have assumed it since
            if not replaced.assumed:
                del self._replaced[key]
            after = next(reversed(replaced.assumed.values()), replaced.watched)
            if after is None:
                self._unset(thing)
                changed.append((thing, None))
            elif self._set(after):
                changed.append((thing, after))
        return tuple(changed)

    def settle(self, uid: str) -> None:
        """The pod is bound: what it assumed stays until the watch brings a newer version."""
        self._assumed.pop(uid, None)

    def _set(self, thing: Any) -> bool:
        kind, namespace, name = _full_key(thing)
        of_kind = self._by_kind.setdefault(kind, {})
        before = of_kind.get((namespace, name))
        of_kind[namespace, name] = thing
        self._in_namespace.setdefault((kind, namespace), {})[name] = thing
        is_visible = before is None or _without_version(before) != _without_version(thing)
        self._on_change(before, thing, is_visible)
        return is_visible

    def _unset(self, thing: Any) -> None:
        kind, namespace, name = _full_key(thing)
        before = self._by_kind.get(kind, {}).pop((namespace, name), None)
        neighbours = self._in_namespace.get((kind, namespace), {})
        neighbours.pop(name, None)
        if not neighbours:
            self._in_namespace.pop((kind, namespace), None)
        self._on_change(before, None, True)


def _full_key(thing: Any) -> tuple[type, str, str]:
    return (type(thing), thing.metadata.namespace, thing.metadata.name)


def _is_same_version(known: Any, thing: Any) -> bool:
    """`known` is None for an assumed object that was never watched."""
    return known is not None and (
        known.metadata.resource_version == thing.metadata.resource_version
    )


def _without_version(thing: Any) -> Any:
    """Controllers write status all the time. Our objects have no status, so only resourceVersion
    differs."""
    metadata = msgspec.structs.replace(thing.metadata, resource_version="", generation=0)
    return msgspec.structs.replace(thing, metadata=metadata)
