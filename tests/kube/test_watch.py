"""A watch against a small real server: what is handed on after cuts, gaps and bad data."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web
from tests.hostile import gzip_bomb, hostile_server
from tests.kube.conftest import Answer, ApiServer, ManualClock, document, redirect, status

from lowtide.kube.connection import Connection
from lowtide.kube.following import Outages, StaleWatches
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.list_pieces import PIECE_BYTES
from lowtide.kube.watch import Event, Watch
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable
from lowtide.objects.kinds import Kind
from lowtide.objects.meta import ObjectMeta


class Thing(msgspec.Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    size: int = 0


THING = Kind("Thing", "things", "/apis/test/v1", Thing)


def thing(name: str, version: int, *, uid: str = "", size: int = 0) -> Thing:
    metadata = ObjectMeta(
        name=name, namespace="ns", uid=uid or f"uid-{name}", resource_version=str(version)
    )
    return Thing(metadata, size)


def listed(version: int, *things: Any) -> Answer:
    items = [msgspec.to_builtins(each) for each in things]
    return document({"metadata": {"resourceVersion": str(version)}, "items": items})


def line(kind: str, found: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": found}) + b"\n"


def bookmark(version: int) -> bytes:
    metadata = {"resourceVersion": str(version), "creationTimestamp": None}
    return line("BOOKMARK", {"kind": "Thing", "metadata": metadata})


def gone_line() -> bytes:
    return line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})


def watched(*pieces: bytes, ends: str = "normally") -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if ends == "never":
            await asyncio.Event().wait()
        if ends == "cut":
            assert request.transport is not None
            # What was written still arrives, the end of the body does not.
            request.transport.close()
        return response

    return answer


OPEN = watched(ends="never")


class Handed:
    """Keeps what a watch hands on, and lets a test wait for so many events."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    async def count(self, count: int) -> list[Event]:
        async with asyncio.timeout(10):
            while len(self.events) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.events


@asynccontextmanager
async def running(watch: Watch[Thing]) -> AsyncIterator[None]:
    task = asyncio.create_task(watch.run())
    try:
        yield
    finally:
        if task.done():
            task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def handed() -> Handed:
    return Handed()


@pytest.fixture
def outages(clock: ManualClock) -> Outages:
    return Outages(clock)


def make_watch(
    connection: Connection,
    handed: Callable[[Event], None],
    clock: ManualClock,
    outages: Outages | None = None,
    **given: Any,
) -> Watch[Thing]:
    following = (outages or Outages(clock)).following(THING)
    given = {"sleep": clock.sleep, **given}
    return Watch(connection, THING, handed, following=following, **given)


@pytest.fixture
def watch(
    connection: Connection, handed: Handed, clock: ManualClock, outages: Outages
) -> Watch[Thing]:
    return make_watch(connection, handed, clock, outages, chance=lambda: 0.5)


async def test_a_list_is_handed_on_and_then_what_changes(
    watch: Watch[Thing], server: ApiServer, handed: Handed
) -> None:
    server.answers = [
        listed(5, thing("a", 3), thing("b", 4)),
        watched(
            line("ADDED", thing("c", 6)),
            line("MODIFIED", thing("a", 7, size=1)),
            line("DELETED", thing("b", 8)),
            ends="never",
        ),
    ]
    async with running(watch):
        events = await handed.count(6)
    assert events == [
        Added(thing("a", 3)),
        Added(thing("b", 4)),
        Listed("Thing"),
        Added(thing("c", 6)),
        Modified(thing("a", 7, size=1)),
        Deleted(thing("b", 8)),
    ]
    assert [(asked.path, asked.query) for asked in server.asked] == [
        ("/apis/test/v1/things", {"resourceVersion": "0"}),
        (
            "/apis/test/v1/things",
            {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": "5",
                "timeoutSeconds": "450",  # 300 + (600 - 300) * 0.5
            },
        ),
    ]


