"""What OpenSSL reads from files only, certificates and keys, as a file that is on no disk: no
folder has to be writable, and nothing is left behind. Used by `server`, `kube` and `extenders`."""

import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self


class MemoryFile:
    """Until `close`. Where the system has no such files, it is a temporary one for us alone."""

    def __init__(self, content: bytes) -> None:
        self._descriptor, self.path = _file_to_write()
        with os.fdopen(self._descriptor, "wb", closefd=False) as file:
            file.write(content)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)
        if self.path.parent.name != "fd":
            self.path.unlink(missing_ok=True)


def _file_to_write() -> tuple[int, Path]:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("lowtide")
        return descriptor, Path(f"/proc/self/fd/{descriptor}")
    descriptor, name = tempfile.mkstemp(prefix="lowtide-", suffix=".pem")
    return descriptor, Path(name)
