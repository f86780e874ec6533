"""Dictionaries grouped by a shared key, such as pods by node name."""

from collections.abc import Hashable, Mapping
from typing import Any, Final, TypeVar

_K = TypeVar("_K", bound=Hashable)
_M = TypeVar("_M", bound=Hashable)
_V = TypeVar("_V")

_EMPTY: Final[Mapping[Any, Any]] = {}


class Groups(dict[_K, dict[_M, _V]]):
    """By key, then by member; no group is empty."""

    def group(self, key: _K) -> Mapping[_M, _V]:
        return self.get(key, _EMPTY)

    def put(self, key: _K, member: _M, value: _V) -> None:
        self.setdefault(key, {})[member] = value

    def drop(self, key: _K, member: _M) -> None:
        """The member may be absent."""
        group = self.get(key)
        if group is not None:
            group.pop(member, None)
            if not group:
                del self[key]
