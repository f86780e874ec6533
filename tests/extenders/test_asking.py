"""Questions of a decision as they reach an extender, and what is made of its answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from aiohttp import web
from tests.hostile import gzip_bomb, hostile_server

from lowtide.config.types import Extender
from lowtide.extenders.asking import Extenders
from lowtide.framework.plugin import BindOutcome, Eviction
from lowtide.objects.pod import Pod
from lowtide.scheduler.extending import (
    Answer,
    AskFilter,
    AskPreemption,
    AskPriorities,
    ExtenderFailed,
    Filtered,
    Preempted,
    Priorities,
    Question,
)
from lowtide.testing import make_pod

POD = make_pod("web")
WHOLE_POD = {"metadata": {"name": "web"}, "spec": {"dnsPolicy": "Default"}}
NAMES = ("one", "two")


class Whole:
    async def pod(self, pod: Pod) -> msgspec.Raw | None:
        if pod.name == "unreadable":
            return None
        return msgspec.Raw(json.dumps({**WHOLE_POD, "metadata": {"name": pod.name}}).encode())

    def node(self, name: str) -> msgspec.Raw | None:
        return msgspec.Raw(json.dumps({"metadata": {"name": name}, "extra": 1}).encode())


class FakeExtender:
    """Answers what it was told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer: Any = {}
        self.status = 200
        self.asked: list[tuple[str, Any]] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append((request.path, await request.json()))
        body = self.answer if isinstance(self.answer, str) else json.dumps(self.answer)
        return web.Response(text=body, status=self.status)


