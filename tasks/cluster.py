"""The one place that starts or finds a Dask cluster."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cppcl.errors import CppclError, InputError
from tasks.progress import say

if TYPE_CHECKING:
    from distributed import Client

# An unsatisfiable resource must not wait for ever, and a nanny that restarts a worker 15 s after
# its death must not be given up.
SETTINGS = {
    "distributed.scheduler.no-workers-timeout": "120s",
    "distributed.deploy.lost-worker-timeout": "30 minutes",
    # A worker with nothing to spill would stay paused for ever; beyond the limit it is killed,
    # and a block that kills workers again and again fails with a message.
    "distributed.worker.memory.pause": False,
}
WORKER_TIMEOUT_S = 120
IN_FLIGHT_PER_WORKER = 4
EVENTS_TIMEOUT_S = 10


class Cluster:
    """A Dask client that is made when it is first needed, and closed with its session.

    Parameters
    ----------
    where : str
        ``local``, or the address of a scheduler.
    workers : int or None
        Local workers with one thread each; None means one a core.
    memory_per_worker : str
        Memory that a local worker may use, such as ``3GiB``.
    """

    def __init__(self, where: str, workers: int | None, memory_per_worker: str) -> None:
        self.where = where
        self.workers = workers or os.cpu_count() or 1
        self.memory_per_worker = memory_per_worker
        self._client: Client | None = None
        self._exit = ExitStack()

    def client(self) -> Client:
        """Client of the cluster; the first call starts or finds it."""
        if self._client is None:
            self._client = self._connect()
        return self._client

    def resource(self, device: str) -> dict[str, float]:
        """Resource that a block asks of a worker: GPU blocks run on CPUs where no GPU is."""
        workers = self.client().scheduler_info(n_workers=-1)["workers"].values()
        offered = {name for worker in workers for name in worker.get("resources", {})}
        if device == "gpu" and "GPU" in offered:
            return {"GPU": 1}
        return {"CPU": 1} if "CPU" in offered else {}

    def memory_of_a_worker(self) -> int:
        """Bytes that the least of the workers may use."""
        from dask.utils import parse_bytes

        if self.where == "local":
            return int(parse_bytes(self.memory_per_worker))
        workers = self.client().scheduler_info(n_workers=-1)["workers"].values()
        return min((worker["memory_limit"] or sys.maxsize for worker in workers), default=0)

    def close(self) -> None:
        """Close what was started."""
        self._exit.close()
        self._client = None

    def _connect(self) -> Client:
        import dask
        from distributed import Client

        self._exit.enter_context(dask.config.set(SETTINGS))
        if self.where != "local":
            try:
                client = Client(self.where, timeout=20)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"compute.cluster {self.where!r} does not answer as a Dask scheduler: {error}"
                ) from error
        else:
            with children_uninterrupted():
                cluster = self._exit.enter_context(
                    _local_cluster(self.workers, self.memory_per_worker)
                )
                client = Client(cluster)
        self._exit.enter_context(client)
        try:
            client.wait_for_workers(1, timeout=WORKER_TIMEOUT_S)
        except TimeoutError as error:
            raise CppclError(
                f"no Dask worker of cluster {self.where!r} came up within {WORKER_TIMEOUT_S} s; "
                "see the log of the workers"
            ) from error
        if self.where != "local":
            check_workers(client, self.where)
        return client


def _local_cluster(workers: int, memory_per_worker: str):  # type: ignore[no-untyped-def]
    from dask.utils import parse_bytes
    from distributed import Nanny, Scheduler, SpecCluster

    options = {
        "nthreads": 1,
        "memory_limit": parse_bytes(memory_per_worker),
        "dashboard": False,
        "silence_logs": logging.CRITICAL,
    }
    specification = {
        f"cpu-{n}": {"cls": Nanny, "options": {**options, "resources": {"CPU": 1}}}
        for n in range(workers)
    }
    if Path("/dev/nvidiactl").exists():
        specification["gpu-0"] = {"cls": Nanny, "options": {**options, "resources": {"GPU": 1}}}
    scheduler = {
        "cls": Scheduler,
        "options": {"dashboard": True, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"},
    }
    return SpecCluster(workers=specification, scheduler=scheduler, silence_logs=logging.CRITICAL)


@contextmanager
def children_uninterrupted() -> Iterator[None]:
    """Keep Ctrl-C from processes and threads started within: this process ends them in order.

    A terminal sends it to all of them at once, and then the servers that this one talks to while
    it ends would be gone already. The mask of blocked signals is inherited.
    """
    resource_tracker.ensure_running()  # starting it later would unblock the signal again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_sessions: list[Cluster] = []


@contextmanager
def session(
    where: str = "local", workers: int | None = None, memory_per_worker: str = "3GiB"
) -> Iterator[Cluster]:
    """Make a cluster available to the stages that run inside the ``with`` block."""
    cluster = Cluster(where, workers, memory_per_worker)
    _sessions.append(cluster)
    try:
        yield cluster
    finally:
        _sessions.remove(cluster)
        cluster.close()


def current() -> Cluster:
    """Cluster of the innermost session."""
    if not _sessions:
        raise RuntimeError("this needs a cluster: wrap the call in tasks.cluster.session()")
    return _sessions[-1]


def run(
    function: Callable[[Any], Any], jobs: Iterable[Any], *, device: str, name: str, mend: str
) -> Iterator[tuple[int, Any]]:
    """Run jobs on the cluster, a bounded number at a time; yield each that is done.

    Parameters
    ----------
    function : callable
        Applied to a job on a worker; it may be applied more than once.
    jobs : iterable
        What is sent to workers; the first one starts or finds the cluster.
    device : {'cpu', 'gpu'}
        What a job needs.
    name : str
        What jobs are called in the dashboard.
    mend : str
        What a user should do when a job kills its workers.

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

    here = current()
    client = here.client()
    announce(client)
    resources = here.resource(device)
    bound = IN_FLIGHT_PER_WORKER * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    number_of = {}

    def submit(number: int, job: Any) -> Any:
        key = f"{name}-{number}-{time.time_ns()}"
        number_of[key] = number
        return client.submit(function, job, resources=resources, pure=False, key=key)

    futures = as_completed(
        [submit(number, job) for number, job in (*first, *islice(waiting, bound - 1))]
    )
    for future in futures:
        yield number_of.pop(future.key), result_of(future, here.where, mend)
        for number, job in islice(waiting, 1):
            futures.add(submit(number, job))


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
    client, ended = current().client(), threading.Event()

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


