"""Keeps up with all objects of one kind: a list, then a watch that is resumed for ever.

Each change is passed to the callback once, as an event of lowtide.objects. app starts one Watch
per kind."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, Generic, TypeVar

import msgspec

from lowtide.input_limits import TooLargeError
from lowtide.kube.backoff import Backoff
from lowtide.kube.connection import Connection
from lowtide.kube.decoding import UNDECODABLE, AnswerDecoder
from lowtide.kube.errors import ApiError, KubeError, Unreadable
from lowtide.kube.following import Following
from lowtide.kube.list_pieces import ListPieces
from lowtide.logs import Log
from lowtide.objects.decoding import ObjectDecoder
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable
from lowtide.objects.kinds import Kind
from lowtide.objects.sharing import share

T = TypeVar("T")

SHORTEST_WATCH_SECONDS = 300
LONGEST_WATCH_SECONDS = 600
SLACK_SECONDS = 30.0
LIST_TIMEOUT_SECONDS = 120.0
# A server that has just started knows no permissions yet, and rejects everybody for some seconds.
RIGHTS_AWAITED_SECONDS = 10.0
# After so many objects, and each piece of a list, other tasks (the lease, bindings) get their turn.
OBJECTS_PER_TURN = 1000
# The server was set back to an older state (a restored etcd): what we saw last is its future.
TOO_LARGE_VERSION = "Too large resource version"

Key = tuple[str, str]
Event = Added | Modified | Deleted | Listed | Unavailable

log = Log("kube")


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _ListOf(msgspec.Struct, Generic[T]):
    metadata: _ListMeta
    items: list[T] | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str | None = None
    resource_version: str = ""


class _AnyObject(msgspec.Struct):
    """What every object has: enough for bookmarks, and to name one that does not decode."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _ErrorStatus(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""


