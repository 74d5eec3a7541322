"""Work of requests, a bounded number at once and for a bounded time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Lock
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

N_WAITING = 16
SECONDS = 10.0
N_THREADS = max(1, min(4, os.cpu_count() or 1))


class BusyError(Exception):
    """The server has no room for this request now; a later one may succeed."""


class WorkQueue:
    """Threads that work, and a queue of bounded length.

    Parameters
    ----------
    n_threads, n_waiting : int
        Threads, and how many more requests may wait.
    seconds : float
        How long a request waits for its result.

    Attributes
    ----------
    idle : Event
        Set while nothing works or waits.
    """

    def __init__(
        self, n_threads: int = N_THREADS, n_waiting: int = N_WAITING, seconds: float = SECONDS
    ) -> None:
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="search")
        self._free = self._places = n_threads + n_waiting
        self._seconds = seconds
        self.idle = Event()
        self.idle.set()
        self._lock = Lock()

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in a thread.

        Raises
        ------
        BusyError
            The queue is full, or the time is over; work that has begun keeps its place.
        """
        with self._lock:
            if not self._free:
                raise BusyError("too many searches at once; try again in a moment")
            self._free -= 1
            self.idle.clear()
        try:
            future = self._pool.submit(work, *args, **kwargs)
        except BaseException:
            self._leave()
            raise
        future.add_done_callback(self._leave)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except TimeoutError as error:
            future.cancel()
            raise BusyError(f"the search took more than {self._seconds:g} s") from error

    def close(self) -> None:
        """Cancel what is waiting."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _leave(self, _: Future[Any] | None = None) -> None:
        with self._lock:
            self._free += 1
            if self._free == self._places:
                self.idle.set()
