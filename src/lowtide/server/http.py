"""The one HTTP(S) server of every mode; app hands it the routes and starts and stops it."""

import errno
import os
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from lowtide.logs import Log

_LOG = Log(__name__)
_STOP_GRACE_SECONDS = 5.0  # kube-scheduler's


class ServerError(Exception):
    """The server cannot start; its text is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files as kube-scheduler's --tls-cert-file and --tls-private-key-file name them."""

    certificate: Path
    private_key: Path


@dataclass(frozen=True, slots=True)
class Address:
    """Where a started server listens."""

    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"{self.scheme}://{_host_and_port(self.host, self.port)}"


class Server:
    """Serves routes on one address, over TLS where files are given.

    Port 0 takes any free port; `address` says which. Whoever may connect may ask everything,
    so it listens on loopback unless told otherwise.
    """

    def __init__(
        self,
        routes: Iterable[web.AbstractRouteDef],
        *,
        port: int,
        bind_address: str = "127.0.0.1",
        tls: TlsFiles | None = None,
    ) -> None:
        self._routes = tuple(routes)
        self._port = port
        self._bind_address = bind_address
        self._tls = tls
        self._runner: web.AppRunner | None = None

    @property
    def address(self) -> Address:
        if self._runner is None or not self._runner.addresses:
            raise ServerError(f"the server on {self._wanted} has no address before it is started")
        host, port = self._runner.addresses[0][:2]
        return Address("https" if self._tls else "http", host, port)

    async def start(self) -> None:
        if not 0 <= self._port <= 65535:
            raise ServerError(f"cannot serve on {self._wanted}: a port is a number from 0 to 65535")
        context = None if self._tls is None else Certificate(self._tls).serving_context()
        application = web.Application()
        application.add_routes(self._routes)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=_STOP_GRACE_SECONDS)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._bind_address, self._port, ssl_context=context).start()
        except OSError as failure:
            await runner.cleanup()
            raise ServerError(self._why_not_bound(failure)) from failure
        self._runner = runner

    async def stop(self) -> None:
        """Takes no new connections, and gives open requests a few seconds to finish."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    @property
    def _wanted(self) -> str:
        return _host_and_port(self._bind_address, self._port)

    def _why_not_bound(self, failure: OSError) -> str:
        if failure.errno == errno.EADDRINUSE:
            return (
                f"cannot serve on {self._wanted}: another process listens there; "
                "choose another port or stop that process"
            )
        if failure.errno == errno.EACCES:
            return (
                f"cannot serve on {self._wanted}: this user may not open port {self._port}; "
                "choose a port above 1023"
            )
        is_lookup = isinstance(failure, socket.gaierror)
        reason = failure.strerror if is_lookup else os.strerror(failure.errno or errno.EINVAL)
        return (
            f"cannot serve on {self._wanted}: {reason}; "
            "the bind address must be an address of this machine, such as 127.0.0.1 or 0.0.0.0"
        )


class Certificate:
    """The certificate of a server, read again when its files change.

    The files are looked at when a client connects: no timer, and never an old certificate
    for a new client. Files that do not fit together (a renewal half done) leave the
    certificate in use as it is.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._stamp: object = None
        self._current: ssl.SSLContext | None = None

    def serving_context(self) -> ssl.SSLContext:
        """The context to listen with; each handshake on it gets the newest certificate."""
        self._stamp = self._read_stamp()
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
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._current = self._load()
        except ServerError as failure:
            _LOG.warning("Keeping the certificate in use", err=failure)
        else:
            _LOG.info("Reloaded the certificate", file=str(self._files.certificate))

    def _read_stamp(self) -> object:
        return _stamp_of(self._files.certificate), _stamp_of(self._files.private_key)

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
        return context


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
