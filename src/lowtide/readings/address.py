"""Parses a Prometheus address: a URL, or a Service behind the API server's proxy.

Used to validate what users write, and by telemetry to send queries."""

import re
from dataclasses import dataclass, field
from typing import Final

from yarl import URL

QUERY_PATH: Final = "/api/v1/query"

_SERVICE_SCHEME: Final = "kube-service://"
_URL_EXAMPLE: Final = "http://prometheus.example:9090"
_SERVICE_EXAMPLE: Final = "kube-service://monitoring/prometheus:9090"
_LONGEST_LABEL: Final = 63
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SERVICE: Final = re.compile(
    rf"{_SERVICE_SCHEME}(?P<namespace>{_LABEL})"
    rf"/(?P<service>(?:https?:)?{_LABEL}:{_LABEL})"  # a port has a number or a name
    r"(?P<prefix>(?:/[A-Za-z0-9._~%-]+)*)/?"
)
# Up to the last @, because the password in a malformed address may contain any character.
_USER: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", re.DOTALL)


@dataclass(frozen=True, slots=True)
class UrlAddress:
    """A Prometheus that is queried directly. `query_url` has no user and no password."""

    query_url: URL
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """The address for logs, without parameters, which may contain secrets."""
        return str(self.query_url.with_query(None)).removesuffix(QUERY_PATH)


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """A Prometheus that is queried through the API server. `service` is in the form that the proxy
    expects, such as `https:prometheus:9090`."""

    namespace: str
    service: str
    prefix: str

    @property
    def shown(self) -> str:
        return f"{_SERVICE_SCHEME}{self.namespace}/{self.service}{self.prefix}"

    @property
    def query_path(self) -> str:
        """The path of the query on the API server."""
        proxy = f"/api/v1/namespaces/{self.namespace}/services/{self.service}/proxy"
        return f"{proxy}{self.prefix}{QUERY_PATH}"


def parse_address(address: str) -> UrlAddress | ServiceAddress:
    """Parse an address as users write it, also without `http://`. Raises ValueError."""
    if not address.strip():
        raise ValueError(
            "the Prometheus address (prometheusAddress) is missing; "
            f"it should look like {_URL_EXAMPLE}"
        )
    parsed = _parse(address)
    if parsed is None:
        raise ValueError(
            f"the Prometheus address {shown_address(address)!r} is malformed; "
            f"it should look like {example_for(address)}"
        )
    return parsed


def example_for(address: str) -> str:
    """A valid address of the same form, for error messages."""
    return _SERVICE_EXAMPLE if address.startswith(_SERVICE_SCHEME) else _URL_EXAMPLE


def shown_address(address: str) -> str:
    """The address, valid or not, without user, password and parameters, for logs."""
    return re.split(r"[?#]", _USER.sub(r"\1", address), maxsplit=1)[0]


def _parse(address: str) -> UrlAddress | ServiceAddress | None:
    if address.startswith(_SERVICE_SCHEME):
        found = _SERVICE.fullmatch(address)
        return None if found is None else ServiceAddress(**found.groupdict())
    try:
        # URL's own error is dropped: it may contain a part of the password.
        url = URL(address if "://" in address else f"http://{address}")
    except ValueError:
        return None
    if url.scheme not in ("http", "https") or not _is_host(url) or re.search(r"\s", address):
        return None
    asked = (url.with_user(None) / QUERY_PATH.lstrip("/")).with_query(url.query)
    return UrlAddress(asked, url.user, url.password)


def _is_host(url: URL) -> bool:
    """True if the length of each label is valid; the resolver raises odd errors for others."""
    labels = (url.raw_host or "").removesuffix(".").split(".")
    return all(1 <= len(label) <= _LONGEST_LABEL for label in labels)