def result_of(future: Any, where: str, mend: str) -> Any:
    """Result of a job, or what its end on the cluster means to a user."""
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise CppclError(
            f"a worker died again and again on {error.task}, probably out of memory; {mend}"
        ) from error
    except ImportError as error:
        raise CppclError(
            f"a worker of cluster {where!r} cannot import what it runs ({error}); install the "
            "same cppcl there"
        ) from error


def check_workers(client: Any, where: str) -> None:
    """Refuse workers of a foreign cluster that lack cppcl, or have another version of it.

    A job that a worker cannot import would take the worker down without a word.

    Raises
    ------
    CppclError
        Naming the workers.
    """
    from importlib.metadata import version

    def found() -> str:  # within this function, so that it is sent whole and not by its name
        import importlib.metadata

        try:
            for module in ("tasks.blocks", "tasks.jobs", "tasks.training"):
                importlib.import_module(module)
        except ImportError as error:
            return f"cannot import it ({error})"
        return f"version {importlib.metadata.version('cppcl')}"

    here = f"version {version('cppcl')}"
    wrong = {worker: has for worker, has in client.run(found).items() if has != here}
    if wrong:
        listed = "; ".join(f"{worker}: {has}" for worker, has in sorted(wrong.items()))
        raise CppclError(
            f"workers of cluster {where!r} need cppcl, {here}, as here, but {listed}; install the "
            "same there"
        )


def announce(client: Client) -> None:
    """Say where the dashboard is."""
    say(f"Dask dashboard: {client.dashboard_link}")