@pytest.fixture
async def fake() -> AsyncIterator[FakeExtender]:
    extender = FakeExtender()
    app = web.Application()
    app.router.add_post("/{verb:.*}", extender.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    extender.url = f"http://127.0.0.1:{runner.addresses[0][1]}/scheduler"
    yield extender
    await runner.cleanup()


def extender_at(url: str, **fields: Any) -> Extender:
    return Extender(
        url_prefix=url + "/",
        filter_verb="filter",
        prioritize_verb="prioritize",
        preempt_verb="preempt",
        bind_verb="bind",
        weight=1,
        **fields,
    )


async def asked(extender: Extender, question: Question) -> Answer:
    async with Extenders((extender,), Whole()) as extenders:
        return await extenders.answer(question)


async def test_a_filter_is_sent_whole_objects(fake: FakeExtender) -> None:
    extender = extender_at(fake.url)
    fake.answer = {
        "Nodes": {"items": [{"metadata": {"name": "two"}, "spec": {}}]},
        "NodeNames": None,
        "FailedNodes": {"one": "too warm"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    assert await asked(extender, AskFilter(extender, POD, NAMES)) == Filtered(
        ("two",), {"one": "too warm"}, {}
    )
    nodes = [{"metadata": {"name": name}, "extra": 1} for name in NAMES]
    assert fake.asked == [
        (
            "/scheduler/filter",
            {"Pod": WHOLE_POD, "Nodes": {"items": nodes, "metadata": {}}, "NodeNames": None},
        )
    ]


async def test_an_extender_that_knows_the_nodes_is_sent_names(fake: FakeExtender) -> None:
    extender = extender_at(fake.url, node_cache_capable=True)
    fake.answer = {"nodenames": ["one"], "failedAndUnresolvableNodes": {"two": "no such rack"}}
    assert await asked(extender, AskFilter(extender, POD, NAMES)) == Filtered(
        ("one",), {}, {"two": "no such rack"}
    )
    assert fake.asked == [
        ("/scheduler/filter", {"Pod": WHOLE_POD, "Nodes": None, "NodeNames": ["one", "two"]})
    ]


async def test_priorities_are_asked_of_all_at_once(fake: FakeExtender) -> None:
    extender, absent = extender_at(fake.url), extender_at("http://127.0.0.1:9")
    fake.answer = [{"Host": "one", "Score": 7}, {"host": "two"}]
    async with Extenders((extender, absent), Whole()) as extenders:
        answer = await extenders.answer(AskPriorities((absent, extender), POD, NAMES))
    assert answer == Priorities(({}, {"one": 7, "two": 0}))


async def test_an_eviction_is_agreed_to_in_part(fake: FakeExtender) -> None:
    extender = extender_at(fake.url, node_cache_capable=True)
    first, second = make_pod("first"), make_pod("second")
    evictions = (Eviction("one", (first,), 1), Eviction("two", (first, second), 0))
    fake.answer = {
        "NodeNameToMetaVictims": {"two": {"Pods": [{"UID": second.uid}], "NumPDBViolations": 2}}
    }
    assert await asked(extender, AskPreemption(extender, POD, evictions)) == Preempted(
        {"two": ((second.uid,), 2)}
    )
    assert fake.asked == [
        (
            "/scheduler/preempt",
            {
                "Pod": WHOLE_POD,
                "NodeNameToVictims": None,
                "NodeNameToMetaVictims": {
                    "one": {"Pods": [{"UID": first.uid}], "NumPDBViolations": 1},
                    "two": {
                        "Pods": [{"UID": first.uid}, {"UID": second.uid}],
                        "NumPDBViolations": 0,
                    },
                },
            },
        )
    ]


async def test_victims_are_sent_whole_to_an_extender_that_knows_no_pods(fake: FakeExtender) -> None:
    extender = extender_at(fake.url)
    await asked(extender, AskPreemption(extender, POD, (Eviction("one", (make_pod("first"),), 0),)))
    (_, sent), *_ = fake.asked
    victim = {**WHOLE_POD, "metadata": {"name": "first"}}
    assert sent["NodeNameToVictims"] == {"one": {"Pods": [victim], "NumPDBViolations": 0}}
    assert sent["NodeNameToMetaVictims"] is None


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        pytest.param({"Error": "no licence"}, 200, "no licence", id="says so itself"),
        pytest.param(
            {}, 500, "failed filter with extender at URL {url}/filter, code 500", id="500"
        ),
        pytest.param(
            {"Nodes": {"items": [{"metadata": {"name": "three"}}]}},
            200,
            'extender "{url}" claims a filtered node "three" which is not found in the input '
            "node list",
            id="names a node that nobody asked about",
        ),
        pytest.param(
            "<html>",
            200,
            "the extender at URL {url}/filter answered what cannot be read: "
            "JSON is malformed: invalid character (byte 0)",
            id="is no extender",
        ),
    ],
)
async def test_an_extender_that_fails(
    fake: FakeExtender, answer: Any, status: int, said: str
) -> None:
    extender = extender_at(fake.url)
    fake.answer, fake.status = answer, status
    assert await asked(extender, AskFilter(extender, POD, NAMES)) == ExtenderFailed(
        said.format(url=fake.url)
    )


async def test_an_extender_that_answers_without_an_end_fails() -> None:
    async with hostile_server(gzip_bomb) as url:
        extender = extender_at(url, http_timeout_seconds=60)
        async with Extenders((extender,), Whole()) as extenders:
            answer = await extenders.answer(AskFilter(extender, POD, NAMES))
            assert extenders.rejected == 1
    assert answer == ExtenderFailed(
        f"the extender at URL {url}/filter answered with more than 256 MiB, the limit; it should "
        "name nodes instead of sending them (nodeCacheCapable)"
    )


async def test_a_pod_that_cannot_be_read_is_a_failure(fake: FakeExtender) -> None:
    extender = extender_at(fake.url)
    assert await asked(extender, AskFilter(extender, make_pod("unreadable"), NAMES)) == (
        ExtenderFailed("the pod default/unreadable cannot be read for the extender")
    )


async def test_an_extender_binds(fake: FakeExtender) -> None:
    extender = extender_at(fake.url)
    async with Extenders((extender,), Whole()) as extenders:
        assert await extenders.bind(POD, "one") == BindOutcome()
        fake.answer = {"Error": "the node has gone"}
        assert await extenders.bind(POD, "one") == BindOutcome(error="the node has gone")
    assert fake.asked[0] == (
        "/scheduler/bind",
        {"PodName": "web", "PodNamespace": "default", "PodUID": POD.uid, "Node": "one"},
    )


async def test_a_binding_in_doubt_is_looked_up(fake: FakeExtender) -> None:
    async def look(pod: Pod, node_name: str, problem: str) -> BindOutcome:
        looked.append((pod.name, node_name, problem))
        return BindOutcome()

    looked: list[tuple[str, str, str]] = []
    fake.answer = {"Error": "too slow"}
    async with Extenders((extender_at(fake.url),), Whole(), look_up=look) as extenders:
        assert await extenders.bind(POD, "one") == BindOutcome()
    assert looked == [("web", "one", "too slow")]


async def test_where_there_is_an_objection_nobody_is_asked_to_bind(fake: FakeExtender) -> None:
    extender = extender_at(fake.url)
    async with Extenders(
        (extender,), Whole(), objection=lambda pod: f"{pod.name} must not be bound"
    ) as extenders:
        outcome = await extenders.bind(POD, "one")
    assert (outcome, fake.asked) == (BindOutcome(error="web must not be bound"), [])


async def test_a_connection_that_is_long_in_coming_about_is_not_used_to_bind() -> None:
    """What was checked before would be true no more."""
    is_left = asyncio.Event()

    async def shake_no_hands(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        is_left.set()

    silent = await asyncio.start_server(shake_no_hands, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    extender = extender_at(url, enable_https=True, http_timeout_seconds=30.0)
    async with (
        silent,
        Extenders((extender,), Whole(), bind_connect_seconds=0.05) as extenders,
        asyncio.timeout(10),
    ):
        outcome = await extenders.bind(POD, "one")
        await is_left.wait()
    url = f"{url}/bind"
    assert outcome == BindOutcome(error=f"the extender at URL {url} is not reached within 0.05 s")


async def test_a_victim_that_has_gone_meanwhile_is_left_out(fake: FakeExtender) -> None:
    extender = extender_at(fake.url)
    victims = (make_pod("first"), make_pod("unreadable"))
    await asked(extender, AskPreemption(extender, POD, (Eviction("one", victims, 0),)))
    (_, sent), *_ = fake.asked
    (sent_victim,) = sent["NodeNameToVictims"]["one"]["Pods"]
    assert sent_victim["metadata"]["name"] == "first"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"ignorable": True}, id="may be ignored"),
        pytest.param(
            {"managed_resources": [{"name": "example.com/gpu"}]}, id="manages what the pod lacks"
        ),
    ],
)
async def test_others_bind_where_the_extender_does_not(
    fake: FakeExtender, fields: dict[str, Any]
) -> None:
    fake.status = 500
    extender = msgspec.convert(
        {"urlPrefix": fake.url, "bindVerb": "bind", **_camel(fields)}, Extender
    )
    async with Extenders((extender,), Whole()) as extenders:
        assert await extenders.bind(POD, "one") is None


def _camel(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "managedResources" if key == "managed_resources" else key: v for key, v in fields.items()
    }
