"""Keeps what objects have in common once: the pods of one template differ in very little.

Used by kube for what it has decoded, before anybody else sees it."""

from msgspec import Struct
from msgspec.structs import astuple, force_setattr


def share(found: Struct, like: Struct) -> None:
    """Lets metadata, spec and status of `found` hold what those of `like` hold, where it is equal.

    Both are of one type. What is small and seldom equal is not looked for: that takes longer."""
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
            # What is at the same place in both is most often alike.
            for position, (one, other) in enumerate(zip(ours, theirs, strict=False)):
                if one == other:
                    ours[position] = other
