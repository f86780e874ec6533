"""How to reach Prometheus: the arguments that users write, and the same as one hashable value.

Plugins have PrometheusArgs in their args; telemetry uses the PrometheusAccess made from them."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from lowtide.config.types import Duration
from lowtide.readings.address import example_for, parse_address, shown_address

DEFAULT_TIMEOUT_SECONDS: Final = 10.0

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL_CHARACTER: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f]")
# The HTTP client sets these itself, to frame the request.
_OWN_HEADERS: Final = frozenset(
    {"connection", "content-length", "content-type", "host", "transfer-encoding"}
)


class PrometheusAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Prometheus's addresses, in order of preference, and the credentials to send.

    A user and password in an address apply to that address. Queries through the API server's proxy
    carry only `headers`; there the kubeconfig authenticates."""

    addresses: tuple[str, ...]
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    insecure_skip_verify: bool = False
    bearer_token_file: str = ""
    username: str = ""
    password_file: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS

    def __repr__(self) -> str:
        return _without_secrets(self)


class BasicAuthArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    username: str = ""
    """The user name, sent with the password."""
    password_file: str = ""
    """A file with the password, read again when it changes."""


class PrometheusArgs(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    addresses: list[str] = []
    """Tried in order until one answers. Leave out `prometheusAddress`, or make it the first of
    them."""
    ca_file: str = ""
    """The CA that signed the server's certificate."""
    cert_file: str = ""
    """The client certificate; needs `keyFile`."""
    key_file: str = ""
    """The key of the client certificate; needs `certFile`."""
    insecure_skip_verify: bool = False
    """Accepts any server certificate; cannot be combined with `caFile`."""
    bearer_token_file: str = ""
    """A file with a token, read again when it changes; cannot be combined with `basicAuth`."""
    basic_auth: BasicAuthArgs | None = None
    """A user name and a password."""
    headers: dict[str, str] = {}
    """Sent with each request, such as `X-Scope-OrgID`."""
    timeout_seconds: Duration = msgspec.field(name="timeout", default=DEFAULT_TIMEOUT_SECONDS)
    """A query that takes longer fails. Bounds: more than 0s."""

    def __repr__(self) -> str:
        return _without_secrets(self)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what type checks cannot find, as (field, text)."""
        yield from self._address_problems()
        yield from self._tls_problems()
        yield from self._credential_problems()
        yield from self._header_problems()
        if self.timeout_seconds <= 0:
            yield "timeout", f"must be longer than 0s, not {self.timeout_seconds:g}s"

    def access(self, address: str) -> PrometheusAccess:
        """The access to all addresses, this one first. Call only if `problems` yields nothing."""
        basic = self.basic_auth or BasicAuthArgs()
        return PrometheusAccess(
            addresses=_without_duplicates((address, *self.addresses)),
            ca_file=self.ca_file,
            cert_file=self.cert_file,
            key_file=self.key_file,
            insecure_skip_verify=self.insecure_skip_verify,
            bearer_token_file=self.bearer_token_file,
            username=basic.username,
            password_file=basic.password_file,
            headers=tuple(sorted(self.headers.items())),
            timeout_seconds=self.timeout_seconds,
        )

    def _address_problems(self) -> Iterator[tuple[str, str]]:
        for address in self.addresses:
            try:
                parse_address(address)
            except ValueError:
                given = shown_address(address)
                yield "addresses", f"must look like {example_for(address)}, not {given!r}"

    def _tls_problems(self) -> Iterator[tuple[str, str]]:
        if self.cert_file and not self.key_file:
            yield "certFile", "must be given together with keyFile"
        if self.key_file and not self.cert_file:
            yield "keyFile", "must be given together with certFile"
        if self.insecure_skip_verify and self.ca_file:
            yield "insecureSkipVerify", "must be false with a caFile, which verifies the server"

    def _credential_problems(self) -> Iterator[tuple[str, str]]:
        basic = self.basic_auth
        if basic is not None and not basic.username:
            yield "basicAuth", "must have a username"
        if basic is not None and ":" in basic.username:
            yield "basicAuth", "must have a username without a colon, which would end it"
        if basic is not None and _CONTROL_CHARACTER.search(basic.username):
            yield "basicAuth", "must have a username without line breaks"
        if basic is not None and self.bearer_token_file:
            yield "bearerTokenFile", "must not be combined with basicAuth: only one can be sent"

    def _header_problems(self) -> Iterator[tuple[str, str]]:
        for name, value in self.headers.items():
            if _HEADER_NAME.fullmatch(name) is None:
                yield "headers", f"must have names such as X-Scope-OrgID, not {name!r}"
            elif name.lower() in _OWN_HEADERS:
                yield "headers", f"must not have {name}, which Lowtide sets itself"
            elif name.lower() == "authorization" and (self.bearer_token_file or self.basic_auth):
                yield "headers", f"must not have {name} together with bearerTokenFile or basicAuth"
            elif _CONTROL_CHARACTER.search(value):
                # The value may be a secret, so it is not shown.
                yield "headers", f"must have a value without line breaks for {name}"


def _without_duplicates(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Each address once, in its first spelling. Invalid ones stay: validation reports them."""
    kept: dict[object, str] = {}
    for address in addresses:
        if address.strip():
            kept.setdefault(_parsed(address), address)
    return tuple(kept.values())


def _parsed(address: str) -> object:
    try:
        return parse_address(address)
    except ValueError:
        return address


def _without_secrets(described: PrometheusAccess | PrometheusArgs) -> str:
    """A repr with header names but no header values, because any value may be a secret."""
    shown = msgspec.structs.asdict(described)
    shown["addresses"] = [shown_address(address) for address in described.addresses]
    shown["headers"] = sorted(dict(described.headers))
    fields = ", ".join(f"{name}={value!r}" for name, value in shown.items())
    return f"{type(described).__name__}({fields})"
