"""Jobs on the cluster: a bounded number at a time, and what becomes of those that fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from cppcl.errors import CppclError
from tasks.cluster import network
from tasks.cluster.session import current_cluster
from tasks.progress import log

if TYPE_CHECKING:
    from distributed import Client

IN_FLIGHT_PER_WORKER = 2


EVENTS_TIMEOUT_S = 10


@dataclass(frozen=True)
class Killed:
    """In place of a result: the workers that ran a job died, again and again."""

    job: Any
    message: str


def run_jobs(
    function: Callable[[Any], Any],
    jobs: Iterable[Any],
    *,
    device: str,
    name: str,
    hint: str,
    in_flight: int | None = None,
    tell_killed: bool = False,
) -> Iterator[tuple[int, Any]]:
    """Run jobs on the cluster, a bounded number at a time; yield each that is done.

    What is not done when the generator is closed, or fails, is cancelled.

    Parameters
    ----------
    function : callable
        Applied to a job on a worker; it may be applied more than once.
    jobs : iterable
        What is sent to workers; the first one starts or finds the cluster, each later one is
        taken when there is room for it.
    device : {'cpu', 'gpu'}
        What a job needs.
    name : str
        What jobs are called in the dashboard.
    hint : str
        What a user should do when a job kills its workers.
    in_flight : int or None
        Jobs at a time; None means some for each worker.
    tell_killed : bool
        True to yield `Killed` for a job that kills its workers, rather than raise.

    Yields
    ------
    number, result
        Place of the job among all, from 0, and what the function returned.
    """
    waiting = enumerate(jobs)
    first = list(islice(waiting, 1))
    if not first:
        return
    from distributed import as_completed

    here = current_cluster()
    client = here.client()
    announce(client)
    resources = here.resource(device)
    if device == "gpu" and "GPU" not in resources:
        log(f"{name}: no worker offers a GPU, so it runs on CPUs")
    jobs_of: dict[str, tuple[int, Any]] = {}
    futures = as_completed()

    def submit(number: int, job: Any) -> None:
        key = f"{name}-{number}-{time.time_ns()}"
        jobs_of[key] = number, job
        futures.add(client.submit(function, job, resources=resources, pure=False, key=key))

    try:
        submit(*first[0])
        while jobs_of:
            room = (in_flight or IN_FLIGHT_PER_WORKER * here.n_workers(device)) - len(jobs_of)
            for number, job in islice(waiting, max(0, room)):
                submit(number, job)
            future = next(futures)
            number, job = jobs_of.pop(future.key)
            try:
                result = result_of(future, here.where, hint, job if tell_killed else None)
            except (CancelledError, OSError) as error:
                if not network.is_lost(future, error):
                    raise
                network.await_scheduler(client, here.where)
                submit(number, job)
                continue
            yield number, result
    finally:
        if jobs_of and client.status == "running":
            client.cancel(list(futures.futures), force=True)


def send_event(topic: str, message: dict[str, Any]) -> None:
    """Send a message from the worker that this runs on to whoever hears the topic."""
    from distributed import get_worker

    get_worker().log_event(topic, {"message": message})  # Dask adds a field of its own


@contextmanager
def hearing(topic: str, heard: Callable[[dict[str, Any]], None]) -> Iterator[None]:
    """Hear within a ``with`` block, and in another thread, what workers send to a topic.

    Messages of a worker come in order, but may be later than the result of the job that sent them;
    at the end of the block those on their way are awaited.
    """
    client, ended = current_cluster().client(), threading.Event()

    def hear(event: tuple[float, dict[str, Any] | None]) -> None:
        _, sent = event
        if sent is None:
            ended.set()
        else:
            heard(sent["message"])

    client.subscribe_topic(topic, hear)
    try:
        yield
        client.log_event(topic, None)
        ended.wait(EVENTS_TIMEOUT_S)
    finally:
        client.unsubscribe_topic(topic)


def result_of(future: Any, where: str, hint: str, job: Any = None) -> Any:
    """Result of a job, or what its end on the cluster means to a user.

    Where `job` is given and its workers died, that is the result.
    """
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        message = f"a worker died again and again on {error.task}, probably out of memory; {hint}"
        if job is not None:
            return Killed(job, message)
        raise CppclError(message) from error
    except ImportError as error:
        raise CppclError(
            f"a worker of cluster {where!r} cannot import what it runs ({error}); install the "
            "same cppcl there"
        ) from error


def announce(client: Client) -> None:
    """Say where the dashboard is."""
    log(f"Dask dashboard: {client.dashboard_link}")