async def test_a_field_selector_goes_with_list_and_watch(
    connection: Connection, server: ApiServer, handed: Handed, clock: ManualClock
) -> None:
    server.answers = [listed(5), OPEN]
    watch = make_watch(connection, handed, clock, field_selector="a.b!=c")
    async with running(watch):
        await server.asked_times(2)
    assert [asked.query["fieldSelector"] for asked in server.asked] == ["a.b!=c", "a.b!=c"]


async def test_an_empty_list_may_be_null(
    watch: Watch[Thing], server: ApiServer, handed: Handed
) -> None:
    server.answers = [document({"metadata": {"resourceVersion": "1"}, "items": None}), OPEN]
    async with running(watch):
        assert await handed.count(1) == [Listed("Thing")]


@pytest.mark.parametrize(
    ("first", "want_version", "want_slept"),
    [
        pytest.param(
            watched(line("ADDED", thing("a", 6))), "6", [], id="resumes at once after a normal end"
        ),
        pytest.param(
            watched(line("ADDED", thing("a", 6)), bookmark(9)),
            "9",
            [],
            id="resumes from a bookmark",
        ),
        pytest.param(
            watched(line("ADDED", thing("a", 6)), b'{"type":"ADDED","obj', ends="cut"),
            "6",
            [0.8],
            id="resumes from the last whole line after a cut in the middle of one",
        ),
        pytest.param(
            watched(line("ADDED", thing("a", 6)), b'{"type":"ADDED","obj'),
            "6",
            [],
            id="drops half a line before a normal end",
        ),
        pytest.param(
            watched(line("ADDED", thing("a", 6)), b"nonsense\n"),
            "6",
            [0.8],
            id="resumes after a line that is no event",
        ),
        pytest.param(
            watched(
                line("ADDED", thing("a", 6)),
                line("ERROR", {"code": 500, "message": "etcd is away"}),
            ),
            "6",
            [0.8],
            id="resumes after an error event",
        ),
    ],
)
async def test_resume(
    watch: Watch[Thing],
    server: ApiServer,
    handed: Handed,
    clock: ManualClock,
    first: Answer,
    want_version: str,
    want_slept: list[float],
) -> None:
    server.answers = [
        listed(5),
        first,
        watched(line("ADDED", thing("b", 10)), ends="never"),
    ]
    async with running(watch):
        events = await handed.count(3)
    assert events == [Listed("Thing"), Added(thing("a", 6)), Added(thing("b", 10))]
    assert server.asked[2].query["resourceVersion"] == want_version
    assert clock.slept == want_slept


async def test_backoff_doubles_to_30_seconds_and_starts_anew_after_news(
    watch: Watch[Thing], server: ApiServer, handed: Handed, clock: ManualClock
) -> None:
    down = status(500, "InternalError", "etcd is away")
    server.answers = [
        *[down] * 7,
        listed(5),
        watched(line("ADDED", thing("a", 6))),
        down,
        watched(line("ADDED", thing("b", 7)), ends="never"),
    ]
    async with running(watch):
        await handed.count(3)
    assert clock.slept == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 0.8]


async def never_answered(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


DOWN = status(500, "InternalError", "etcd is away")


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(
            [listed(5), DOWN, DOWN, DOWN, OPEN],
            id="until the watch is answered, though there is no news",
        ),
        pytest.param([DOWN, DOWN, DOWN, listed(5), never_answered], id="until all is listed"),
    ],
)
async def test_it_is_told_while_nothing_is_heard(
    connection: Connection,
    server: ApiServer,
    handed: Handed,
    clock: ManualClock,
    outages: Outages,
    answers: list[Answer],
) -> None:
    told: list[StaleWatches | None] = []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        told.append(outages.stale_watches())

    watch = make_watch(connection, handed, clock, outages, sleep=sleep, chance=lambda: 0.5)
    server.answers = list(answers)
    began_at = clock.now
    async with running(watch):
        await server.asked_times(len(answers))
        async with asyncio.timeout(10):
            while outages.stale_watches() is not None:
                await asyncio.sleep(0)
                clock.advance(1.0)  # an open watch counts once it stays so
    lost = StaleWatches(began_at, ["things"], "etcd is away (HTTP 500 InternalError)")
    assert told == [None, lost, lost]


