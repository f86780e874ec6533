"""A server that answers each query of Prometheus's API with a file, compressed as Prometheus does.

Run as a program by the benchmarks of polls and of the extender, so that the CPU time of answering
is not Lowtide's. `FOLDER/queries.json` names the file of each query. An answer is of the moment in
which it is asked for; with `--every-seconds` it is later than the last to that query by so much."""

import argparse
import asyncio
import gzip
import json
import time
from collections import Counter
from pathlib import Path

from aiohttp import web

NO_SAMPLES = {"status": "success", "data": {"resultType": "matrix", "result": []}}


class Canned:
    def __init__(self, folder: Path, answered_at: float, every_seconds: float | None) -> None:
        self._answered_at = answered_at
        self._every_seconds = every_seconds
        self._times_asked: Counter[str] = Counter()
        files = json.loads((folder / "queries.json").read_text())
        self._bodies = {query: (folder / file).read_bytes() for query, file in files.items()}

    async def query(self, request: web.Request) -> web.Response:
        """What is not in the folder asks for samples, to see how often targets are scraped."""
        query = str((await request.post())["query"])
        body = self._bodies.get(query)
        if body is None:
            return web.json_response(NO_SAMPLES)
        at = self._answered_now(query)
        body = body.replace(str(self._answered_at).encode(), str(at).encode())
        headers = {"Content-Encoding": "gzip"}
        return web.Response(
            body=gzip.compress(body), content_type="application/json", headers=headers
        )

    def _answered_now(self, query: str) -> float:
        if self._every_seconds is None:
            return time.time()
        asked_before = self._times_asked[query]
        self._times_asked[query] += 1
        return self._answered_at + asked_before * self._every_seconds


async def serve(canned: Canned, port: int) -> None:
    app = web.Application()
    app.router.add_post("/api/v1/query", canned.query)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--answered-at", type=float, required=True, help="as in the files")
    parser.add_argument("--every-seconds", type=float)
    options = parser.parse_args()
    canned = Canned(options.folder, options.answered_at, options.every_seconds)
    asyncio.run(serve(canned, options.port))


if __name__ == "__main__":
    main()
