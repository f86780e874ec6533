"""A stand-in for the exporters of many nodes: `/metrics/NODE` counts what that node's link carries.

Run as a program by burst. It carries a background, and what each pod that runs on the node carries;
which pods do, it sees by a watch of the API server."""

import argparse
import asyncio
import json
import ssl
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec
from aiohttp import web

DEVICE = "eth0"
AGAIN_SECONDS = 0.5


class Link(msgspec.Struct, frozen=True):
    """Bytes per second, each way."""

    capacity: float
    background: float


class World(msgspec.Struct, frozen=True):
    """What is drawn: the links by node name, and what each pod carries by pod name."""

    links: dict[str, Link]
    pods: dict[str, float]


class Counted(NamedTuple):
    total_bytes: float
    until: float


class Counters:
    """The bytes of each link, which go on between looks."""

    def __init__(self, world: World, clock: Callable[[], float]) -> None:
        self._world = world
        self._clock = clock
        self._node_of: dict[str, str] = {}
        self._carried = {name: link.background for name, link in world.links.items()}
        self._counted = dict.fromkeys(world.links, Counted(0.0, clock()))

    def place(self, pod_name: str, node_name: str) -> None:
        self.remove(pod_name)
        self._node_of[pod_name] = node_name
        self._change(node_name, self._world.pods[pod_name])

    def remove(self, pod_name: str) -> None:
        node_name = self._node_of.pop(pod_name, None)
        if node_name is not None:
            self._change(node_name, -self._world.pods[pod_name])

    def forget_all_but(self, pod_names: AbstractSet[str]) -> None:
        for pod_name in self._node_of.keys() - pod_names:
            self.remove(pod_name)

    def bytes_of(self, node_name: str) -> int:
        now, before = self._clock(), self._counted[node_name]
        total_bytes = before.total_bytes + (now - before.until) * self._carried[node_name]
        self._counted[node_name] = Counted(total_bytes, now)
        return int(total_bytes)

    def _change(self, node_name: str, bytes_per_second: float) -> None:
        self.bytes_of(node_name)
        self._carried[node_name] += bytes_per_second


class Exporter:
    def __init__(self, world: World, counters: Counters) -> None:
        self._world = world
        self._counters = counters

    async def metrics(self, request: web.Request) -> web.Response:
        name = request.match_info["node"]
        link = self._world.links.get(name)
        if link is None:
            raise web.HTTPNotFound(text=f"no node is called {name}")
        total_bytes = self._counters.bytes_of(name)
        lines = [
            "# TYPE node_network_receive_bytes_total counter",
            f'node_network_receive_bytes_total{{device="{DEVICE}"}} {total_bytes}',
            "# TYPE node_network_transmit_bytes_total counter",
            f'node_network_transmit_bytes_total{{device="{DEVICE}"}} {total_bytes}',
            "# TYPE node_network_speed_bytes gauge",
            f'node_network_speed_bytes{{device="{DEVICE}"}} {link.capacity:.0f}',
            "# TYPE node_uname_info gauge",
            f'node_uname_info{{nodename="{name}"}} 1',
        ]
        return web.Response(text="\n".join(lines) + "\n")


class RunningPods:
    """Follows the pods that run, and tells the counters."""

    def __init__(self, url: str, tls: ssl.SSLContext, token: str, counters: Counters) -> None:
        self._url = f"{url}/api/v1/pods"
        self._tls = tls
        self._headers = {"Authorization": f"Bearer {token}"}
        self._counters = counters

    async def run(self) -> None:
        async with aiohttp.ClientSession(headers=self._headers, read_bufsize=2**22) as session:
            while True:
                try:
                    await self._follow(session)
                except aiohttp.ClientError:
                    await asyncio.sleep(AGAIN_SECONDS)

    async def _follow(self, session: aiohttp.ClientSession) -> None:
        async with session.get(self._url, ssl=self._tls) as response:
            listed = await response.json()
        self._counters.forget_all_but({pod["metadata"]["name"] for pod in listed["items"]})
        for pod in listed["items"]:
            self._changed("ADDED", pod)
        watch = {"watch": "true", "resourceVersion": listed["metadata"]["resourceVersion"]}
        forever = aiohttp.ClientTimeout(total=None)
        async with session.get(self._url, params=watch, ssl=self._tls, timeout=forever) as response:
            async for line in response.content:
                event = json.loads(line)
                self._changed(event["type"], event["object"])

    def _changed(self, what: str, pod: Mapping[str, Any]) -> None:
        name = pod.get("metadata", {}).get("name", "")
        if what == "DELETED":
            self._counters.remove(name)
        elif pod.get("status", {}).get("phase") == "Running":
            self._counters.place(name, pod["spec"]["nodeName"])


async def serve(options: argparse.Namespace) -> None:
    world = msgspec.json.decode(options.world.read_bytes(), type=World)
    counters = Counters(world, time.monotonic)
    tls = ssl.create_default_context(cafile=options.ca_file)
    app = web.Application()
    app.router.add_get("/metrics/{node}", Exporter(world, counters).metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", options.port).start()
    await RunningPods(options.api_server, tls, options.token, counters).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", type=Path, required=True, help="a World as JSON")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--api-server", required=True)
    parser.add_argument("--ca-file", required=True)
    parser.add_argument("--token", required=True)
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
