"""One address of Prometheus, asked directly or through the API server's service proxy.

The client keeps one of them per address; what they are answered is read elsewhere."""

import asyncio
import errno
import os
import ssl
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, Protocol

import aiohttp

from lowtide.input_limits import Intake, TooLargeError
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.address import ServiceAddress, UrlAddress
from lowtide.telemetry.errors import AddressFailure, Fault
from lowtide.telemetry.prometheus_access import (
    Credentials,
    CredentialsError,
    basic_authorization,
    quoter,
)
from lowtide.telemetry.prometheus_answers import Answer

AUTHORIZATION: Final = "Authorization"

Quote = Callable[[str], str]

_TOO_LARGE_HINT: Final = (
    "the address should be that of Prometheus, and the query should select fewer series"
)
_CLIENT_CERTIFICATE_HINT: Final = "certFile and keyFile should be a pair that it accepts"
# By the numbers that OpenSSL gives to its reasons.
_CERTIFICATE_HINTS: Final = (
    ((18, 19, 20, 21), "; caFile should name the CA that signed it"),
    ((62, 64), "; the address should be one that the certificate names"),
)


class KubeServiceProxy(Protocol):
    """The API server, which passes requests on to Services."""

    async def get(
        self,
        path: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        timeout_seconds: float,
    ) -> tuple[int, bytes]:
        """Status and body, whatever they are; OSError (TimeoutError too) without an answer."""
        ...


class Endpoint(Protocol):
    @property
    def address(self) -> str:
        """Fit for a log."""
        ...

    async def ask(self, promql: str) -> Answer:
        """AddressFailure when there is no answer, good or bad."""
        ...


