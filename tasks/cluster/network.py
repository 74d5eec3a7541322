"""Networks that fail: how long Dask waits for machines that say nothing, and what is lost then."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from cppcl.errors import CppclError
from tasks.progress import log

if TYPE_CHECKING:
    from distributed import Client

SETTINGS = {
    # A cable that is pulled, or a machine that loses its power: nobody is told. What is sent and
    # not acknowledged for so long ends a connection, as do keepalives without an answer. Shorter
    # outages are sat out; less than 11 s is refused by Dask, in every connection anew.
    "distributed.comm.timeouts.tcp": "30s",
    "distributed.comm.timeouts.connect": "30s",
    # A process that is stopped, or a machine that only swaps, still acknowledges. Dask looks once
    # in this time, so that it takes up to twice as long. Not less: a heart does not beat while a
    # call of a compiled library keeps the interpreter's lock.
    "distributed.scheduler.worker-ttl": "40s",
    # Every outage costs the jobs at work one try of four.
    "distributed.scheduler.allowed-failures": 3,
    # A job that no worker can take must not wait for ever.
    "distributed.scheduler.no-workers-timeout": "120s",
}
"""Configuration of Dask, the same at both ends of every connection."""

DEATH_TIMEOUT_S = 120
"""After so many seconds without a scheduler a worker that is starting gives up."""


def environment() -> dict[str, str]:
    """Environment variables by which a process that does not inherit them has `SETTINGS`."""
    return {
        "DASK_" + name.upper().replace(".", "__").replace("-", "_"): str(value)
        for name, value in SETTINGS.items()
    }


def is_lost(future: Any, error: BaseException) -> bool:
    """True if a job has no result because this process lost its scheduler."""
    if isinstance(error, CancelledError):
        return getattr(error, "reason", "") == "scheduler-connection-lost"
    return future.status != "error"


def await_scheduler(client: Client, where: str) -> None:
    """Wait until a client that lost its scheduler has found it again; it tries for a while.

    Raises
    ------
    CppclError
        If it has given up.
    """
    pause = threading.Event()
    while client.status == "connecting":
        pause.wait(0.05)
    if client.status != "running":
        raise CppclError(
            f"the scheduler of cluster {where!r} is gone; run again when there is one: what was "
            "finished is kept"
        )
    log(f"the connection to the scheduler of cluster {where!r} was lost; its jobs are sent again")
