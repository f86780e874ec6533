"""Events that watches deliver to the machine."""

from typing import Any

import msgspec


class Added(msgspec.Struct, frozen=True):
    object: Any


class Modified(msgspec.Struct, frozen=True):
    object: Any


class Deleted(msgspec.Struct, frozen=True):
    object: Any


class Listed(msgspec.Struct, frozen=True):
    """All objects of this kind that existed at the start have been delivered."""

    kind: str


class Unavailable(msgspec.Struct, frozen=True):
    """The API server does not list this kind: it is forbidden (403) or unknown (404)."""

    kind: str
    status: int
    message: str
