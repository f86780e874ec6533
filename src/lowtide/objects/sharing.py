"""Stores equal parts of objects only once, because pods of one template hardly differ.

Used by kube on decoded objects, before any other code sees them."""

from msgspec import Struct
from msgspec.structs import astuple, force_setattr


def share(found: Struct, like: Struct) -> None:
    """Let the metadata, spec and status of `found` reference equal values of `like`.

    Both have the same type. Deeper values are not compared: that costs more time than it saves
    memory."""
    for ours, theirs in zip(astuple(found), astuple(like), strict=True):
        if isinstance(ours, Struct) and type(ours) is type(theirs):
            _share_fields(ours, theirs)


def _share_fields(part: Struct, like: Struct) -> None:
    fields = zip(part.__struct_fields__, astuple(part), astuple(like), strict=True)
    for name, ours, theirs in fields:
        if ours is theirs:
            continue
        if ours == theirs:
            force_setattr(part, name, theirs)
        elif type(ours) is list and theirs:
            # Items at the same position are usually equal.
            for position, (one, other) in enumerate(zip(ours, theirs, strict=False)):
                if one == other:
                    ours[position] = other
