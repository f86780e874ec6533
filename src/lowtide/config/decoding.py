"""Decodes plain data strictly into msgspec Structs and reports every mistake with its path.

msgspec's own conversion stops at the first mistake; this one uses the same type information and
continues. Used for the configuration, plugins' args and simulations."""

import base64
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from lowtide.config.durations import seconds_from_duration
from lowtide.config.errors import Path, Problem, did_you_mean, value_text

T = TypeVar("T", bound=msgspec.Struct)

_DURATION_EXPECTED = "must be a duration such as 15s or 1m30s"


class Decoder:
    """Decodes one document. Each mistake is added to `problems`; a zero value replaces bad values.

    A field that is null counts as not given, as in Go."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._unknown_fields = 0

    @property
    def has_replaced(self) -> bool:
        """True if values may have been replaced: there are problems other than unknown fields."""
        return len(self.problems) > self._unknown_fields

    def decode(self, struct: type[T], data: Any) -> T:
        try:
            decoded: T = self._value(inspect.type_info(struct), data, ())
        except TypeError:
            # A third-party plugin's args may have any type that msgspec supports.
            decoded = self._by_msgspec(struct, data)
        return decoded

    def _value(self, kind: inspect.Type, data: Any, path: Path) -> Any:
        match kind:
            case inspect.Metadata() if "amount" in (kind.extra or {}):
                return self._amount(data, path)
            case inspect.Metadata():
                return self._duration(data, path)
            case inspect.UnionType():
                first, *others = (
                    one for one in kind.types if not isinstance(one, inspect.NoneType)
                )
                if others:
                    raise TypeError(f"{kind} is not decoded; it has more than one type")
                return self._value(first, data, path)
            case inspect.StructType():
                return self._struct(kind, data, path)
            case inspect.VarTupleType():
                return tuple(self._list(kind.item_type, data, path))
            case inspect.ListType():
                return self._list(kind.item_type, data, path)
            case inspect.LiteralType():
                return self._literal(kind, data, path)
            case inspect.AnyType():
                return data
            case inspect.DictType():
                return self._dict(kind, data, path)
            case inspect.BoolType():
                return self._bool(data, path)
            case inspect.IntType():
                return self._int(kind, data, path)
            case inspect.FloatType():
                return self._float(data, path)
            case inspect.BytesType():
                return self._bytes(data, path)
            case inspect.StrType():
                return self._str(kind, data, path)
        raise TypeError(f"{kind} is not decoded; add it beside the other types")

    def _by_msgspec(self, struct: type[T], data: Any) -> T:
        try:
            return msgspec.convert(data, struct)
        except msgspec.ValidationError as error:
            self._add((), f"is invalid: {error}")
            decoded: T = _zero(inspect.type_info(struct))
            return decoded

    def _struct(self, kind: inspect.StructType, data: Any, path: Path) -> Any:
        if not isinstance(data, dict):
            self._wrong("a mapping", data, path)
            return _zero(kind)
        fields = {known.encode_name: known for known in kind.fields}
        given: dict[str, Any] = {}
        for name, value in data.items():
            if name not in fields:
                self._unknown_field(name, tuple(fields), path)
            elif value is not None:
                known = fields[name]
                given[known.name] = self._value(known.type, value, (*path, name))
        for name, known in fields.items():
            if known.required and known.name not in given:
                self._add((*path, name), "is missing")
                given[known.name] = _zero(known.type)
        return kind.cls(**given)

    def _list(self, item_type: inspect.Type, data: Any, path: Path) -> list[Any]:
        if not isinstance(data, list):
            self._wrong("a list", data, path)
            return []
        return [self._value(item_type, item, (*path, index)) for index, item in enumerate(data)]

    def _dict(self, kind: inspect.DictType, data: Any, path: Path) -> dict[Any, Any]:
        if not isinstance(data, dict):
            self._wrong("a mapping", data, path)
            return {}
        if isinstance(kind.value_type, inspect.AnyType):
            return data
        decoded: dict[Any, Any] = {}
        for name, value in data.items():
            at = (*path, str(name))
            if isinstance(kind.value_type, inspect.StrType) and type(value) in (bool, int, float):
                # Headers have this type: the value may be a secret, so it is not shown.
                self._add(at, "must be a string; put the value in quotes")
            elif value is not None:
                decoded[self._value(kind.key_type, name, at)] = self._value(
                    kind.value_type, value, at
                )
        return decoded

    def _literal(self, kind: inspect.LiteralType, data: Any, path: Path) -> Any:
        if data in kind.values:
            return data
        valid = [str(value) for value in kind.values]
        near = did_you_mean(str(data), valid)
        self._add(path, f"is {value_text(data)}{near} valid here are {', '.join(valid)}")
        return kind.values[0]

    def _duration(self, data: Any, path: Path) -> float:
        if isinstance(data, str):
            try:
                return seconds_from_duration(data)
            except ValueError:
                pass
        elif type(data) is int and data == 0:
            return 0.0
        self._add(path, f"{_DURATION_EXPECTED}, not {value_text(data)}")
        return 0.0

    def _amount(self, data: Any, path: Path) -> str:
        if isinstance(data, str):
            return data
        if isinstance(data, int | float) and not isinstance(data, bool):
            return str(data)
        self._wrong("a string or a number", data, path)
        return ""

    def _bool(self, data: Any, path: Path) -> bool:
        if isinstance(data, bool):
            return data
        self._wrong("true or false", data, path)
        return False

    def _int(self, kind: inspect.IntType, data: Any, path: Path) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self._wrong("an integer", data, path)
            return 0
        if kind.ge is not None and data < kind.ge:
            self._add(path, f"must be at least {kind.ge}, not {data}")
        elif kind.le is not None and data > kind.le:
            self._add(path, f"must be at most {kind.le}, not {data}")
        return data

    def _float(self, data: Any, path: Path) -> float:
        if isinstance(data, int | float) and not isinstance(data, bool):
            return float(data)
        self._wrong("a number", data, path)
        return 0.0

    def _bytes(self, data: Any, path: Path) -> bytes:
        if not isinstance(data, str):
            self._wrong("a base64 string", data, path)
            return b""
        try:
            return base64.b64decode(data.replace("\n", ""), validate=True)
        except ValueError:
            # The value may be a private key, so it is not shown.
            self._add(path, "must be valid base64")
            return b""

    def _str(self, kind: inspect.StrType, data: Any, path: Path) -> str:
        if not isinstance(data, str):
            has_text = data is not None and not isinstance(data, dict | list)
            in_quotes = "; put the value in quotes" if has_text else ""
            self._add(path, f"must be a string, not {value_text(data)}{in_quotes}")
            return ""
        if kind.min_length is not None and len(data) < kind.min_length:
            self._add(path, "must not be empty")
        return data

    def _unknown_field(self, name: str, valid: tuple[str, ...], path: Path) -> None:
        near = did_you_mean(name, valid)
        self._unknown_fields += 1
        self._add((*path, name), f"is not a known field{near} valid here are {', '.join(valid)}")

    def _wrong(self, expected: str, data: Any, path: Path) -> None:
        self._add(path, f"must be {expected}, not {value_text(data)}")

    def _add(self, path: Path, text: str) -> None:
        self.problems.append(Problem(path, text))


def _zero(kind: inspect.Type) -> Any:
    """Return a substitute for a rejected value, so that decoding can continue."""
    if isinstance(kind, inspect.StructType):
        return kind.cls(
            **{known.name: _zero(known.type) for known in kind.fields if known.required}
        )
    return ""