async def test_after_an_outage_an_ordinary_end_of_a_watch_is_nothing_to_tell(
    watch: Watch[Thing], server: ApiServer, clock: ManualClock, outages: Outages
) -> None:
    first_is_over = asyncio.Event()

    async def open_for_long(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await first_is_over.wait()
        return response

    server.answers = [listed(5), DOWN, DOWN, DOWN, open_for_long, OPEN]
    async with running(watch), asyncio.timeout(10):
        await server.asked_times(5)
        while outages.stale_watches() is not None:
            await asyncio.sleep(0)
            clock.advance(1.0)
        clock.advance(400)
        first_is_over.set()
        await server.asked_times(6)
        for _ in range(100):  # until it is open, and after
            assert outages.stale_watches() is None
            await asyncio.sleep(0.001)


FORBIDDEN = status(403, "Forbidden", "not for you")


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        pytest.param(
            [DOWN, DOWN, DOWN, *[FORBIDDEN] * 3], None, id="which was never listed, is not lost"
        ),
        pytest.param(
            [listed(5), DOWN, DOWN, *[FORBIDDEN] * 4],
            "not for you (HTTP 403 Forbidden)",
            id="which was listed before, is lost for that reason",
        ),
    ],
)
async def test_a_kind_that_is_forbidden_after_an_outage(
    watch: Watch[Thing],
    server: ApiServer,
    handed: Handed,
    clock: ManualClock,
    outages: Outages,
    answers: list[Answer],
    why: str | None,
) -> None:
    server.answers = [*answers, never_answered]
    async with running(watch):
        await server.asked_times(len(answers) + 1)
    assert isinstance(handed.events[-1], Unavailable)
    found = outages.stale_watches()
    assert (found and found.reason) == why


async def test_answers_that_are_long_in_coming_and_bad_are_asked_for_ever_more_seldom(
    watch: Watch[Thing], server: ApiServer, clock: ManualClock
) -> None:
    async def slowly_down(request: web.Request) -> web.StreamResponse:
        clock.advance(30.0)
        return status(500, "InternalError", "etcd is away")

    server.answers = [listed(5), slowly_down, slowly_down, slowly_down, OPEN]
    async with running(watch):
        await server.asked_times(5)
    assert clock.slept == [0.8, 1.6, 3.2]


async def test_a_watch_that_ends_at_once_does_not_spin(
    watch: Watch[Thing], server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [listed(5), watched(), watched(), OPEN]
    async with running(watch):
        await server.asked_times(4)
    assert clock.slept == [0.8, 1.6]


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(watched(gone_line()), id="lists again after an ERROR event of 410"),
        pytest.param(status(410, "Expired", "too old"), id="lists again after HTTP 410"),
        pytest.param(
            status(504, "Timeout", "Too large resource version: 5, current: 2"),
            id="lists again when the server was set back",
        ),
        pytest.param(
            status(404, "NotFound", "no such path"), id="lists again when it cannot be watched"
        ),
    ],
)
async def test_relist_hands_on_the_difference(
    watch: Watch[Thing], server: ApiServer, handed: Handed, gone: Answer
) -> None:
    server.answers = [
        listed(5, thing("same", 1), thing("changed", 2), thing("removed", 3), thing("replaced", 4)),
        gone,
        listed(
            50,
            thing("same", 1),
            thing("changed", 20, size=9),
            thing("replaced", 40, uid="another"),
            thing("new", 30),
        ),
        OPEN,
    ]
    async with running(watch):
        await server.asked_times(4)
    assert handed.events[5:] == [
        Deleted(thing("removed", 3)),
        Modified(thing("changed", 20, size=9)),
        Deleted(thing("replaced", 4)),
        Added(thing("replaced", 40, uid="another")),
        Added(thing("new", 30)),
    ]
    # The server's cache may be behind what was seen: the second list asks for the newest.
    assert [asked.query.get("resourceVersion") for asked in server.asked] == ["0", "5", None, "50"]


