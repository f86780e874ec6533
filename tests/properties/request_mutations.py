"""Requests to the extender as nobody should send them: real ones with a few things changed."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec

# What stands in for a value, as JSON; a marker that is no JSON before it is put in place.
_MARKER = '"\\u0001{}\\u0001"'
_SNIPPETS = (
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1.5",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "-99999999999999999999",
    "1e308",
    "1e400",
    "1e-400",
    "9" * 400,
    "9" * 5000,
    "NaN",
    "Infinity",
    '""',
    '"x"',
    '"1e40"',
    '"9e99999999"',
    '"-5Gi"',
    '"0x10"',
    '"2026-13-45T99:99:99Z"',
    '"\\ud800"',
    '"\\u0000\\uffff"',
    '"' + "long" * 300 + '"',
    "[]",
    "[null]",
    "[[[]]]",
    "{}",
    '{"":{}}',
    '{"a":1,"a":"b","A":[]}',
    '{"key":"kubernetes.io/hostname","operator":"Exists","values":["x"],"effect":"NoSchedule"}',
    '{"matchLabels":{"app":"plain"},"matchExpressions":[{"key":"a","operator":"Gt","values":["x"]}]}',
    "[" * 500 + "]" * 500,
)
_DEEP = "[" * 100_000
_KEYS = (
    "",
    "pod",
    "NODES",
    "nodenames",
    "metadata",
    "name",
    "uid",
    "spec",
    "潮",
    "\u017fpec",
    "x" * 300,
)
_TEXTS = (
    "",
    " ",
    "tide-east",
    "tide-nowhere",
    "潮" * 20,
    "\u202e\x00\n",
    "😀",
    "ſ",
    "a/../b",
    "{}",
)
_BYTES = (
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\x00",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b"\\",
    b"\\u",
)


class Mutator:
    """Changes bodies as `random` says; the same `random` gives the same changes."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._snippets: list[str] = []

    def mutated(self, body: bytes) -> bytes:
        """With some JSON values changed, or some bytes, or both."""
        random = self._random
        kind = random.random()
        if kind < 0.8:
            body = self._with_values_changed(body, random.choice((1, 1, 1, 2, 3, 8)))
        if kind > 0.75:
            for _ in range(random.choice((1, 1, 2, 5))):
                body = self._with_bytes_changed(body)
        return body

    def _with_values_changed(self, body: bytes, count: int) -> bytes:
        data = msgspec.json.decode(body)
        self._snippets = []
        for _ in range(count):
            self._change_one(self._container_in(data))
        text = msgspec.json.encode(data)
        for at, snippet in enumerate(self._snippets):
            text = text.replace(_MARKER.format(at).encode(), snippet.encode())
        return text

    def _container_in(self, data: Any) -> Any:
        """Some object or list in it: what is far up matters most, and is found most often."""
        while self._random.random() < 0.75:
            values = data.values() if isinstance(data, dict) else data
            inner = [each for each in values if isinstance(each, (dict, list))]
            if not inner:
                break
            data = self._random.choice(inner)
        return data

    def _change_one(self, container: dict[str, Any] | list[Any]) -> None:
        if isinstance(container, dict):
            self._change_object(container)
        else:
            self._change_list(container)

    def _change_object(self, container: dict[str, Any]) -> None:
        random = self._random
        if not container:
            container[random.choice(_KEYS)] = self._other_value()
            return
        key = random.choice(list(container))
        actions: Sequence[Callable[[], Any]] = (
            lambda: container.update({key: self._other_value()}),
            lambda: container.update({key: self._other_value()}),
            lambda: container.pop(key),
            lambda: container.update({self._other_case(key): container.pop(key)}),
            lambda: container.update({self._other_case(key): self._other_value()}),
            lambda: container.update({random.choice(_KEYS): container[key]}),
            lambda: container.update({key: container[random.choice(list(container))]}),
            lambda: container.update({key: [container[key]]}),
        )
        random.choice(actions)()

    def _change_list(self, container: list[Any]) -> None:
        random = self._random
        if not container:
            container.append(self._other_value())
            return
        at = random.randrange(len(container))
        actions: Sequence[Callable[[], Any]] = (
            lambda: container.append(container[at]),
            lambda: container.pop(at),
            lambda: container.insert(at, self._other_value()),
            lambda: container.__setitem__(at, self._other_value()),
            container.reverse,
            container.clear,
        )
        random.choice(actions)()

    def _other_value(self) -> str:
        """A text that is replaced by a snippet in the end, or is a value itself."""
        random = self._random
        if random.random() < 0.3:
            return random.choice(_TEXTS)
        self._snippets.append(_DEEP if random.random() < 0.005 else random.choice(_SNIPPETS))
        return f"\x01{len(self._snippets) - 1}\x01"

    def _other_case(self, key: str) -> str:
        return self._random.choice((key.lower(), key.upper(), key.swapcase(), key.title()))

    def _with_bytes_changed(self, body: bytes) -> bytes:
        random = self._random
        if not body:
            return random.choice(_BYTES)
        at = random.randrange(len(body))
        upto = min(len(body), at + random.choice((1, 2, 8, 64)))
        return random.choice(
            (
                lambda: body[:at] + bytes([body[at] ^ 1 << random.randrange(8)]) + body[at + 1 :],
                lambda: body[:at] + random.choice(_BYTES) + body[at:],
                lambda: body[:at] + body[upto:],
                lambda: body[:upto] + body[at:],
                lambda: body[:at],
                lambda: body[:at] + random.randbytes(3) + body[at:],
            )
        )()
