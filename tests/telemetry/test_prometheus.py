"""The client: several addresses, what makes it ask the next, and what it never tells."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

import pytest
from aiohttp import web
from aiohttp.test_utils import unused_port
from tests.telemetry.conftest import EMPTY, FakePrometheus, Said

from lowtide.readings.access import PrometheusAccess
from lowtide.readings.series import Series
from lowtide.telemetry.errors import Fault
from lowtide.telemetry.prometheus import Prometheus, PrometheusError, query_url, shown_address
from lowtide.testing import ManualClock

Result = TypeVar("Result")

BAD_QUERY = Said('{"status":"error","errorType":"bad_data","error":"parse error"}', 400)
TIMED_OUT = Said('{"status":"error","errorType":"timeout","error":"too slow"}', 503)
AWAY = Said("away", 502)
AWAY_TEXT = 'answered HTTP 502 Bad Gateway with "away" instead of Prometheus\'s JSON'


class Pair:
    """Two addresses, `first` preferred, and a clock that is moved by hand."""

    def __init__(self, first: FakePrometheus, second: FakePrometheus) -> None:
        self.clock = ManualClock()
        self.first = first
        self.second = second
        self.addresses: tuple[str, ...] = ()

    def client(self) -> Prometheus:
        return Prometheus(PrometheusAccess(addresses=self.addresses), clock=self.clock)

    def counts(self) -> tuple[int, int]:
        """How often each was asked since the last time."""
        counts = len(self.first.asked), len(self.second.asked)
        self.first.asked.clear()
        self.second.asked.clear()
        return counts


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def pair(stack: AsyncExitStack) -> Pair:
    made = Pair(FakePrometheus(), FakePrometheus())
    made.addresses = (
        await stack.enter_async_context(made.first.serving()),
        await stack.enter_async_context(made.second.serving()),
    )
    return made


async def failure(prometheus: Prometheus) -> tuple[str, Fault]:
    with pytest.raises(PrometheusError) as caught:
        await prometheus.query("up")
    return str(caught.value), caught.value.fault


async def test_a_vector_and_a_matrix() -> None:
    row = '{"metric":{"node":"a"},%s}'
    data = '{"status":"success","data":{"resultType":"%s","result":[%s]}}'

    def answer(request: web.Request) -> Said:
        if fake.asked[-1][2] == "up":
            return Said(data % ("vector", row % '"value":[100,"1.5"]'))
        return Said(data % ("matrix", row % '"values":[[85,"1"],[100,"1.5"]]'))

    fake = FakePrometheus(answer)
    async with fake.serving() as address:
        access = PrometheusAccess(addresses=(address,))
        async with Prometheus(access, clock=ManualClock()) as prometheus:
            assert await prometheus.query("up") == [Series({"node": "a"}, 1.5, 100.0)]
            assert await prometheus.query_range_vector("up[1m]") == [
                ({"node": "a"}, [(85.0, 1.0), (100.0, 1.5)])
            ]


async def test_an_answer_is_read_off_thread_and_one_that_cannot_be_read_is_the_addresss_fault(
    pair: Pair,
) -> None:
    done: list[str] = []

    async def off_thread(work: Callable[[], Result], /) -> Result:
        try:
            result = work()
        except Exception as error:
            done.append(type(error).__name__)
            raise
        done.append("read")
        return result

    pair.first.answer = Said("<html>Sign in</html>")
    access = PrometheusAccess(addresses=pair.addresses)
    async with Prometheus(access, clock=pair.clock, off_thread=off_thread) as prometheus:
        assert await prometheus.query("up") == []
        assert (done, pair.counts(), prometheus.address) == (
            ["AddressFailure", "read"],
            (1, 1),
            pair.addresses[1],
        )


async def test_one_address_is_asked_each_time_however_often_it_failed() -> None:
    address = f"http://127.0.0.1:{unused_port()}"
    access = PrometheusAccess(addresses=(address,))
    async with Prometheus(access, clock=ManualClock()) as prometheus:
        found = [await failure(prometheus) for _ in range(3)]
    want = f"Prometheus at {address} is unreachable: Connection refused"
    assert found == [(want, Fault.UNREACHABLE)] * 3


async def test_the_first_address_is_preferred(pair: Pair) -> None:
    async with pair.client() as prometheus:
        await prometheus.query("up")
        await prometheus.query("up")
        assert (pair.counts(), prometheus.address) == ((2, 0), pair.addresses[0])


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(AWAY, id="a 502"),
        pytest.param(TIMED_OUT, id="a 503 of Prometheus's own"),
        pytest.param(Said("", 401), id="a 401"),
        pytest.param(Said("", 403), id="a 403"),
        pytest.param(Said("", 307, {"Location": "/"}), id="a redirect"),
        pytest.param(Said("<html>Sign in</html>"), id="HTML"),
        pytest.param(Said('{"hello":"world"}'), id="another's JSON"),
    ],
)
async def test_the_next_address_is_asked_after(pair: Pair, answer: Said) -> None:
    pair.first.answer = answer
    async with pair.client() as prometheus:
        assert await prometheus.query("up") == []
        assert (pair.counts(), prometheus.address) == ((1, 1), pair.addresses[1])


async def test_the_next_address_is_asked_after_a_timeout(pair: Pair, silent_address: str) -> None:
    access = PrometheusAccess(addresses=(silent_address, pair.addresses[1]), timeout_seconds=0.05)
    async with Prometheus(access, clock=pair.clock) as prometheus:
        assert await prometheus.query("up") == []
    assert pair.counts() == (0, 1)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(BAD_QUERY, id="a query that is wrong"),
        pytest.param(
            Said('{"status":"error","errorType":"execution","error":"many"}', 422),
            id="a query that cannot be computed",
        ),
        pytest.param(
            Said('{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}'),
            id="a query that gives no vector",
        ),
    ],
)
async def test_the_next_address_is_not_asked_after(pair: Pair, answer: Said) -> None:
    pair.first.answer = answer
    async with pair.client() as prometheus:
        assert [(await failure(prometheus))[1] for _ in range(2)] == [Fault.QUERY] * 2
    assert pair.counts() == (2, 0)


async def test_a_failing_address_is_left_alone_for_longer_each_time(pair: Pair) -> None:
    pair.first.answer = AWAY
    waited: list[int] = []
    async with pair.client() as prometheus:
        await prometheus.query("up")
        pair.counts()
        for _ in range(8):
            seconds = 0
            while pair.counts()[0] == 0:
                seconds += 1
                pair.clock.advance(1)
                await prometheus.query("up")
            waited.append(seconds)
    assert waited == [1, 2, 4, 8, 16, 32, 60, 60]


async def test_an_address_that_answers_again_is_preferred_again(
    pair: Pair, log_lines: Callable[[], list[str]]
) -> None:
    pair.first.answer = AWAY
    seen = []
    async with pair.client() as prometheus:
        for is_away in (True, False, False, True):
            pair.first.answer = AWAY if is_away else Said()
            await prometheus.query("up")
            seen.append((*pair.counts(), prometheus.address))
            pair.clock.advance(1)
    first, second = pair.addresses
    assert seen == [(1, 1, second), (1, 0, first), (1, 0, first), (1, 1, second)]
    fails = (
        'W "An address of Prometheus fails; the next one is asked" '
        f'err="Prometheus at {first} {AWAY_TEXT}"'.replace('"away"', r"\"away\"")
    )
    again = f'I "An address of Prometheus answers again" address="{first}"'
    assert log_lines() == [fails, again, fails]


async def test_queries_that_fail_together_count_once(pair: Pair) -> None:
    pair.first.answer = AWAY
    async with pair.client() as prometheus:
        await asyncio.gather(*(prometheus.query("up") for _ in range(4)))
        assert pair.counts() == (4, 4)
        pair.clock.advance(1)
        await prometheus.query("up")
        assert pair.counts() == (1, 1)


async def test_when_nobody_answers_every_address_and_reason_is_told(pair: Pair) -> None:
    pair.first.answer, pair.second.answer = AWAY, Said("", 403)
    first, second = pair.addresses
    want = (
        f"no address of Prometheus answers: {first} {AWAY_TEXT}; {second} answered HTTP 403 "
        "Forbidden; it should be given credentials that it accepts"
    )
    async with pair.client() as prometheus:
        assert await failure(prometheus) == (want, Fault.NOT_PROMETHEUS)
        assert pair.counts() == (1, 1)
        # Both are left alone, and the one whose turn comes first is asked all the same.
        assert await failure(prometheus) == (want, Fault.NOT_PROMETHEUS)
        assert pair.counts() == (1, 0)
        # The first one's turn is now two seconds away, the second one's still one.
        assert await failure(prometheus) == (want, Fault.NOT_PROMETHEUS)
        assert pair.counts() == (0, 1)
        pair.second.answer = Said()
        pair.clock.advance(1.5)
        assert await failure(prometheus) == (want, Fault.NOT_PROMETHEUS)
        assert pair.counts() == (1, 0)
        assert await prometheus.query("up") == []
        assert pair.counts() == (0, 1)


async def test_the_last_to_be_asked_is_one_that_is_left_alone(pair: Pair) -> None:
    pair.first.answer = AWAY
    async with pair.client() as prometheus:
        await prometheus.query("up")
        pair.counts()
        pair.first.answer, pair.second.answer = Said(), AWAY
        assert await prometheus.query("up") == []
    assert pair.counts() == (1, 1)


async def test_a_service_behind_the_api_server_is_one_address_among_others(pair: Pair) -> None:
    class FakeProxy:
        async def get(
            self,
            path: str,
            *,
            params: Mapping[str, str],
            headers: Mapping[str, str],
            timeout_seconds: float,
        ) -> tuple[int, bytes]:
            return 200, EMPTY.encode()

    service = "kube-service://monitoring/prometheus:9090"
    pair.first.answer = AWAY
    access = PrometheusAccess(addresses=(pair.addresses[0], service))
    async with Prometheus(access, clock=pair.clock, proxy=FakeProxy()) as prometheus:
        assert (await prometheus.query("up"), prometheus.address) == ([], service)


async def test_a_service_without_an_api_server() -> None:
    service = "kube-service://monitoring/prometheus:9090"
    access = PrometheusAccess(addresses=(service,))
    async with Prometheus(access, clock=ManualClock()) as prometheus:
        assert await failure(prometheus) == (
            f"Prometheus at {service} cannot be asked without the API server; "
            "here it should be an http:// address",
            Fault.ADDRESS,
        )


# Secrets.


def repeat(request: web.Request) -> Said:
    """What a talkative server says to those it does not let in."""
    return Said(f"you sent {secrets_of(request)}", 401)


def warn(request: web.Request) -> Said:
    return Said(EMPTY.replace("{", f'{{"warnings":["you sent {secrets_of(request)}"],', 1))


def secrets_of(request: web.Request) -> str:
    sent = request.headers
    return f"{sent.get('Authorization')} and {sent.get('X-Api-Key')} or hush-hush"


@pytest.mark.parametrize("answer", [repeat, warn], ids=["in its rejection", "in its warning"])
@pytest.mark.parametrize(
    ("user", "settings"),
    [
        pytest.param("", {"bearer_token_file": "secret-file"}, id="tells no token"),
        pytest.param(
            "", {"username": "tide", "password_file": "secret-file"}, id="tells no password"
        ),
        pytest.param("tide:hush-hush@", {}, id="tells no password of an address"),
        pytest.param("", {"headers": (("X-Api-Key", "hush-hush"),)}, id="tells no key in a header"),
    ],
)
async def test_what_a_server_repeats_is_hidden(
    tmp_path: Path,
    log_lines: Callable[[], list[str]],
    user: str,
    settings: dict[str, object],
    answer: Callable[[web.Request], Said],
) -> None:
    (tmp_path / "secret-file").write_text("hush-hush")
    given = {
        name: str(tmp_path / "secret-file") if value == "secret-file" else value
        for name, value in settings.items()
    }
    fake = FakePrometheus(answer)
    async with fake.serving() as address:
        written = (address.replace("//", f"//{user}"),) * 2
        access = PrometheusAccess(addresses=written, **given)  # type: ignore[arg-type]
        async with Prometheus(access, clock=ManualClock()) as prometheus:
            if answer is repeat:
                told = (await failure(prometheus))[0]
            else:
                await prometheus.query("up")
                told = log_lines()[0]
            texts = [told, *log_lines(), repr(prometheus), prometheus.address, repr(access)]
    assert "[hidden]" in told
    # base64 of "tide:hush-hush"
    assert [text for text in texts if "hush-hush" in text or "dGlkZTpodXNoLWh1c2g=" in text] == []
    shown = {fake.header("Authorization")[0], fake.header("X-Api-Key")[0]}
    assert shown & {"Bearer hush-hush", "Basic dGlkZTpodXNoLWh1c2g=", "hush-hush"}


# What else is asked of this module.


@pytest.mark.parametrize(
    ("address", "want"),
    [
        pytest.param("a:1/p", "http://a:1/p/api/v1/query", id="of a URL"),
        pytest.param(
            "kube-service://n/s:1",
            "/api/v1/namespaces/n/services/s:1/proxy/api/v1/query",
            id="of a Service",
        ),
    ],
)
def test_where_queries_go(address: str, want: str) -> None:
    assert str(query_url(address)) == want


@pytest.mark.parametrize(
    ("address", "want"),
    [
        pytest.param(
            "",
            "the Prometheus address (prometheusAddress) is missing; "
            "it should look like http://prometheus.example:9090",
            id="rejects an empty address",
        ),
        pytest.param(
            "http://u:secret@x:99999",
            "the Prometheus address 'http://x:99999' is malformed; "
            "it should look like http://prometheus.example:9090",
            id="rejects a malformed one and hides the password",
        ),
    ],
)
def test_malformed_addresses(address: str, want: str) -> None:
    addresses = (address,) if address else ()
    for rejected in (
        lambda: query_url(address),
        lambda: Prometheus(PrometheusAccess(addresses=addresses), clock=ManualClock()),
    ):
        with pytest.raises(PrometheusError) as caught:
            rejected()
        assert (str(caught.value), caught.value.fault) == (want, Fault.ADDRESS)
    assert "secret" not in shown_address(address)
