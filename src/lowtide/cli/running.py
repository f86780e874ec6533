"""How a command runs what waits for others: on a fast event loop, under a watchdog, until it is
stopped."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from lowtide.app.watchdog import Watchdog
from lowtide.logs import Log

log = Log("running")

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result], watchdog: Watchdog | None = None) -> Result:
    """The watchdog, by default the usual one, watches until the loop is closed."""
    watching = watchdog or Watchdog()
    with watching, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        loop = runner.get_loop()
        loop.set_exception_handler(log_unhandled)
        loop.add_signal_handler(signal.SIGTSTP, watching.stop_process)
        return runner.run(watching.watch(work))


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Ctrl-C and Kubernetes' SIGTERM call it, from now on, while this loop runs."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


def compare_on_signal(compare: Callable[[], None]) -> None:
    """SIGUSR2 calls it, as it makes kube-scheduler compare its cache."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, compare)


def log_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """As the loop does by itself, but for TLS that comes to a connection which we have closed:
    uvloop calls that fatal, and nobody waits for it any more."""
    if str(context.get("exception", "")).endswith("the handler is closed"):
        log.v(4, "A closed connection was written to", err=str(context["message"]).splitlines()[0])
    else:
        loop.default_exception_handler(context)
