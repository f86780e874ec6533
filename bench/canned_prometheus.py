"""A server that answers each query of Prometheus's API with a file, compressed as Prometheus does.

Run as a program by poll, so that the CPU time of answering is not the scheduler's.
`FOLDER/queries.json` names the file of each query."""

import argparse
import asyncio
import json
from pathlib import Path

from aiohttp import web

NO_SAMPLES = {"status": "success", "data": {"resultType": "matrix", "result": []}}


class Canned:
    def __init__(self, folder: Path) -> None:
        files = json.loads((folder / "queries.json").read_text())
        self._bodies = {query: (folder / file).read_bytes() for query, file in files.items()}

    async def query(self, request: web.Request) -> web.Response:
        """What is not in the folder asks for samples, to see how often targets are scraped."""
        form = await request.post()
        body = self._bodies.get(str(form["query"]))
        if body is None:
            return web.json_response(NO_SAMPLES)
        headers = {"Content-Encoding": "gzip"}
        return web.Response(body=body, content_type="application/json", headers=headers)


async def serve(folder: Path, port: int) -> None:
    app = web.Application()
    app.router.add_post("/api/v1/query", Canned(folder).query)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    asyncio.run(serve(options.folder, options.port))


if __name__ == "__main__":
    main()