class UrlEndpoint:
    """Asked by HTTP; `session` gives the open session, `intake` reads what it is answered."""

    def __init__(
        self,
        address: UrlAddress,
        access: PrometheusAccess,
        *,
        credentials: Credentials,
        session: Callable[[], aiohttp.ClientSession],
        intake: Intake,
    ) -> None:
        self._address = address
        self._access = access
        self._credentials = credentials
        self._session = session
        self._intake = intake
        self._method = "POST"

    @property
    def address(self) -> str:
        return self._address.shown

    async def ask(self, promql: str) -> Answer:
        method = self._method
        answer = await self._ask(method, promql)
        if answer.status == HTTPStatus.METHOD_NOT_ALLOWED and method == "POST":
            # A proxy that lets only reads through.
            self._method = "GET"
            answer = await self._ask("GET", promql)
        return answer

    async def _ask(self, method: str, promql: str) -> Answer:
        shown: str | None = None
        try:
            shown = self._authorization(is_rejected=False)
            answer = await self._send(method, promql, shown)
            if answer.status == HTTPStatus.UNAUTHORIZED:
                before, shown = shown, self._authorization(is_rejected=True)
                if shown != before:
                    answer = await self._send(method, promql, shown)
        except CredentialsError as error:
            raise AddressFailure(
                self.address, f"cannot be asked: {error}", Fault.CREDENTIALS
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._failure(error, self._quoter(shown)) from error
        return answer

    async def _send(self, method: str, promql: str, authorization: str | None) -> Answer:
        try:
            return await self._send_once(method, promql, authorization)
        except aiohttp.ServerDisconnectedError:
            # An idle connection that was closed at this very moment; asking twice does no harm.
            return await self._send_once(method, promql, authorization)

    async def _send_once(self, method: str, promql: str, authorization: str | None) -> Answer:
        url = self._address.query_url
        form = {"query": promql}
        async with self._session().request(
            method,
            url if method == "POST" else url.update_query(form),
            data=form if method == "POST" else None,
            headers=self._headers(authorization),
            ssl=self._credentials.tls() if url.scheme == "https" else True,
            timeout=aiohttp.ClientTimeout(total=self._access.timeout_seconds),
            # Followed, a redirect of a POST loses the query and gives a misleading error.
            allow_redirects=False,
        ) as response:
            return Answer(
                self.address,
                response.status,
                await self._intake.read(response),
                self._quoter(authorization),
                response.headers.get("Location", ""),
            )

    def _authorization(self, *, is_rejected: bool) -> str | None:
        user, password = self._address.user, self._address.password
        if user is not None or password is not None:
            return basic_authorization(user or "", password or "")
        return self._credentials.authorization(is_rejected=is_rejected)

    def _headers(self, authorization: str | None) -> dict[str, str]:
        shown = {} if authorization is None else {AUTHORIZATION: authorization}
        return {**dict(self._access.headers), **shown}

    def _quoter(self, authorization: str | None) -> Quote:
        return quoter(
            [*self._headers(authorization).items(), *self._address.query_url.query.items()]
        )

    def _failure(self, error: Exception, quote: Quote) -> AddressFailure:
        if isinstance(error, TooLargeError):
            text = f"answered with {error}; {_TOO_LARGE_HINT}"
            return AddressFailure(self.address, text, Fault.SERVER)
        tls_error = _tls_error(error)
        if tls_error is not None:
            return AddressFailure(self.address, self._tls_text(tls_error), Fault.TLS)
        if isinstance(error, TimeoutError):
            return _late(self.address, self._access)
        reason = _reason(error, quote)
        if _is_broken_off(error) and self._address.query_url.scheme == "https":
            # Some servers reject a client's certificate, or that there is none, without a word.
            text = f"broke the TLS connection off: {reason}; {_CLIENT_CERTIFICATE_HINT}"
            return AddressFailure(self.address, text, Fault.TLS)
        return AddressFailure(self.address, f"is unreachable: {reason}", Fault.UNREACHABLE)

    def _tls_text(self, error: ssl.SSLError) -> str:
        if isinstance(error, ssl.SSLCertVerificationError):
            authority = self._access.ca_file
            trusted = f"the CA in {authority}" if authority else "the CAs of the system"
            said = error.verify_message.removesuffix(".")
            hint = next(
                (hint for codes, hint in _CERTIFICATE_HINTS if error.verify_code in codes), ""
            )
            return f"has a certificate that is not accepted with {trusted}: {said}{hint}"
        reason = (error.reason or str(error)).replace("_", " ").lower()
        hint = _CLIENT_CERTIFICATE_HINT if "certificate" in reason else "it may be one of http://"
        return f"gives no TLS connection: {reason}; {hint}"


class ServiceEndpoint:
    """Asked through the API server, by GET: that needs only permission to `get services/proxy`."""

    def __init__(
        self, address: ServiceAddress, access: PrometheusAccess, *, proxy: KubeServiceProxy | None
    ) -> None:
        self._address = address
        self._access = access
        self._proxy = proxy

    @property
    def address(self) -> str:
        return self._address.shown

    async def ask(self, promql: str) -> Answer:
        if self._proxy is None:
            raise AddressFailure(
                self.address,
                "cannot be asked without the API server; here it should be an http:// address",
                Fault.ADDRESS,
            )
        headers = {
            name: value
            for name, value in self._access.headers
            if name.lower() != AUTHORIZATION.lower()
        }
        quote = quoter(headers.items())
        try:
            async with asyncio.timeout(self._access.timeout_seconds):
                status, body = await self._proxy.get(
                    self._address.query_path,
                    params={"query": promql},
                    headers=headers,
                    timeout_seconds=self._access.timeout_seconds,
                )
        except TimeoutError as error:
            raise _late(self.address, self._access) from error
        except OSError as error:
            raise AddressFailure(
                self.address, f"is unreachable: {quote(str(error))}", Fault.UNREACHABLE
            ) from error
        return Answer(self.address, status, body, quote)


def _late(address: str, access: PrometheusAccess) -> AddressFailure:
    return AddressFailure(
        address, f"did not answer within {access.timeout_seconds:g} s", Fault.TIMEOUT
    )


def _reason(error: Exception, quote: Quote) -> str:
    """In few words: aiohttp's own text repeats the address, with what is secret in it."""
    cause = getattr(error, "os_error", error)
    number = getattr(cause, "errno", None) or 0
    # The resolver's numbers are negative, and only its own texts explain them.
    known = os.strerror(number) if number > 0 else getattr(cause, "strerror", None)
    said = cause.message if isinstance(cause, aiohttp.ClientResponseError) else str(cause)
    return known or quote(said) or type(cause).__name__


def _is_broken_off(error: Exception) -> bool:
    cause = getattr(error, "os_error", error)
    return (
        isinstance(cause, ConnectionResetError | aiohttp.ServerDisconnectedError)
        or getattr(cause, "errno", None) == errno.ECONNRESET
    )


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """The TLS library's own error, which aiohttp wraps in several ways."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLError) and not isinstance(seen, aiohttp.ClientError):
            return seen
        wrapped = getattr(seen, "certificate_error", None) or getattr(seen, "os_error", None)
        seen = wrapped or seen.__cause__ or seen.__context__
    return None
