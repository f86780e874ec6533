"""The certificates of an HTTPS server: its own, and the CA of those who may ask.

`http.Server` listens with the context that is made here; `serving` stands before routes that a
client needs a certificate for."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from lowtide.logs import Log
from lowtide.server.errors import ServerError
from lowtide.server.expiry import why_renew

_LOG = Log(__name__)
_RENEW_AHEAD_SECONDS = 7 * 24 * 3600.0
_TOLD_AGAIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files as kube-scheduler's --tls-cert-file and --tls-private-key-file name them."""

    certificate: Path
    private_key: Path


class Certificate:
    """The certificate of a server, and the CA of its clients, read again when their files change.

    The files are looked at when a client connects: no timer, and never an old certificate
    for a new client. Files that do not fit together (a renewal half done) leave what is in
    use as it is. `clock` never jumps; `wall_clock` is for the dates in certificates.
    """

    def __init__(
        self,
        files: TlsFiles,
        client_ca: Path | None = None,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        self._files = files
        self._client_ca = client_ca
        self._clock = clock
        self._wall_clock = wall_clock
        self._reported_at: float | None = None
        self._stamps: dict[Path, object] = {}
        self._current: ssl.SSLContext | None = None

    def serving_context(self) -> ssl.SSLContext:
        """The context to listen with; each handshake on it gets the newest certificates."""
        self._stamps = self._read_stamps()
        context = self._load()
        self._warn_of_expiry(context)
        self._current = context
        context.sni_callback = self._at_handshake
        context.sslobject_class = self._make_connection_class()
        return context

    def _make_connection_class(self) -> type[ssl.SSLObject]:
        tell = self._log_rejection

        class TellingConnection(ssl.SSLObject):
            """Loops close a connection whose handshake fails, and say nothing."""

            def do_handshake(self) -> None:
                try:
                    super().do_handshake()
                except ssl.SSLCertVerificationError as failure:
                    tell(failure.verify_message)
                    raise

        return TellingConnection

    def _log_rejection(self, reason: str) -> None:
        now = self._clock()
        if self._reported_at is None or now - self._reported_at >= _TOLD_AGAIN_SECONDS:
            self._reported_at = now
            _LOG.warning(
                "The certificate of a client is rejected", err=reason, ca=str(self._client_ca)
            )

    def _at_handshake(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _: ssl.SSLContext
    ) -> None:
        self._reload_if_changed()
        if self._current is not None:
            connection.context = self._current

    def _reload_if_changed(self) -> None:
        before, self._stamps = self._stamps, self._read_stamps()
        changed = {path for path, stamp in self._stamps.items() if stamp != before[path]}
        if not changed:
            return
        try:
            self._current = self._load()
        except ServerError as failure:
            _LOG.warning("Keeping the certificate in use", err=failure)
            return
        if changed - {self._client_ca}:
            _LOG.info("Reloaded the certificate", file=str(self._files.certificate))
            self._warn_of_expiry(self._current)
        if self._client_ca in changed:
            _LOG.info("Reloaded the CA of clients", file=str(self._client_ca))

    def _warn_of_expiry(self, context: ssl.SSLContext) -> None:
        file = self._files.certificate
        reason = why_renew(
            context, file, now=self._wall_clock(), ahead_seconds=_RENEW_AHEAD_SECONDS
        )
        if reason is not None:
            _LOG.warning("The certificate needs to be renewed", file=str(file), err=reason)

    def _read_stamps(self) -> dict[Path, object]:
        paths = (self._files.certificate, self._files.private_key, self._client_ca)
        return {path: _stamp_of(path) for path in paths if path is not None}

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        try:
            # The empty password keeps OpenSSL from asking for one on the terminal.
            context.load_cert_chain(self._files.certificate, self._files.private_key, password="")
        except (OSError, ValueError) as failure:
            raise ServerError(
                f"cannot use certificate {self._files.certificate} with private key "
                f"{self._files.private_key}: {failure}; they must be readable PEM files of "
                "one pair, the key without a password"
            ) from failure
        if self._client_ca is not None:
            _ask_for_client_certificates(context, self._client_ca)
        return context


def has_certificate(request: web.Request) -> bool:
    """One of the CA of clients: with another's the handshake has failed."""
    return bool(request.get_extra_info("peercert"))


def for_certified(handler: Handler) -> Handler:
    """The same for clients that showed a certificate; 401 for others."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if has_certificate(request):
            return await handler(request)
        return web.json_response(
            {
                "error": f"{request.path} is answered only to clients that show a certificate "
                "signed by the CA of --client-ca-file"
            },
            status=401,
        )

    return answer


def _ask_for_client_certificates(context: ssl.SSLContext, client_ca: Path) -> None:
    try:
        context.load_verify_locations(client_ca)
    except (OSError, ValueError) as failure:
        raise ServerError(
            f"cannot use {client_ca} as the CA of clients: {failure}; "
            "it must be a readable PEM file of certificates"
        ) from failure
    context.verify_mode = ssl.CERT_OPTIONAL
    # A resumed session is not verified again: without tickets, and without the sessions of
    # TLS 1.2, a client of a CA that was replaced stays outside.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0


def _stamp_of(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