class Watch(Generic[T]):
    def __init__(
        self,
        connection: Connection,
        kind: Kind[T],
        handle: Callable[[Event], None],
        *,
        following: Following,
        field_selector: str | None = None,
        needed_by: Sequence[str] = (),
        keep: Callable[[T, msgspec.Raw], None] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
        slack_seconds: float = SLACK_SECONDS,
        watch_seconds: tuple[int, int] = (SHORTEST_WATCH_SECONDS, LONGEST_WATCH_SECONDS),
    ) -> None:
        self._connection = connection
        self._kind = kind
        self._handle = handle
        self._following = following
        self._field_selector = field_selector
        self._needed_by = needed_by
        self._keep = keep  # is handed every object as it came, too
        self._sleep = sleep
        self._chance = chance
        self._slack_seconds = slack_seconds
        self._watch_seconds = watch_seconds
        self._path = f"{kind.api}/{kind.plural}"
        self._decode_list = msgspec.json.Decoder(_ListOf[kind.type]).decode  # type: ignore[name-defined]
        self._decode_raw_list = AnswerDecoder(_ListOf[msgspec.Raw]).decode
        self._decode_line = AnswerDecoder(_Line).decode
        self._decode_object = ObjectDecoder(kind.type).decode
        self._decode_any = AnswerDecoder(_AnyObject).decode
        self._decode_status = AnswerDecoder(_ErrorStatus).decode
        self._unknown_line = f"The watch of {self._path} sent an unknown line"
        self._known: dict[Key, Any] = {}
        self._last: Any | None = None  # lists are in order, so the next is often much like it
        self._unreadable: set[Key] = set()
        self._version: str | None = None
        self._expired = False
        self._listed = False
        self._unavailable = False
        self._rights_awaited_seconds = RIGHTS_AWAITED_SECONDS  # from now on
        self._backoff = Backoff()

    async def run(self) -> None:
        while True:
            try:
                if self._version is None:
                    await self._list()
                await self._watch()
            except KubeError as error:
                await self._sleep(self._seconds_after(error))

    # Listing

    async def _list(self) -> None:
        # From the server's cache at first; once a version expired, that cache may be behind what
        # was seen, so the list then is the newest there is.
        params = {} if self._expired else {"resourceVersion": "0"}
        answer = self._connection.list_pieces(
            self._path, params=self._selected(params), timeout_seconds=LIST_TIMEOUT_SECONDS
        )
        async with aclosing(answer) as arriving:
            version = await self._take_list(arriving)
        self._version = version
        self._rights_awaited_seconds = RIGHTS_AWAITED_SECONDS
        self._following.answered()
        if self._unavailable:
            log.info(f"{self._kind.plural} can be listed now", kind=self._kind.name)
        if not self._listed or self._unavailable:
            self._listed, self._unavailable = True, False
            self._handle(Listed(self._kind.name))

    async def _take_list(self, arriving: AsyncIterator[bytes]) -> str:
        """Returns its version. Only a complete list shows what is gone, and deletions are passed on
        first. If nothing is known yet, objects are passed on before the list is complete."""
        is_first = not self._known
        version, unreadable, held = "", set[Key](), []
        async for head_version, objects, left_out in self._decoded_pieces(arriving):
            version = version or head_version
            unreadable |= left_out
            for found in objects:
                self._share(found)
            if is_first:
                await self._hand_each(objects)
            else:
                held += objects
            await asyncio.sleep(0)  # other tasks get their turn
        self._unreadable &= unreadable
        if not is_first:
            self._hand_what_is_gone({*map(_key, held), *unreadable})
            await self._hand_each(held)
        return version

    async def _hand_each(self, objects: list[Any]) -> None:
        for count, found in enumerate(objects, start=1):
            self._hand_newer(found)
            if count % OBJECTS_PER_TURN == 0:
                await asyncio.sleep(0)

    async def _decoded_pieces(
        self, arriving: AsyncIterator[bytes]
    ) -> AsyncIterator[tuple[str, list[Any], set[Key]]]:
        pieces = ListPieces()
        async for more in arriving:
            try:
                pieces.add(more)
            except TooLargeError as error:
                self._connection.intake.rejected += 1
                problem = f"{self._connection.server} sent a list of {self._path} that has {error}"
                raise Unreadable(f"{problem}, in one piece") from None
            while (piece := pieces.next_piece()) is not None:
                try:
                    decoded = self._decoded(piece)
                except Unreadable:
                    continue  # cut in the wrong place, or no list at all: the end will tell
                pieces.drop_piece()
                yield decoded
        yield self._decoded(pieces.rest())

    def _hand_what_is_gone(self, listed: set[Key]) -> None:
        for key in [key for key in self._known if key not in listed]:
            self._handle(Deleted(self._known.pop(key)))

    def _decoded(self, body: bytes | bytearray) -> tuple[str, list[Any], set[Key]]:
        try:
            if self._keep is None:
                whole = self._decode_list(body)
                return whole.metadata.resource_version, whole.items or [], set()
        except (msgspec.ValidationError, UnicodeDecodeError, RecursionError):
            pass  # one of the objects: take them one by one
        except msgspec.MsgspecError as error:
            raise Unreadable(f"The list of {self._path} is no JSON: {error}") from None
        raw = self._decode_raw_list(body, f"The answer of {self._path} is no list")
        objects, unreadable = [], set()
        for item in raw.items or []:
            found = self._object(item)
            if found is None:
                unreadable.add(self._key_of_raw(item))
            else:
                objects.append(found)
        return raw.metadata.resource_version, objects, unreadable

    # Watching

    async def _watch(self) -> None:
        version_before = self._version
        shortest, longest = self._watch_seconds
        watch_seconds = shortest + int((longest - shortest) * self._chance())
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version or "",
            "timeoutSeconds": str(watch_seconds),
        }
        stream = self._connection.stream(
            self._path,
            params=self._selected(params),
            silence_seconds=watch_seconds + self._slack_seconds,
            opened=self._following.opened,
        )
        try:
            async with aclosing(stream) as lines:
                async for line in lines:
                    self._take_line(line)
        finally:
            has_stayed_open = self._following.ended()
            is_of_use = has_stayed_open or self._version != version_before
            if is_of_use:
                self._backoff.reset()
        if not is_of_use:  # counts as a failure, so that it cannot spin
            raise KubeError(f"The watch of {self._path} ended at once, without news")

    def _take_line(self, line: bytes) -> None:
        event = self._decode_line(line, self._unknown_line)
        if event.type == "ERROR":
            status = self._decode_status(event.object, self._unknown_line)
            raise ApiError(status.code, status.reason, status.message)
        self._following.answered()
        if event.type == "BOOKMARK":
            self._version = self._decode_any(
                event.object, self._unknown_line
            ).metadata.resource_version
            return
        found = self._object(event.object)
        if found is None:
            self._take_unreadable(event)
            return
        if event.type == "DELETED":
            self._hand_deletion(found)
        else:
            self._share(found)
            self._hand_newer(found)
        self._version = found.metadata.resource_version

    def _take_unreadable(self, event: _Line) -> None:
        """The object known before stays as it was, but its deletion is passed on."""
        version = self._decode_any(event.object, self._unknown_line).metadata.resource_version
        key = self._key_of_raw(event.object)
        if event.type == "DELETED":
            self._unreadable.discard(key)
            if key in self._known:
                self._handle(Deleted(self._known.pop(key)))
        self._version = version

    # Handing on

    def _hand_newer(self, found: Any) -> None:
        key = _key(found)
        known = self._known.get(key)
        self._known[key] = found
        if self._unreadable:
            self._unreadable.discard(key)
        if known is None:
            self._handle(Added(found))
        elif known.metadata.uid != found.metadata.uid:
            self._handle(Deleted(known))
            self._handle(Added(found))
        elif known.metadata.resource_version != found.metadata.resource_version:
            self._handle(Modified(found))

    def _share(self, found: Any) -> None:
        like = self._known.get(_key(found), self._last)
        if like is not None:
            share(found, like)
        self._last = found

    def _hand_deletion(self, found: Any) -> None:
        known = self._known.pop(_key(found), None)
        if known is not None:
            is_same = known.metadata.uid == found.metadata.uid
            self._handle(Deleted(found if is_same else known))

    def _object(self, raw: msgspec.Raw) -> Any | None:
        try:
            found = self._decode_object(raw)
            if self._keep is not None:
                self._keep(found, raw)
            return found
        except UNDECODABLE as error:
            key = self._key_of_raw(raw)
            if key not in self._unreadable:
                self._unreadable.add(key)
                name = "/".join(part for part in key if part)
                log.error(
                    f"A {self._kind.name} is left out because it cannot be read",
                    kind=self._kind.name,
                    object=name,
                    err=str(error),
                )
            return None

    def _key_of_raw(self, raw: msgspec.Raw) -> Key:
        try:
            metadata = self._decode_any(raw, self._unknown_line).metadata
        except Unreadable:
            return "", ""
        return metadata.namespace or "", metadata.name

    # Failures

    def _seconds_after(self, error: KubeError) -> float:
        status = error.status if isinstance(error, ApiError) else 0
        if status == 410 or TOO_LARGE_VERSION in str(error):
            self._list_again()
            is_first = self._backoff.failures == 0
            seconds = self._backoff.next_seconds()
            return 0.0 if is_first else seconds
        if status in (403, 404):
            if self._version is None:
                return self._seconds_after_rejection(status, str(error))
            # The list tells whether the kind is gone; if only watching is forbidden, it is polled.
            self._list_again()
        self._rights_awaited_seconds = RIGHTS_AWAITED_SECONDS
        self._following.failed(error)
        return self._backoff.next_seconds()

    def _seconds_after_rejection(self, status: int, message: str) -> float:
        """Until a kind that is forbidden has been so for a while, it counts as not listed yet:
        to go on without its objects would be wrong if there are some."""
        if status == 404:
            # Of a path that it does not know, a server says no more than "404 page not found".
            message = f"this API server has no {self._path} (HTTP 404)"
        self._following.rejected(message)
        seconds = self._backoff.next_seconds()  # soon at first, then seldom
        if status == 403 and not self._unavailable and self._rights_awaited_seconds > 0:
            seconds = min(seconds, self._rights_awaited_seconds)
            self._rights_awaited_seconds -= seconds
        else:
            self._hand_unavailable(status, message)
        return seconds

    def _list_again(self) -> None:
        log.v(2, f"The watch of {self._path} starts again with a list")
        self._version, self._expired = None, True

    def _hand_unavailable(self, status: int, message: str) -> None:
        if self._unavailable:
            return
        self._unavailable = True
        without = {"pluginsWithoutIt": list(self._needed_by)} if self._needed_by else {}
        log.warning(
            f"{self._kind.plural} cannot be listed, trying again",
            kind=self._kind.name,
            err=message,
            **without,
        )
        self._handle(Unavailable(self._kind.name, status, message))

    def _selected(self, params: dict[str, str]) -> dict[str, str]:
        if self._field_selector is not None:
            params["fieldSelector"] = self._field_selector
        return params


def _key(found: Any) -> Key:
    return found.metadata.namespace or "", found.metadata.name
