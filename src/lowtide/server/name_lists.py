"""Lists of node names that were read lately, known again by their bytes.

A scheduler asks about the same nodes twice for each pod. To read thousands of names, and to look
each of them up, is most of the work of an answer. The routes of the extender keep one of these."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

MOST_BYTES: Final = 4 * 1024 * 1024


class NameLists:
    """The same bytes give the same list, so that what is known of a list can be kept with it."""

    def __init__(
        self, read: Callable[[bytes], Sequence[str]], most_bytes: int = MOST_BYTES
    ) -> None:
        self._read = read
        self._most_bytes = most_bytes
        self._by_json: OrderedDict[bytes, Sequence[str]] = OrderedDict()
        self._bytes = 0

    def of(self, json: bytes) -> Sequence[str]:
        """Raises what reading them does."""
        names = self._by_json.get(json)
        if names is not None:
            self._by_json.move_to_end(json)
            return names
        names = self._read(json)
        self._by_json[json] = names
        self._bytes += len(json)
        while self._bytes > self._most_bytes:
            oldest, _ = self._by_json.popitem(last=False)
            self._bytes -= len(oldest)
        return names
