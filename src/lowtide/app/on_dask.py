"""Runs that do not depend on each other, on a Dask cluster that is there already."""

import asyncio
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lowtide.app.side_by_side import Mapped
from lowtide.scenario.scenario import ScenarioError

_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?(\[[^]]+\]|[^:/\[\]]+):([0-9]{1,5})")
_HIGHEST_PORT = 65535
_RIGHT = "expected tcp://HOST:8786"
_CONNECT_SECONDS = 5
_ANSWER_SECONDS = 10


class SweepError(ScenarioError):
    """The sweep cannot be run; the sentence says why."""


@contextmanager
def on_dask(address: str) -> Iterator[Mapped]:
    """What a worker was at when it was lost is run again by another, and nothing else."""
    try:
        from distributed import Client
    except ImportError:
        raise SweepError(
            "--dask needs Dask's client, which is not installed: pip install 'lowtide[sweep]'"
        ) from None
    _check(address)
    try:
        client: Any = Client(address, timeout=_ANSWER_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ImportError) as error:
        raise _no_scheduler(address, str(error)) from None
    with client:

        def mapped(run_task: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
            futures = client.map(run_task, tasks, pure=False)
            for future in futures:
                yield future.result()

        yield mapped


def _check(address: str) -> None:
    """Before there is a client: one that was not made whole complains when it is cleared away."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found[2]) <= _HIGHEST_PORT:
        raise SweepError(f"--dask {address!r} is not the address of a Dask scheduler; {_RIGHT}")
    try:
        # Dask would try again for as long as it may.
        socket.create_connection((found[1].strip("[]"), int(found[2])), _CONNECT_SECONDS).close()
    except OSError as error:
        raise _no_scheduler(address, error.strerror or str(error)) from None
    try:
        asyncio.run(_greet(address))
    except OSError as error:
        raise _no_scheduler(address, str(error)) from None
    except Exception:
        # What others send is read as sizes of messages, and fails wherever these lead.
        raise _no_scheduler(address, "something else listens there") from None


async def _greet(address: str) -> None:
    from distributed import Security
    from distributed.comm.core import connect

    settings = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
    if address.startswith(("tls:", "wss:")) and settings["ssl_context"] is None:
        raise OSError("Dask's configuration names no certificates for TLS")
    connected = await connect(address, timeout=_ANSWER_SECONDS, **settings)  # type: ignore[no-untyped-call]
    connected.abort()


def _no_scheduler(address: str, why: str) -> SweepError:
    return SweepError(f"no Dask scheduler answers at {address}: {why}; {_RIGHT}")
