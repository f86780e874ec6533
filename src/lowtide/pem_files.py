"""Certificates and keys as files, from which alone the ssl module loads them: kept in memory, so
that no folder has to be writable. `kube`, `extenders` and `server` load theirs so."""

import os
import ssl
import tempfile
from contextlib import closing
from pathlib import Path


class PemFile:
    """One that only this process can read, until `close`."""

    def __init__(self, pem: bytes) -> None:
        self._descriptor, self.path = _file_to_write()
        with os.fdopen(self._descriptor, "wb", closefd=False) as file:
            file.write(pem)

    def close(self) -> None:
        os.close(self._descriptor)
        if self.path.parent.name != "fd":
            self.path.unlink(missing_ok=True)


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    with closing(PemFile(certificate)) as shown, closing(PemFile(key)) as kept:
        # The empty password keeps OpenSSL from asking for one on the terminal.
        context.load_cert_chain(shown.path, kept.path, password="")


def _file_to_write() -> tuple[int, Path]:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("lowtide-pem")
        return descriptor, Path(f"/proc/self/fd/{descriptor}")
    descriptor, name = tempfile.mkstemp(prefix="lowtide-", suffix=".pem")
    return descriptor, Path(name)
