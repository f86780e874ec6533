"""The Authorization header and TLS context to present, kept up to date while the process runs.

Asked by connection before each request, and told by it when the server answered 401."""

import asyncio
import base64
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lowtide.kube.errors import CredentialsError
from lowtide.kube.exec_plugin import ExecCredential, run_exec_plugin
from lowtide.kube.kubeconfig import Access, Pem
from lowtide.logs import Log
from lowtide.pem_files import load_pair
from lowtide.secret_files import TOKEN, read_secret, reason_of

CHECK_EVERY_SECONDS = 60.0
RENEW_BEFORE_EXPIRY_SECONDS = 60.0
# A server that rejects every credential must not make us start the exec plugin for each request.
EXEC_AGAIN_AFTER_SECONDS = 5.0

log = Log("kube")


@dataclass(frozen=True, slots=True, eq=False)
class Presented:
    """What one request shows to the server; a new object whenever anything in it changed."""

    authorization: str | None
    tls: ssl.SSLContext | None


class Credentials:
    def __init__(
        self, access: Access, clock: Callable[[], float], environment: Mapping[str, str]
    ) -> None:
        self._access = access
        self._clock = clock
        self._environment = environment
        self._lock = asyncio.Lock()
        self._presented: Presented | None = None
        self._checked_at = 0.0
        self._check_at = 0.0
        self._token_stamp: _Stamp | None = None
        self._file_token: str | None = None
        self._exec: ExecCredential | None = None
        self._exec_at = 0.0
        self._exec_tried_at = 0.0
        self._exec_retry_at = 0.0
        self._tls: ssl.SSLContext | None = None
        self._tls_parts: tuple[object, ...] | None = None

    async def current(self) -> Presented:
        if self._presented is not None and not self._is_due():
            return self._presented
        async with self._lock:
            if self._presented is None or self._is_due():
                await self._refresh(rejected=False)
            assert self._presented is not None
            return self._presented

    def _is_due(self) -> bool:
        """Also when the clock was set back, because then it is not known how long it has been."""
        return not self._checked_at <= self._clock() < self._check_at

    async def renew(self, rejected: Presented) -> bool:
        """After a 401: reads everything again; tells whether there is something new to present."""
        async with self._lock:
            if self._presented is rejected:
                await self._refresh(rejected=True)
            return self._presented is not rejected

    async def _refresh(self, *, rejected: bool) -> None:
        now = self._clock()
        self._read_token_file(rejected=rejected)
        await self._run_exec(now, rejected=rejected)
        tls = self._tls_context()
        authorization = self._authorization()
        shown = self._presented
        if shown is None or shown.authorization != authorization or shown.tls is not tls:
            self._presented = Presented(authorization, tls)
        self._checked_at, self._check_at = now, now + CHECK_EVERY_SECONDS
        if self._exec is not None and self._exec.expires_at is not None:
            renew_at = max(self._renew_at(self._exec.expires_at), self._exec_retry_at, now)
            self._check_at = min(self._check_at, renew_at)

    def _read_token_file(self, *, rejected: bool) -> None:
        path = self._access.user.token_file
        if path is None:
            return
        try:
            stamp = _stamp(path)
            if stamp == self._token_stamp and not rejected:
                return
            self._file_token = read_secret(path, "token", TOKEN)
            self._token_stamp = stamp
        except (OSError, ValueError) as error:
            problem = f"The token file {path} cannot be used: {reason_of(error)}"
            if self._file_token is None:
                raise CredentialsError(problem) from None
            log.warning(f"{problem}; the token read before is used")

    def _renew_at(self, expires_at: float) -> float:
        """A minute ahead, but for credentials that live shortly not before four fifths of it."""
        life_seconds = max(expires_at - self._exec_at, 0.0)
        return expires_at - min(RENEW_BEFORE_EXPIRY_SECONDS, life_seconds / 5)

    async def _run_exec(self, now: float, *, rejected: bool) -> None:
        plugin = self._access.user.exec_plugin
        if plugin is None:
            return
        known = self._exec
        if known is not None:
            is_due = known.expires_at is not None and now >= self._renew_at(known.expires_at)
            was_just_tried = self._exec_tried_at <= now < self._exec_retry_at
            if was_just_tried or not (is_due or rejected):
                return
        self._exec_tried_at, self._exec_retry_at = now, now + EXEC_AGAIN_AFTER_SECONDS
        try:
            self._exec = await run_exec_plugin(plugin, self._access.cluster, self._environment)
            self._exec_at = now
        except CredentialsError as error:
            if known is None or (known.expires_at is not None and now >= known.expires_at):
                raise
            log.warning(f"{error}; the credential got before is used")

    def _authorization(self) -> str | None:
        user = self._access.user
        token = (self._exec and self._exec.token) or self._file_token or user.token
        if token:
            return f"Bearer {token}"
        if user.username is not None:
            pair = f"{user.username}:{user.password or ''}"
            return f"Basic {base64.b64encode(pair.encode()).decode()}"
        return None

    def _tls_context(self) -> ssl.SSLContext | None:
        cluster, user = self._access.cluster, self._access.user
        if not cluster.server.startswith("https:"):
            return None
        certificate, key = user.client_certificate, user.client_key
        if self._exec is not None and self._exec.certificate is not None:
            certificate, key = Pem(data=self._exec.certificate), Pem(data=self._exec.key)
        try:
            parts = tuple(
                pem if pem is None or pem.file is None else (pem, _stamp(pem.file))
                for pem in (cluster.certificate_authority, certificate, key)
            )
            if self._tls is None or parts != self._tls_parts:
                self._tls = self._new_tls_context(certificate, key)
                self._tls_parts = parts
        except (OSError, ValueError) as error:
            problem = (
                f"The certificates for {cluster.server} cannot be loaded "
                f"({_names(cluster.certificate_authority, certificate, key)}): {error}"
            )
            if self._tls is None:
                raise CredentialsError(problem) from None
            log.warning(f"{problem}; those loaded before are used")
        return self._tls

    def _new_tls_context(self, certificate: Pem | None, key: Pem | None) -> ssl.SSLContext:
        cluster = self._access.cluster
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if not cluster.is_verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif cluster.certificate_authority is not None:
            context.load_verify_locations(cadata=cluster.certificate_authority.read().decode())
        else:
            context.load_default_certs()
        if certificate is not None and key is not None:
            load_pair(context, certificate.read(), key.read())
        return context


_Stamp = tuple[int, int, int]


def _stamp(path: Path) -> _Stamp:
    # Mounted Secrets are symbolic links that are swapped: stat follows them, so the inode changes.
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _names(authority: Pem | None, certificate: Pem | None, key: Pem | None) -> str:
    named = {"CA": authority, "client certificate": certificate, "client key": key}
    return ", ".join(f"{what} from {pem}" for what, pem in named.items() if pem) or "system CAs"
