"""Objects in which every field is set, whatever fields there are; each text is one of its own."""

import types
from typing import Any, Union, get_args, get_origin

import msgspec

from lowtide.objects.quantity import Quantity


class Filler:
    """Texts are `word<number>`, so that each can be told from all others."""

    def __init__(self) -> None:
        self._count = 0

    def full(self, kind: Any) -> Any:
        self._count += 1
        if set(get_args(kind)) >= set(get_args(Quantity)):
            return f"{self._count}m"
        origin = get_origin(kind)
        if origin in (Union, types.UnionType):
            return self.full(next(each for each in get_args(kind) if each is not type(None)))
        if origin is list:
            return [self.full(get_args(kind)[0]) for _ in range(2)]
        if origin is dict:
            return {f"key{self._count}": self.full(get_args(kind)[1])}
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            fields = msgspec.structs.fields(kind)
            return kind(**{field.name: self.full(field.type) for field in fields})
        if kind is object:
            return None
        simple = {str: f"word{self._count}x", int: self._count, bool: True, float: 0.5}
        return simple[kind]


def texts_in(thing: Any, path: str = "") -> dict[str, str]:
    """By where it stands: every text that is a word, keys of dicts not counted."""
    if isinstance(thing, str):
        return {path: thing} if thing.startswith("word") else {}
    if isinstance(thing, msgspec.Struct):
        kind, found = type(thing).__name__, {}
        for name in thing.__struct_fields__:
            value = getattr(thing, name)
            is_part = isinstance(value, msgspec.Struct)
            found |= texts_in(value, "" if is_part else f"{kind}.{name}")
        return found
    if isinstance(thing, list):
        return {key: text for each in thing for key, text in texts_in(each, path).items()}
    if isinstance(thing, dict):
        return {key: text for each in thing.values() for key, text in texts_in(each, path).items()}
    return {}
