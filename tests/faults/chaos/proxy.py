"""A cable between two programs of this machine that delays, loses connections, or is cut.

The end of it that is cut says nothing, as a machine without power: connections stay open, and what
was sent arrives when they are joined again, if ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Cable:
    """Relays what is sent to a port of this machine to another one, and back.

    Parameters
    ----------
    target : int
        Port that answers; nothing need listen there yet.

    Attributes
    ----------
    port : int
        Port to connect to instead.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.delay_s = 0.0
        self._joined = asyncio.Event()
        self._joined.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        start = asyncio.start_server(self._relay, sock=self._listening)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result(30)

    def cut(self) -> None:
        """Let nothing through any more."""
        self._loop.call_soon_threadsafe(self._joined.clear)

    def join(self) -> None:
        """Let through what was held back, and all that follows."""
        self._loop.call_soon_threadsafe(self._joined.set)

    def delay(self, seconds: float) -> None:
        """Let everything arrive so much later, each way."""
        self.delay_s = seconds

    def drop(self) -> None:
        """Break all connections, as a router that forgets them."""
        self._loop.call_soon_threadsafe(self._drop)

    def close(self) -> None:
        """Break all connections and take no more."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    def _drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _end(self) -> None:
        self._server.close()
        self._drop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with self._kept(writer), contextlib.suppress(OSError, asyncio.CancelledError):
            await self._joined.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
            with self._kept(back):
                ways = [
                    asyncio.ensure_future(self._carry(source, sink))
                    for source, sink in ((reader, back), (there, writer))
                ]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(64)

        async def take() -> None:
            data = b"first"
            while data:
                try:
                    data = await source.read(2**16)
                except OSError:
                    data = b""
                await on_the_way.put((self._loop.time() + self.delay_s, data))

        taking = asyncio.ensure_future(take())
        data = b"first"
        try:
            while data:
                due, data = await on_the_way.get()
                await asyncio.sleep(max(0.0, due - self._loop.time()))
                await self._joined.wait()
                sink.write(data)
                await sink.drain()
        except OSError:
            return
        finally:
            taking.cancel()

    @contextmanager
    def _kept(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        self._writers.add(writer)
        try:
            yield
        finally:
            self._writers.discard(writer)
            writer.close()