async def test_a_server_that_always_says_gone_is_not_stormed(
    watch: Watch[Thing], server: ApiServer, clock: ManualClock
) -> None:
    gone = status(410, "Expired", "too old")
    server.answers = [listed(5), gone, listed(5), gone, listed(5), gone, listed(5), OPEN]
    async with running(watch):
        await server.asked_times(8)
    assert clock.slept == [0.0, 1.6, 3.2]


async def test_no_version_is_handed_on_twice_and_a_new_uid_is_a_new_object(
    watch: Watch[Thing], server: ApiServer, handed: Handed
) -> None:
    server.answers = [
        listed(5, thing("a", 5)),
        watched(
            line("ADDED", thing("a", 5)),
            line("ADDED", thing("a", 6)),
            line("MODIFIED", thing("b", 7)),
            line("ADDED", thing("b", 8, uid="other")),
            line("DELETED", thing("unknown", 9)),
            line("DELETED", thing("a", 10)),
            ends="never",
        ),
    ]
    async with running(watch):
        events = await handed.count(7)
    assert events[2:] == [
        Modified(thing("a", 6)),
        Added(thing("b", 7)),
        Deleted(thing("b", 7)),
        Added(thing("b", 8, uid="other")),
        Deleted(thing("a", 10)),
    ]


async def test_a_silent_connection_is_dropped_and_resumed(
    connection: Connection, server: ApiServer, handed: Handed, clock: ManualClock
) -> None:
    server.answers = [
        listed(5),
        OPEN,
        watched(line("ADDED", thing("a", 6)), ends="never"),
    ]
    watch = make_watch(connection, handed, clock, watch_seconds=(0, 0), slack_seconds=0.05)
    async with running(watch):
        assert await handed.count(2) == [Listed("Thing"), Added(thing("a", 6))]
    assert server.asked[2].query["resourceVersion"] == "5"


UNKNOWN = status(404, "NotFound", "not for you")


@pytest.mark.parametrize(
    ("rejected", "code", "told", "slept"),
    [
        pytest.param(
            *(FORBIDDEN, 403, "not for you (HTTP 403 Forbidden)"),
            [0.8, 1.6, 3.2, 4.4, 12.8],
            id="says once that a kind is forbidden, when it has been for 10 s",
        ),
        pytest.param(
            *(UNKNOWN, 404, "this API server has no /apis/test/v1/things (HTTP 404)"),
            [0.8, 1.6, 3.2, 6.4, 12.8],
            id="says once that a kind is unknown",
        ),
    ],
)
async def test_unavailable(
    watch: Watch[Thing],
    server: ApiServer,
    handed: Handed,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
    rejected: Answer,
    code: int,
    told: str,
    slept: list[float],
) -> None:
    server.answers = [*[rejected] * 5, listed(5, thing("a", 4)), OPEN]
    with caplog.at_level(logging.WARNING):
        async with running(watch):
            events = await handed.count(3)
    assert events == [
        Unavailable("Thing", code, told),
        Added(thing("a", 4)),
        Listed("Thing"),
    ]
    assert clock.slept == pytest.approx(slept)
    fields = [record.__dict__["lowtide_fields"] for record in caplog.records]
    assert fields == [{"kind": "Thing", "err": told}]


