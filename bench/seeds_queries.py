"""How many pods the seeds' plugin could place, by what Prometheus answers of its queries: one for
each node that is scored, for each pod. A stand-in asks as it does; nothing else of it is run. The
plugin itself, built once and given turns beside it, was as fast: it does nothing but wait for them.
`traffic` compares with that, on the same machine in the same run.
"""

import asyncio
import time
from dataclasses import dataclass

import aiohttp

from drain import NONE
from model_exporter import DEVICE
from workloads import node_name

# Of 5000 nodes, kube-scheduler scores a tenth for each pod, so many at once.
SCORED_SHARE = 0.1
AT_ONCE = 16
PODS = 4
QUERY = 'sum_over_time(node_network_receive_bytes_total{{node="{}",device="{}"}}[{}])'


@dataclass(frozen=True, slots=True)
class SeedsResult:
    """Nobody is scheduled: `pods_per_second` is what the answers would be enough for."""

    workload: str
    nodes: int
    pods: int
    scheduler: str
    round: int
    pods_per_second: float
    queries_per_second: float


def ask_like_the_seeds(url: str, nodes: int, window: str, number: int) -> SeedsResult:
    queries = [
        QUERY.format(node_name(each), DEVICE, window) for each in range(int(nodes * SCORED_SHARE))
    ]
    seconds = asyncio.run(_asked(f"{url}/api/v1/query", PODS * queries))
    return SeedsResult(
        workload="traffic-queries",
        nodes=nodes,
        pods=PODS,
        scheduler=NONE,
        round=number,
        pods_per_second=PODS / seconds,
        queries_per_second=PODS * len(queries) / seconds,
    )


async def _asked(address: str, queries: list[str]) -> float:
    """The seconds until all were answered."""
    left = iter(queries)

    async def ask_some(session: aiohttp.ClientSession) -> None:
        for query in left:
            async with session.post(address, data={"query": query}) as response:
                found = await response.json()
                if len(found["data"]["result"]) != 1:
                    raise RuntimeError(f"Prometheus has no value for {query}: {found}")

    async with aiohttp.ClientSession() as session:
        began_at = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(ask_some(session))
        return time.monotonic() - began_at
