"""The certificates of an HTTPS server: its own, and the CA of those who may ask.

`http.Server` listens with the context that is made here."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from lowtide.logs import Log
from lowtide.server.errors import ServerError

_LOG = Log(__name__)
# The kubelet's probes have no certificate to show.
_FOR_EVERYBODY = frozenset({"/healthz", "/livez", "/readyz"})


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files as kube-scheduler's --tls-cert-file and --tls-private-key-file name them."""

    certificate: Path
    private_key: Path


class Certificate:
    """The certificate of a server, and the CA of its clients, read again when their files change.

    The files are looked at when a client connects: no timer, and never an old certificate
    for a new client. Files that do not fit together (a renewal half done) leave what is in
    use as it is.
    """

    def __init__(self, files: TlsFiles, client_ca: Path | None = None) -> None:
        self._files = files
        self._client_ca = client_ca
        self._stamps: dict[Path, object] = {}
        self._current: ssl.SSLContext | None = None

    def serving_context(self) -> ssl.SSLContext:
        """The context to listen with; each handshake on it gets the newest certificates."""
        self._stamps = self._read_stamps()
        context = self._load()
        self._current = context
        context.sni_callback = self._at_handshake
        return context

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
        if self._client_ca in changed:
            _LOG.info("Reloaded the CA of clients", file=str(self._client_ca))

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


@web.middleware
async def refuse_without_certificate(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers 401 to clients that showed no certificate, but for health.

    One that another CA signed does not get here: its handshake has failed."""
    if request.path in _FOR_EVERYBODY or request.get_extra_info("peercert"):
        return await handler(request)
    return web.json_response(
        {
            "error": f"{request.path} is answered only to clients that show a certificate "
            "signed by the CA of --client-ca-file"
        },
        status=401,
    )


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