@pytest.mark.parametrize(
    ("answers", "is_handed_after"),
    [
        pytest.param([FORBIDDEN] * 8, 10.0, id="counts once it has lasted 10 s"),
        pytest.param([UNKNOWN], 0.0, id="counts at once where it says that there is no such kind"),
        pytest.param([FORBIDDEN] * 4, None, id="is nothing where a list follows in time"),
        pytest.param(
            [FORBIDDEN, FORBIDDEN, DOWN, FORBIDDEN, FORBIDDEN],
            None,
            id="counts from the last start of the server",
        ),
    ],
)
async def test_a_rejection(
    connection: Connection,
    server: ApiServer,
    clock: ManualClock,
    answers: list[Answer],
    is_handed_after: float | None,
) -> None:
    """A server that has just started knows no permissions yet, and turns must not begin without
    what exists."""
    began_at, handed_after = clock.now, list[float]()

    def note(event: Event) -> None:
        if isinstance(event, Unavailable):
            handed_after.append(clock.now - began_at)

    watch = make_watch(connection, note, clock)
    server.answers = [*answers, listed(5), OPEN]
    async with running(watch):
        await server.asked_times(len(answers) + 2)
    assert handed_after == ([] if is_handed_after is None else [pytest.approx(is_handed_after)])


def broken(name: str, version: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": str(version)},
        "size": "large",
    }


