"""How a command runs what waits for others: on a fast event loop, until it is told to stop."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from lowtide.logs import Log

log = Log("running")

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.get_loop().set_exception_handler(tell_unhandled)
        return runner.run(work)


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Ctrl-C and Kubernetes' SIGTERM call it, from now on, while this loop runs."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


def compare_on_signal(compare: Callable[[], None]) -> None:
    """SIGUSR2 calls it, as it makes kube-scheduler compare its cache."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, compare)


def tell_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """As the loop does by itself, but for TLS that comes to a connection which we have closed:
    uvloop calls that fatal, and nobody waits for it any more."""
    if str(context.get("exception", "")).endswith("the handler is closed"):
        log.v(4, "A closed connection was written to", err=str(context["message"]).splitlines()[0])
    else:
        loop.default_exception_handler(context)
