"""What watches hand to the machine: an object was added, changed, deleted; a list is complete."""

from typing import Any

import msgspec


class Added(msgspec.Struct, frozen=True):
    object: Any


class Modified(msgspec.Struct, frozen=True):
    object: Any


class Deleted(msgspec.Struct, frozen=True):
    object: Any


class Listed(msgspec.Struct, frozen=True):
    """Everything of this kind that existed at the start was delivered."""

    kind: str


class Unavailable(msgspec.Struct, frozen=True):
    """The server will not list this kind: forbidden (403) or unknown to it (404)."""

    kind: str
    status: int
    message: str
