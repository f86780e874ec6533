"""A TCP proxy between the scheduler and the API server that can be told to misbehave.

TLS passes through it: it knows nothing of what it carries. Used by the faults of the network."""

import asyncio
import socket
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

PIECE_BYTES = 1 << 16


@dataclass(slots=True)
class Weather:
    """How the network is; a change counts for connections that are there, too."""

    delay_seconds: float = 0.0
    is_silent: bool = False  # nothing passes, nothing is rejected: a half-open connection
    is_cut: bool = False  # connections are rejected


class Proxy:
    """`address` is where the scheduler is to connect; runs on a thread of its own."""

    def __init__(self, target_port: int, *, port: int) -> None:
        self._target_port = target_port
        self.port = port
        self.weather = Weather()
        self._calm = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._calm.set()
        self._on_loop(self._listen()).result()

    def stop(self) -> None:
        self._on_loop(self._close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def delay(self, seconds: float) -> None:
        self.weather.delay_seconds = seconds

    def fall_silent(self) -> None:
        self.weather.is_silent = True
        self._loop.call_soon_threadsafe(self._calm.clear)

    def speak_again(self) -> None:
        self.weather.is_silent = False
        self._loop.call_soon_threadsafe(self._calm.set)

    def cut(self) -> None:
        """Ends all connections and rejects new ones."""
        self.weather.is_cut = True
        self.reset_all()

    def fix(self) -> None:
        self.weather.is_cut = False

    def reset_all(self) -> None:
        """Ends every connection there is with a TCP reset."""
        self._on_loop(self._reset_all()).result()

    def _on_loop(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._calm.set()
        await self._reset_all()
        here = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not here]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _reset_all(self) -> None:
        for writer in list(self._writers):
            connection = writer.get_extra_info("socket")
            if connection is not None:
                # Closed without lingering, the other end is told by a reset.
                linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
                with suppress(OSError):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.weather.is_cut:
            writer.transport.abort()
            return
        try:
            there = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        far_reader, far_writer = there
        self._writers |= {writer, far_writer}
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, far_writer))
                both.create_task(self._pump(far_reader, writer))
        except* OSError:
            pass
        finally:
            self._writers -= {writer, far_writer}
            writer.transport.abort()
            far_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pieces go on in their order, each as late as the weather wants; a pause between two of
        them is not added to the next one's delay."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=1024)
        send = asyncio.create_task(self._send(waiting, writer))
        try:
            while piece := await reader.read(PIECE_BYTES):
                await waiting.put((loop.time() + self.weather.delay_seconds, piece))
            await waiting.put((loop.time() + self.weather.delay_seconds, b""))
            await send
        finally:
            send.cancel()

    async def _send(
        self, waiting: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due_at, piece = await waiting.get()
            await asyncio.sleep(max(0.0, due_at - loop.time()))
            await self._calm.wait()
            if not piece:
                if writer.can_write_eof():
                    writer.write_eof()
                return
            writer.write(piece)
            await writer.drain()
