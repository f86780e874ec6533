"""A server in Prometheus's place that answers with far too much: it costs one answer, not the
process."""

import pytest
from tests.hostile import (
    Pieces,
    announced,
    endless,
    endless_chunks,
    gzip_bomb,
    hostile_server,
    run_limited,
)

ASK = """
from lowtide.readings.access import PrometheusAccess
from lowtide.telemetry.errors import PrometheusError
from lowtide.telemetry.prometheus import Prometheus

async def ask():
    access = PrometheusAccess(addresses=(sys.argv[1],), timeout_seconds=60)
    async with Prometheus(access, clock=lambda: 0.0) as client:
        answers, failures = await client.query_all({str(n): "up" for n in range(6)})
        print(client.rejected)
    print(sorted({str(each) for each in failures.values()}), len(failures))

asyncio.run(ask())
print(peak_mib())
"""


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(gzip_bomb, id="packed"),
        pytest.param(endless, id="without an end"),
        pytest.param(endless_chunks, id="in chunks without an end"),
        pytest.param(announced, id="announced by its length"),
    ],
)
async def test_too_large_an_answer(answer: Pieces) -> None:
    async with hostile_server(answer) as url:
        rejected, said, peak_mib = (await run_limited(ASK, url)).splitlines()
    assert (
        said
        == str(
            [
                f"Prometheus at {url} answered with more than 256 MiB, the limit; "
                "the address should be that of Prometheus, and the query should select fewer series"
            ]
        )
        + " 6"
    )
    assert int(rejected) == 6
    assert float(peak_mib) < 600
