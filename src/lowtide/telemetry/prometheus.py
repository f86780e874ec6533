"""A client for the one question Lowtide asks Prometheus: an instant query that gives a vector.

Called by the poller; made and closed by app."""

import os
import re
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

import aiohttp
import msgspec
from yarl import URL

from lowtide.logs import Log
from lowtide.readings.series import Series

log = Log("telemetry")

LONGEST_QUOTE: Final = 200
MOST_WARNINGS_REMEMBERED: Final = 100
REDIRECTS: Final = (301, 302, 303, 307, 308)


class PrometheusError(Exception):
    """Why there is no answer, in one sentence."""


class _Row(msgspec.Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _Answer(msgspec.Struct, rename="camel"):
    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    warnings: list[str] | None = None


class Prometheus:
    """Speaks to Prometheus, or to what answers its queries (Thanos, Mimir, VictoriaMetrics).

    The address may lack `http://` and may have a path prefix. The first query opens the
    connections; `close` ends them."""

    def __init__(
        self,
        address: str,
        *,
        timeout_seconds: float = 10.0,
        headers: Mapping[str, str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._url = query_url(address)
        self._timeout_seconds = timeout_seconds
        self._headers = dict(headers or {})
        self._ssl_context = ssl_context
        self._session: aiohttp.ClientSession | None = None
        self._method = "POST"
        self._warnings_seen: set[str] = set()
        self._answers = msgspec.json.Decoder(_Answer)
        self._rows = msgspec.json.Decoder(list[_Row])

    @property
    def address(self) -> str:
        """Where it asks, without any password: fit for a log."""
        shown = self._url.with_user(None).with_query(None)
        return str(shown).removesuffix("/api/v1/query")

    async def query(self, promql: str) -> list[Series]:
        """The vector that this query gives now; PrometheusError when there is none."""
        status, body = await self._ask(self._method, promql)
        if status == HTTPStatus.METHOD_NOT_ALLOWED and self._method == "POST":
            # A proxy that lets only reads through.
            self._method = "GET"
            status, body = await self._ask(self._method, promql)
        return self._series(promql, status, body)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _ask(self, method: str, promql: str) -> tuple[int, bytes]:
        form = {"query": promql}
        try:
            async with self._opened().request(
                method,
                self._url if method == "POST" else self._url.update_query(form),
                data=form if method == "POST" else None,
                # Followed, a redirect of a POST loses the query and gives a misleading error.
                allow_redirects=False,
            ) as response:
                if response.status in REDIRECTS:
                    raise PrometheusError(self._moved(response))
                return response.status, await response.read()
        except TimeoutError as error:
            raise PrometheusError(
                f"Prometheus at {self.address} did not answer within {self._timeout_seconds:g} s"
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            number = getattr(error, "errno", None)
            reason = os.strerror(number) if number else _quote(str(error)) or repr(error)
            raise PrometheusError(
                f"Prometheus at {self.address} is unreachable: {reason}"
            ) from error

    def _moved(self, response: aiohttp.ClientResponse) -> str:
        target = shown_address(response.headers.get("Location", "nowhere")).partition("?")[0]
        return (
            f"Prometheus at {self.address} answered HTTP {response.status}, a redirect to "
            f"{_quote(target)}; the address should be the one that answers queries itself"
        )

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=self._timeout_seconds),
                connector=aiohttp.TCPConnector(
                    ssl=True if self._ssl_context is None else self._ssl_context
                ),
            )
        return self._session

    def _series(self, promql: str, status: int, body: bytes) -> list[Series]:
        try:
            answer = self._answers.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise PrometheusError(self._not_an_answer(status, body)) from error
        if answer.status != "success":
            raise PrometheusError(
                f"Prometheus at {self.address} refused the query {promql} with HTTP {status}: "
                f"{_quote(f'{answer.error_type}: {answer.error}')}"
            )
        self._warn(answer.warnings or [])
        if answer.data is None or answer.data.result_type != "vector":
            given = "nothing" if answer.data is None else f"a {answer.data.result_type}"
            raise PrometheusError(
                f"Prometheus at {self.address} answered {given} to the query {promql}, "
                "which should give a vector"
            )
        try:
            rows = self._rows.decode(answer.data.result)
            return [Series(row.metric, float(row.value[1]), row.value[0]) for row in rows]
        except ValueError as error:
            raise PrometheusError(
                f"Prometheus at {self.address} answered a vector that cannot be read to the query "
                f"{promql}: {_quote(str(error))}"
            ) from error

    def _not_an_answer(self, status: int, body: bytes) -> str:
        text = body.decode("utf-8", "replace")
        reason = f"{status} {_phrase(status)}".rstrip()
        if text.lstrip().startswith("<"):
            words = _quote(re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", text))
            return (
                f'Prometheus at {self.address} answered HTTP {reason} with HTML ("{words}") '
                "instead of JSON; the address or its path prefix may be that of something else"
            )
        return (
            f'Prometheus at {self.address} answered HTTP {reason} with "{_quote(text)}" '
            "instead of Prometheus's JSON"
        )

    def _warn(self, warnings: list[str]) -> None:
        for text in warnings:
            if text in self._warnings_seen:
                continue
            # A text that names a moment or a number is new each time: forget rather than grow.
            if len(self._warnings_seen) >= MOST_WARNINGS_REMEMBERED:
                self._warnings_seen.clear()
            self._warnings_seen.add(text)
            log.warning("Prometheus warns", address=self.address, warning=_quote(text))


def query_url(address: str) -> URL:
    """Where queries go for an address as people write it; PrometheusError if it is none."""
    wanted = "it should look like http://prometheus.example:9090"
    if not address.strip():
        raise PrometheusError(f"the Prometheus address (prometheusAddress) is missing; {wanted}")
    try:
        url = URL(address if "://" in address else f"http://{address}")
    except ValueError as error:
        raise PrometheusError(
            f"the Prometheus address {shown_address(address)!r} is malformed ({error}); {wanted}"
        ) from error
    if url.scheme not in ("http", "https") or not url.host or re.search(r"\s", address):
        raise PrometheusError(
            f"the Prometheus address {shown_address(address)!r} is malformed; {wanted}"
        )
    return (url / "api/v1/query").with_query(url.query)


def shown_address(address: str) -> str:
    """The address without user and password."""
    return re.sub(r"^([^/@]*//)?[^/]*@", r"\1", address)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _quote(text: str) -> str:
    """Another's words, on one line and not too many."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_QUOTE else words[:LONGEST_QUOTE] + "…"
