"""How a command runs what waits for others: on a fast event loop, until it is told to stop."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Ctrl-C and Kubernetes' SIGTERM call it, from now on, while this loop runs."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


def compare_on_signal(compare: Callable[[], None]) -> None:
    """SIGUSR2 calls it, as it makes kube-scheduler compare its cache."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, compare)
