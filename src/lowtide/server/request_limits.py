"""How much of a request to the extender is read. What is beyond is rejected before anything is made
of it: a small piece of JSON can become objects of a hundred times its bytes, and the interpreter
does nothing else while one piece is decoded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import msgspec

from lowtide.server.bad_request import TooMuchAskedError

# Nodes, or nodes and pods to be evicted. Kubernetes is built for 5,000 nodes; some run 130,000.
MOST_NODES: Final = 150_000
# Of one pod or node. The API server takes no larger requests.
MOST_OBJECT_BYTES: Final = 3 * 1024 * 1024
# Values in one pod or node, about: a large real one has some thousand.
MOST_VALUES: Final = 50_000
_BEFORE_EACH_VALUE: Final = b",[{"
# Commas in a body: 5,000 whole nodes with 50 images each have less than half of that.
MOST_COMMAS: Final = 4_000_000
_COUNTED_AT_ONCE_BYTES: Final = 1024 * 1024
# A node has more bytes than this: a smaller body has less of everything than the limits.
_UNCOUNTED_BYTES: Final = 64 * 1024


class _Counting:
    def __init__(self, field: str) -> None:
        self._field = field
        self._left = MOST_NODES

    def one(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooMuchAskedError(f"{self._field} has more than {MOST_NODES} entries")


_counting: ContextVar[_Counting] = ContextVar("_counting")


class _Counted(msgspec.Struct):
    """Any object: nothing of it is kept. The decoder ends with the first that is too many."""

    def __post_init__(self) -> None:
        _counting.get().one()


class _Victims(_Counted, rename="pascal"):
    pods: list[_Counted] | None = None


class _Nodes(msgspec.Struct):
    items: list[_Counted] | None = None


class _Args(msgspec.Struct, rename="pascal"):
    """Of whatever verb. A list of names is counted by `reject_too_many_names`."""

    nodes: _Nodes | None = None
    node_name_to_victims: dict[str, _Victims] | None = None
    node_name_to_meta_victims: dict[str, _Victims] | None = None


_count: Callable[[bytes | bytearray], Any] = msgspec.json.Decoder(_Args).decode


def reject_too_many_nodes(body: bytes | bytearray, field: str) -> None:
    """By a reading that makes nothing of the body. It also raises what msgspec does, for what is
    not of that form. `field` says what is counted."""
    if len(body) <= _UNCOUNTED_BYTES:
        return
    with _counting_of(field):
        _count(body)


def reject_too_many_values(body: bytes | bytearray) -> None:
    """Of whatever kind; with that many, each scan of the body is short."""
    starts = range(0, len(body), _COUNTED_AT_ONCE_BYTES)
    if sum(body.count(b",", at, at + _COUNTED_AT_ONCE_BYTES) for at in starts) > MOST_COMMAS:
        raise TooMuchAskedError(f"the body has more than {MOST_COMMAS} values in it")


def reject_too_many_names(json: bytes | msgspec.Raw) -> None:
    """No name has a comma in it."""
    if bytes(json).count(b",") >= MOST_NODES:
        raise TooMuchAskedError(f"NodeNames has more than {MOST_NODES} entries")


def reject_large_object(json: msgspec.Raw, place: str) -> None:
    """Of a pod or a node."""
    data = memoryview(json)
    if data.nbytes <= MOST_VALUES:
        return
    if data.nbytes > MOST_OBJECT_BYTES:
        raise TooMuchAskedError(
            f"{place} has {data.nbytes} bytes; expected at most {MOST_OBJECT_BYTES}"
        )
    copy = bytes(data)
    if sum(map(copy.count, _BEFORE_EACH_VALUE)) > MOST_VALUES:
        raise TooMuchAskedError(f"{place} has more than {MOST_VALUES} values in it")


@contextmanager
def _counting_of(field: str) -> Iterator[None]:
    token = _counting.set(_Counting(field))
    try:
        yield
    finally:
        _counting.reset(token)
