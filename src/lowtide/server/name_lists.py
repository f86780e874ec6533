"""Lists of node names that were read lately, known again by their bytes.

A scheduler asks about the same nodes twice for each pod. To read thousands of names, and to look
each of them up, is most of the work of an answer. The routes of the extender keep one of these."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

# A scheduler asks about one list for a pod or two. A list takes about a kilobyte however short it
# is, and each name some times its bytes: all three are bounded.
MOST_LISTS: Final = 16
MOST_NAMES: Final = 300_000
MOST_BYTES: Final = 16 * 1024 * 1024


class NameLists:
    """The same bytes give the same list, so that what is known of a list can be kept with it."""

    def __init__(
        self,
        read: Callable[[bytes], Sequence[str]],
        *,
        most_lists: int = MOST_LISTS,
        most_names: int = MOST_NAMES,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._read = read
        self._most_lists = most_lists
        self._most_names = most_names
        self._most_bytes = most_bytes
        self._by_json: OrderedDict[bytes, Sequence[str]] = OrderedDict()
        self._names = 0
        self._bytes = 0

    def read_names(self, json: bytes) -> Sequence[str]:
        """Raises what reading them does."""
        names = self._by_json.get(json)
        if names is not None:
            self._by_json.move_to_end(json)
            return names
        names = self._read(json)
        self._by_json[json] = names
        self._names += len(names)
        self._bytes += len(json)
        while self._is_too_much():
            oldest, its_names = self._by_json.popitem(last=False)
            self._names -= len(its_names)
            self._bytes -= len(oldest)
        return names

    def _is_too_much(self) -> bool:
        """The newest stays: it is about to be asked for again."""
        return len(self._by_json) > 1 and (
            len(self._by_json) > self._most_lists
            or self._names > self._most_names
            or self._bytes > self._most_bytes
        )
