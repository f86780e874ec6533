"""The model exporter without pods: every node's link carries its background; run by traffic.

Which pods run is not followed, because a watch would take CPU from the drain that is measured."""

import argparse
import asyncio
import time
from pathlib import Path

import msgspec
from aiohttp import web

from model_exporter import Counters, Exporter, World


async def serve(options: argparse.Namespace) -> None:
    world = msgspec.json.decode(options.world.read_bytes(), type=World)
    app = web.Application()
    exporter = Exporter(world, Counters(world, time.monotonic))
    app.router.add_get("/metrics/{node}", exporter.metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", options.port).start()
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", type=Path, required=True, help="a World as JSON")
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