async def test_an_object_that_does_not_decode_is_left_out_and_the_others_go_on(
    watch: Watch[Thing], server: ApiServer, handed: Handed, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [
        listed(5, thing("a", 3), broken("b", 4), thing("c", 5)),
        watched(
            line("MODIFIED", broken("b", 6)),
            line("MODIFIED", broken("a", 7)),
            line("DELETED", broken("a", 8)),
            line("MODIFIED", thing("b", 9)),
            gone_line(),
        ),
        listed(20, thing("b", 9), broken("c", 15)),
        watched(line("ADDED", thing("d", 21)), ends="never"),
    ]
    with caplog.at_level(logging.ERROR):
        async with running(watch):
            events = await handed.count(6)
    assert events == [
        Added(thing("a", 3)),
        Added(thing("c", 5)),
        Listed("Thing"),
        Deleted(thing("a", 3)),
        Added(thing("b", 9)),
        Added(thing("d", 21)),
    ]
    lines = [record.__dict__["lowtide_fields"] for record in caplog.records]
    assert lines == [
        {
            "kind": "Thing",
            "object": f"ns/{name}",
            "err": "Expected `int`, got `str` - at `$.size`",
        }
        for name in ("b", "a", "c")
    ]


def with_nulls(name: str, version: int) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(thing(name, version))
    found["metadata"] |= {"labels": None, "ownerReferences": None}
    return found | {"size": None}


async def test_nulls_mean_that_a_field_is_not_set(
    watch: Watch[Thing], server: ApiServer, handed: Handed, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [
        listed(5, thing("a", 3, size=1), with_nulls("b", 4)),
        watched(
            line("ADDED", with_nulls("c", 6)),
            line("BOOKMARK", {"metadata": {"name": None, "resourceVersion": "7"}}),
            gone_line(),
        ),
        listed(20, thing("a", 3, size=1), with_nulls("b", 8), with_nulls("c", 6)),
        OPEN,
    ]
    async with running(watch):
        await server.asked_times(4)
    assert handed.events == [
        Added(thing("a", 3, size=1)),
        Added(thing("b", 4)),
        Listed("Thing"),
        Added(thing("c", 6)),
        Modified(thing("b", 8)),
    ]
    assert [record for record in caplog.records if record.name == "kube"] == []


NOT_UTF_8 = b'"\xff\xfe"'


def spoilt(name: str, version: int) -> bytes:
    """An object with bytes in it that are no text."""
    found = msgspec.json.encode(thing(name, version))
    return found.replace(b'"uid"', b'"annotations":{"a":' + NOT_UTF_8 + b'},"uid"')


async def test_an_object_with_bytes_that_are_no_text_is_left_out_and_the_others_go_on(
    watch: Watch[Thing], server: ApiServer, handed: Handed, caplog: pytest.LogCaptureFixture
) -> None:
    assert NOT_UTF_8 in spoilt("b", 4)
    items = b",".join([msgspec.json.encode(thing("a", 3)), spoilt("b", 4)])
    body = b'{"metadata":{"resourceVersion":"5"},"items":[' + items + b"]}"
    server.answers = [
        web.Response(body=body),
        watched(
            b'{"type":"MODIFIED","object":' + spoilt("b", 6) + b"}\n",
            line("ADDED", thing("c", 7)),
            ends="never",
        ),
    ]
    with caplog.at_level(logging.ERROR):
        async with running(watch):
            events = await handed.count(3)
    assert events == [Added(thing("a", 3)), Listed("Thing"), Added(thing("c", 7))]
    assert [record.__dict__["lowtide_fields"]["object"] for record in caplog.records] == ["ns/b"]


async def test_a_line_that_is_no_text_is_resumed_after(
    watch: Watch[Thing], server: ApiServer, handed: Handed, clock: ManualClock
) -> None:
    server.answers = [
        listed(5),
        watched(b'{"type":' + NOT_UTF_8 + b',"object":{}}\n'),
        watched(line("ADDED", thing("a", 6)), ends="never"),
    ]
    async with running(watch):
        assert await handed.count(2) == [Listed("Thing"), Added(thing("a", 6))]
    assert clock.slept == [0.8]


async def test_a_list_that_is_no_list_is_tried_again(
    watch: Watch[Thing], server: ApiServer, handed: Handed, clock: ManualClock
) -> None:
    no_text = b'{"metadata":{"resourceVersion":' + NOT_UTF_8 + b"}}"
    server.answers = [
        document(["what"]),
        web.Response(text="<html>"),
        web.Response(body=no_text),
        listed(5),
        OPEN,
    ]
    async with running(watch):
        assert await handed.count(1) == [Listed("Thing")]
    assert clock.slept == [0.8, 1.6, 3.2]


def spelled(version: int, *things: Thing) -> bytes:
    """A list with every object spelled as the API server does."""
    document = {"metadata": {"resourceVersion": str(version)}, "items": things}
    return msgspec.json.encode(document)


def large(name: str) -> Thing:
    """Too large for two of them to be in one piece of a list."""
    found = thing(name, 1)
    metadata = msgspec.structs.replace(found.metadata, annotations={"text": "x" * PIECE_BYTES})
    return msgspec.structs.replace(found, metadata=metadata)


async def test_objects_are_handed_on_while_others_are_still_to_come(
    watch: Watch[Thing], server: ApiServer, handed: Handed
) -> None:
    things = [large(name) for name in "abc"]
    text, rest_is_wanted = spelled(5, *things), asyncio.Event()

    async def slowly(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(text[:-100])
        await rest_is_wanted.wait()
        await response.write(text[-100:])
        return response

    server.answers = [slowly, OPEN]
    async with running(watch):
        assert await handed.count(2) == [Added(each) for each in things[:2]]
        rest_is_wanted.set()
        assert await handed.count(4) == [*(Added(each) for each in things), Listed("Thing")]
        await server.asked_times(2)
    assert server.asked[1].query["resourceVersion"] == "5"


async def test_a_first_list_that_is_cut_is_listed_again_and_the_difference_handed_on(
    watch: Watch[Thing], server: ApiServer, handed: Handed
) -> None:
    first, second, third = (large(name) for name in "abc")
    server.answers = [
        watched(spelled(5, first, second, third)[:-100], ends="cut"),
        listed(9, second, third),
        OPEN,
    ]
    async with running(watch):
        assert await handed.count(5) == [
            Added(first),
            Added(second),
            Deleted(first),
            Added(third),
            Listed("Thing"),
        ]


async def test_an_object_in_a_piece_of_a_list_that_does_not_decode_is_left_out(
    watch: Watch[Thing], server: ApiServer, handed: Handed, caplog: pytest.LogCaptureFixture
) -> None:
    first, bad, last = (large(name) for name in "abc")
    text = spelled(5, first, msgspec.structs.replace(bad, size=404), last)
    server.answers = [watched(text.replace(b":404", b':"no"')), listed(6, first, last), OPEN]
    async with running(watch):
        assert await handed.count(3) == [Added(first), Added(last), Listed("Thing")]
    told = [record.levelno for record in caplog.records if record.name == "kube"]
    assert told == [logging.ERROR]


async def test_what_an_object_has_in_common_with_the_one_before_is_kept_once(
    watch: Watch[Thing], server: ApiServer, handed: Handed
) -> None:
    newer = thing("a", 6)
    server.answers = [
        listed(5, thing("a", 1), thing("b", 2)),
        watched(line("MODIFIED", newer), ends="never"),
    ]
    async with running(watch):
        first, second, _, third = await handed.count(4)
    assert isinstance(first, Added)
    assert isinstance(second, Added)
    assert (second, third) == (Added(thing("b", 2)), Modified(newer))
    namespaces = [each.object.metadata.namespace for each in (second, third)]
    assert all(each is first.object.metadata.namespace for each in namespaces)


async def test_objects_are_told_apart_by_namespace(
    watch: Watch[Thing], server: ApiServer, handed: Handed
) -> None:
    here, there = (
        thing("a", 1),
        msgspec.structs.replace(
            thing("a", 2), metadata=ObjectMeta(name="a", namespace="there", resource_version="2")
        ),
    )
    server.answers = [listed(5, here, there), watched(line("DELETED", there), ends="never")]
    async with running(watch):
        assert await handed.count(4) == [Added(here), Added(there), Listed("Thing"), Deleted(there)]


async def test_a_list_with_many_objects_lets_others_run(
    watch: Watch[Thing], server: ApiServer, handed: Handed
) -> None:
    server.answers = [listed(5, *(thing(f"t{number}", 1) for number in range(2500))), OPEN]
    turns: list[int] = []

    async def take_turns(is_over: Callable[[], bool]) -> None:
        while not is_over():
            turns.append(len(handed.events))
            await asyncio.sleep(0)

    async with running(watch):
        await take_turns(lambda: len(handed.events) >= 2501)
    assert {1000, 2000} <= set(turns)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "kube"]


@pytest.mark.parametrize(
    "comes_back_by",
    [
        pytest.param([watched(line("ADDED", thing("a", 6)), ends="never")], id="news"),
        pytest.param([watched(bookmark(9), ends="never")], id="a bookmark"),
        pytest.param([watched(gone_line()), listed(9), OPEN], id="a list"),
    ],
)
async def test_an_outage_is_told_of_and_so_is_its_end(
    watch: Watch[Thing],
    server: ApiServer,
    handed: Handed,
    caplog: pytest.LogCaptureFixture,
    outages: Outages,
    comes_back_by: list[Answer],
) -> None:
    away = status(503, "Unavailable", "starting")
    server.answers = [listed(5), *[away] * 8, *comes_back_by]
    caplog.set_level(logging.INFO, logger="kube")
    async with running(watch), asyncio.timeout(10):
        while "The cluster answers again" not in told(caplog):
            await asyncio.sleep(0)
        assert outages.stale_watches() is None
    # After 0 s and, as it waits 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30 s in between, after 80.4 s.
    warned = "Cannot follow /apis/test/v1/things, trying again"
    assert told(caplog) == [warned, warned, "The cluster answers again"]


async def test_a_proxy_that_wants_a_login_is_told_of_and_asked_ever_more_seldom(
    watch: Watch[Thing],
    server: ApiServer,
    handed: Handed,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.answers = [redirect, listed(5), *[redirect] * 3, watched(line("ADDED", thing("a", 6)))]
    caplog.set_level(logging.INFO, logger="kube")
    async with running(watch):
        await handed.count(2)
    why = (
        f"{server.url} answered HTTP 302, a redirect to https://login.example: "
        "is there a proxy that wants a login?"
    )
    warned = ("Cannot follow /apis/test/v1/things, trying again", {"err": why})
    fields = [each.__dict__.get("lowtide_fields") for each in caplog.records]
    assert next(zip(told(caplog), fields, strict=True)) == warned
    assert clock.slept[:4] == [0.8, 1.6, 3.2, 6.4]


async def test_cuts_in_a_row_are_told_of_however_long_each_was_in_coming(
    watch: Watch[Thing],
    server: ApiServer,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def cut_late(request: web.Request) -> web.StreamResponse:
        clock.advance(10.0)
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    server.answers = [listed(5), *[cut_late] * 4, OPEN]  # the client itself tries one again
    caplog.set_level(logging.INFO, logger="kube")
    async with running(watch):
        await server.asked_times(6)
    assert told(caplog) == ["Cannot follow /apis/test/v1/things, trying again"]


async def test_a_kind_that_is_rejected_after_an_outage_ends_it(
    watch: Watch[Thing], server: ApiServer, handed: Handed, caplog: pytest.LogCaptureFixture
) -> None:
    rejected = status(403, "Forbidden", "not for you")
    server.answers = [status(503, "Unavailable", "starting"), rejected, listed(5), OPEN]
    caplog.set_level(logging.INFO, logger="kube")
    async with running(watch):
        assert await handed.count(1) == [Listed("Thing")]
    assert told(caplog) == [
        "Cannot follow /apis/test/v1/things, trying again",
        "The cluster answers again",
    ]


def nested(name: str, version: int, depth: int) -> bytes:
    """An object with a field that nobody reads, such as managedFields, and that is so deep."""
    found = msgspec.json.encode(thing(name, version))
    deep = b'{"f:a":' * depth + b"{}" + b"}" * depth
    return found[:-1] + b',"fields":' + deep + b"}"


async def test_an_object_that_is_nested_as_deep_as_the_api_server_allows_is_read(
    watch: Watch[Thing], server: ApiServer, handed: Handed
) -> None:
    body = b'{"metadata":{"resourceVersion":"5"},"items":[' + nested("a", 3, 9_900) + b"]}"
    server.answers = [
        web.Response(body=body),
        watched(
            b'{"type":"ADDED","object":' + nested("b", 6, 9_900) + b"}\n",
            line("ADDED", thing("c", 7)),
            ends="never",
        ),
    ]
    async with running(watch):
        events = await handed.count(4)
    assert events == [
        Added(thing("a", 3)),
        Listed("Thing"),
        Added(thing("b", 6)),
        Added(thing("c", 7)),
    ]


async def test_what_is_nested_deeper_is_tried_again(
    watch: Watch[Thing], server: ApiServer, handed: Handed, clock: ManualClock
) -> None:
    body = b'{"metadata":{"resourceVersion":"5"},"items":[' + nested("a", 3, 100_000) + b"]}"
    server.answers = [
        web.Response(body=body),
        listed(5),
        watched(b'{"type":"ADDED","object":' + nested("b", 6, 100_000) + b"}\n"),
        watched(line("ADDED", thing("a", 6)), ends="never"),
    ]
    async with running(watch):
        assert await handed.count(2) == [Listed("Thing"), Added(thing("a", 6))]
    assert clock.slept == [0.8, 1.6]


async def test_a_list_without_objects_that_never_ends_is_given_up(
    clock: ManualClock, handed: Handed, outages: Outages
) -> None:
    async def never(seconds: float) -> None:
        gave_up.set()
        await asyncio.Event().wait()

    gave_up = asyncio.Event()
    async with (
        hostile_server(gzip_bomb) as url,
        Connection(plain_access(url), clock) as connection,
        running(make_watch(connection, handed, clock, outages, sleep=never)),
    ):
        await gave_up.wait()
    assert outages.never_listed() == {
        "things": f"{url} sent a list of /apis/test/v1/things that has more than 256 MiB, the "
        "limit, in one piece"
    }
    assert connection.intake.rejected == 1
