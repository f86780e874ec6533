"""Large answers, good and hostile: the event loop goes on while they are read, and their memory is
given back."""

import pytest
from tests.hostile import hostile_server, run_limited, whole

SERIES = (
    b'{"metric":{"instance":"node-%06d.example.internal:9100","device":"eth0","job":"node-exporter",'
    b'"cluster":"production-eu-west-1","namespace":"monitoring","pod":"node-exporter-abcde",'
    b'"service":"node-exporter","endpoint":"metrics"},"value":[1763582820.123,"12345678.901"]}'
)
VECTOR = b'{"status":"success","data":{"resultType":"vector","result":[%b]}}'
METRICS = (
    b'{"metadata":{"name":"node-%06d","labels":{"a":"b"}},"timestamp":"2026-01-01T00:00:00Z",'
    b'"window":"10.045s","usage":{"cpu":"264000001n","memory":"2048Ki"}}'
)
LIST = b'{"kind":"NodeMetricsList","metadata":{},"items":[%b]}'

PROGRAM = """
from concurrent.futures import ThreadPoolExecutor
from lowtide.app.clocks import short_rest
from lowtide.app.garbage import give_back_what_is_free, look_seldom_for_garbage
from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.metrics_api import MetricsApi
from lowtide.readings.access import PrometheusAccess
from lowtide.telemetry.prometheus import Prometheus, PrometheusError

look_seldom_for_garbage()
give_back_what_is_free()
url, what = sys.argv[1:]
pool = ThreadPoolExecutor(1)
kept = []

async def off_thread(work):
    return await asyncio.get_running_loop().run_in_executor(pool, work)

async def series():
    access = PrometheusAccess(addresses=(url,), timeout_seconds=60)
    client = Prometheus(
        access, clock=asyncio.get_running_loop().time, off_thread=off_thread, rest=short_rest
    )
    kept.append(client)
    async with client:
        try:
            return len(await client.query("up"))
        except PrometheusError:
            return 0

async def usage():
    async with Connection(plain_access(url), lambda: 0.0) as connection:
        found = await MetricsApi(connection, off_thread=off_thread, rest=short_rest).node_usage()
        return len(found) if isinstance(found, dict) else 0

async def main():
    loop = asyncio.get_running_loop()
    began_at = last = loop.time()
    longest = 0.0

    def tick():
        nonlocal last, longest
        longest, last = max(longest, loop.time() - last), loop.time()
        loop.call_later(0.005, tick)

    tick()
    before = resident_mib()
    print(await {"series": series, "usage": usage}[what]())
    print(longest / (loop.time() - began_at))
    async with asyncio.timeout(20):  # threads let go of what they did a moment later
        while resident_mib() > before + 60:
            await asyncio.sleep(0)

asyncio.run(main())
pool.shutdown()
"""


@pytest.mark.parametrize(
    ("what", "body", "want"),
    [
        pytest.param(
            "series", VECTOR % b",".join(SERIES % n for n in range(100_000)), 100_000, id="traffic"
        ),
        pytest.param(
            "usage", LIST % b",".join(METRICS % n for n in range(200_000)), 200_000, id="usage"
        ),
        pytest.param("series", VECTOR % (b"1," * (60 << 20) + b"1"), 0, id="no traffic"),
        pytest.param("usage", LIST % (b"1," * (60 << 20) + b"1"), 0, id="no usage"),
        pytest.param("series", b"x" * (100 << 20), 0, id="no JSON"),
    ],
)
async def test_the_loop_goes_on_and_memory_is_given_back(what: str, body: bytes, want: int) -> None:
    async with hostile_server(whole(body)) as url:
        count, longest_share = (await run_limited(PROGRAM, url, what)).split()
    assert int(count) == want
    # Of the time that it took: it may be much where others use the machine, too.
    assert float(longest_share) < 0.5
