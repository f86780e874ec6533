import asyncio
from typing import Any

import pytest

from lowtide.cli.running import tell_unhandled

CLOSED = "unable to perform operation on <TCPTransport closed=True>; the handler is closed"


@pytest.mark.parametrize(
    ("error", "is_told"),
    [
        pytest.param(RuntimeError(CLOSED), False, id="not of a connection that we closed"),
        pytest.param(RuntimeError("else"), True, id="of anything else"),
    ],
)
async def test_it_tells(error: Exception, is_told: bool, caplog: pytest.LogCaptureFixture) -> None:
    context: dict[str, Any] = {"message": "Fatal error on SSL protocol", "exception": error}
    tell_unhandled(asyncio.get_running_loop(), context)
    assert bool(caplog.records) is is_told
