"""What is shown to Prometheus: the Authorization header and the TLS context, kept up to date.

Asked by the endpoints before each request, so that files that rotate need no restart."""

import base64
import re
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from lowtide.input_limits import read_file
from lowtide.logs import Log
from lowtide.pem_files import load_pair
from lowtide.readings.access import PrometheusAccess
from lowtide.secret_files import PASSWORD, TOKEN, read_secret, reason_of

log = Log("telemetry")

HIDDEN: Final = "[hidden]"
LONGEST_QUOTE: Final = 200
_LONGEST_READ: Final = 64 * 1024  # to quote from: a server may send any length

_SECRET_NAME: Final = re.compile(
    "auth|token|key|secret|pass|cookie|credential|session|signature", re.IGNORECASE
)
_Stamp = tuple[int, int, int]


class CredentialsError(Exception):
    """A file cannot be used, and there is nothing from before to use instead."""


class Credentials:
    def __init__(self, access: PrometheusAccess) -> None:
        self._access = access
        self._token = _SecretFile(access.bearer_token_file, "bearer token", TOKEN)
        self._password = _SecretFile(access.password_file, "password", PASSWORD)
        self._tls: ssl.SSLContext | None = None
        self._tls_stamps: tuple[_Stamp, ...] | None = None
        self._tls_complaint = _Complaint()

    def authorization(self, *, is_rejected: bool = False) -> str | None:
        """The header's value; after a 401 the files are read again even if they look the same."""
        access = self._access
        if access.bearer_token_file:
            return f"Bearer {self._token.read(is_rejected=is_rejected)}"
        if access.username:
            password = self._password.read(is_rejected=is_rejected) if access.password_file else ""
            return basic_authorization(access.username, password)
        return None

    def tls(self) -> ssl.SSLContext:
        """A new object when a file changed, so that connections are made anew with it."""
        access = self._access
        files = [file for file in (access.ca_file, access.cert_file, access.key_file) if file]
        try:
            stamps = tuple(_stamp(Path(file)) for file in files)
            if self._tls is None or stamps != self._tls_stamps:
                self._tls = self._new_tls_context()
                self._tls_stamps = stamps
            self._tls_complaint.withdraw()
        except (OSError, ValueError) as error:  # of OSError those of ssl are a kind
            problem = f"the TLS files {', '.join(files)} cannot be used: {_reason(error)}"
            if self._tls is None:
                raise CredentialsError(problem) from None
            self._tls_complaint.tell(f"{problem}; those loaded before are used")
        return self._tls

    def _new_tls_context(self) -> ssl.SSLContext:
        access = self._access
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if access.insecure_skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif access.ca_file:
            context.load_verify_locations(cadata=_pem(access.ca_file).decode())
        else:
            context.load_default_certs()
        if access.cert_file:
            load_pair(context, _pem(access.cert_file), _pem(access.key_file or access.cert_file))
        return context


def _pem(file: str) -> bytes:
    return read_file(Path(file))


class _SecretFile:
    """A file with one line, read again when it changes; what was read before outlives it."""

    def __init__(self, file: str, what: str, form: re.Pattern[str]) -> None:
        self._path = Path(file)
        self._what = what
        self._form = form
        self._stamp: _Stamp | None = None
        self._text: str | None = None
        self._complaint = _Complaint()

    def read(self, *, is_rejected: bool) -> str:
        try:
            stamp = _stamp(self._path)
            if self._text is None or is_rejected or stamp != self._stamp:
                self._text = read_secret(self._path, self._what, self._form)
                self._stamp = stamp
            self._complaint.withdraw()
        except (OSError, ValueError) as error:
            problem = f"the {self._what} file {self._path} cannot be used: {_reason(error)}"
            if self._text is None:
                raise CredentialsError(problem) from None
            self._complaint.tell(f"{problem}; the {self._what} read before is used")
        return self._text


class _Complaint:
    """Told once, until it is another one."""

    def __init__(self) -> None:
        self._told = ""

    def tell(self, problem: str) -> None:
        if problem != self._told:
            log.warning("Credentials for Prometheus cannot be renewed", err=problem)
            self._told = problem

    def withdraw(self) -> None:
        self._told = ""


def basic_authorization(username: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"


def quoter(sent: Iterable[tuple[str, str]]) -> Callable[[str], str]:
    """Quotes the words of a server that was sent these headers and parameters, which it may
    repeat: on one line, not too long, and without any of them that are secret."""
    secrets = sorted(set(_secrets(sent)), key=len, reverse=True)

    def quote(text: str) -> str:
        text = text[:_LONGEST_READ]
        for secret in secrets:
            text = text.replace(secret, HIDDEN)
        words = " ".join(text.split())
        return words if len(words) <= LONGEST_QUOTE else words[:LONGEST_QUOTE] + "…"

    return quote


def _secrets(sent: Iterable[tuple[str, str]]) -> Iterable[str]:
    for name, value in sent:
        if not value or _SECRET_NAME.search(name) is None:
            continue
        yield value
        scheme, _, credential = value.partition(" ")
        if credential:
            yield credential
        if scheme == "Basic":
            yield from _pair(credential)


def _pair(credential: str) -> Iterable[str]:
    try:
        pair = base64.b64decode(credential).decode()
    except ValueError:  # a header of the user's own
        return
    password = pair.partition(":")[2]
    if password:
        yield from (pair, password)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return reason_of(error)


def _stamp(path: Path) -> _Stamp:
    # Mounted Secrets are symbolic links that are swapped: stat follows them, so the inode changes.
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino
