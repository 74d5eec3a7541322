"""The one place that starts or finds a Dask cluster."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from threading import Event
from typing import TYPE_CHECKING, Any

from cppcl.errors import CppclError, InputError
from cppcl.plugin_modules import named_plugins
from tasks.cluster import kinds, network
from tasks.cluster.kinds import ClusterOptions
from tasks.progress import log

if TYPE_CHECKING:
    from distributed import Client

SETTINGS = {
    **network.SETTINGS,
    # A nanny that restarts a worker 15 s after its death must not be given up.
    "distributed.deploy.lost-worker-timeout": "30 minutes",
    # A worker with nothing to spill would stay paused for ever; beyond the limit it is killed,
    # and a block that kills workers again and again fails with a message.
    "distributed.worker.memory.pause": False,
    # Sampling every thread a hundred times a second costs more than all else that Dask does.
    "distributed.worker.profile.enabled": False,
    # Without Dask's MALLOC_TRIM_THRESHOLD_, by which the allocator gives every array back to the
    # system at once: a fifth of the time of small pictures.
    "distributed.nanny.pre-spawn-environ": {
        f"{name}_NUM_THREADS": 1 for name in ("OMP", "MKL", "OPENBLAS")
    },
}
COUNTING_S = 10
"""How long a number of workers is taken for that of now."""
OF_TERMINALS = {signal.SIGINT, signal.SIGHUP}
LOOKING_S = 1.0
"""While a worker is waited for, one looks so often whether it is still wanted."""
LADEN = 1 / 3
"""Share of its memory that a worker may have in use and still begin another kind of work."""


class Cluster:
    """A Dask client that is made when it is first needed, and closed with its session.

    Parameters
    ----------
    where : str
        ``local``; the address of a scheduler (``tcp://host:8786``, ``tls://...``); hosts
        (``ssh://host1,host2``); ``slurm``; or ``kubernetes``.
    workers : int or None
        Workers with one thread each that are started, beside those with a GPU; None means one a
        core of this machine, or one a host.
    memory_per_worker : str
        Memory that a worker that is started may use, such as ``3GiB``.
    options : ClusterOptions
        What else describes it.
    """

    def __init__(
        self,
        where: str,
        workers: int | None,
        memory_per_worker: str,
        options: ClusterOptions | None = None,
    ) -> None:
        self.where = where
        hosts = len(where.split(",")) if where.startswith("ssh://") else os.cpu_count()
        self.workers = workers or hosts or 1
        self.memory_per_worker = memory_per_worker
        self.options = options or ClusterOptions()
        self._client: Client | None = None
        self._starting: Future[Client] | None = None
        self._unwanted = Event()
        self._exit = ExitStack()
        self._counted: dict[str, tuple[float, int]] = {}

    def client(self) -> Client:
        """Client of the cluster; the first call starts or finds it."""
        if self._client is None:
            try:
                self._client = self._starting.result() if self._starting else self._connect()
            except Exception:
                self._starting = None  # the next call tries again
                raise
            self._starting = None
        return self._client

    def start(self) -> None:
        """Begin to start it, in a thread; `client` waits for it, and raises what went wrong."""
        thread = ThreadPoolExecutor(1, "cluster")
        self._starting = thread.submit(self._connect)
        thread.shutdown(wait=False)

    def is_as(self, other: Cluster) -> bool:
        """True if the other is described as this one is."""
        described = [
            (cluster.where, cluster.workers, cluster.memory_per_worker, cluster.options)
            for cluster in (self, other)
        ]
        return described[0] == described[1]

    def resource(self, device: str) -> dict[str, float]:
        """Resource that a block asks of a worker: GPU blocks run on CPUs where no GPU is."""
        return resource_of(self._workers(), device)

    def n_workers(self, device: str) -> int:
        """Workers for blocks of a device, by a count of a few seconds ago at most.

        Of those that are started here, the count is of all that there will be.
        """
        at, n = self._counted.get(device, (0.0, 0))
        if not n or time.monotonic() - at > COUNTING_S:
            workers = self.client().scheduler_info(n_workers=-1)["workers"].values()
            wanted = resource_of(workers, device).keys()
            n = sum(wanted <= worker.get("resources", {}).keys() for worker in workers)
            if self.where == "local" and "GPU" not in wanted:
                n = max(n, self.workers)
            self._counted[device] = time.monotonic(), n
        return max(1, n)

    def memory_of_a_worker(self) -> int:
        """Bytes that the least of the workers may use."""
        from dask.utils import parse_bytes

        if self.where == "local":
            return int(parse_bytes(self.memory_per_worker))
        return min(worker["memory_limit"] or sys.maxsize for worker in self._workers())

    def close_if_laden(self) -> None:
        """Close it if its workers hold much of their memory, or a GPU, that others may need.

        What needs the cluster after that starts it, or finds it, again.
        """
        if self._client is None:
            return
        for worker in self._workers():
            used, most = worker["metrics"].get("memory", 0), worker["memory_limit"]
            if "GPU" in worker.get("resources", {}) or (most and used > LADEN * most):
                self.close()
                return

    def close(self) -> None:
        """Close what was started; of what is starting, no worker is waited for."""
        if self._starting:
            self._unwanted.set()
            wait([self._starting])
            self._starting = None
            self._unwanted.clear()
        self._exit.close()
        self._client = None
        self._counted.clear()

    def _workers(self) -> list[dict[str, Any]]:
        """What there is to know of each worker; where all have died, of those that come back."""
        client = self.client()
        while not (found := client.scheduler_info(n_workers=-1)["workers"]):
            await_worker(client, self.where, self._unwanted)
        return list(found.values())

    def _connect(self) -> Client:
        import dask
        from distributed import Client

        if self._unwanted.is_set():
            raise CancelledError
        self._exit.enter_context(dask.config.set(SETTINGS))
        if kinds.is_started_here(self.where):
            wanted = kinds.Wanted(
                self.where,
                self.workers,
                dask.utils.parse_bytes(self.memory_per_worker),
                self.options,
            )
            with children_uninterrupted():
                client = Client(self._exit.enter_context(kinds.start(wanted)))
        else:
            security = kinds.security_of(self.where, self.options.tls)
            try:
                client = Client(self.where, timeout=20, security=security)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"compute.cluster {self.where!r} does not answer as a Dask scheduler: {error}"
                ) from error
        self._exit.callback(client.close)  # a context would bind it to this thread
        if self.where != "local":
            log(f"waiting for a worker of cluster {self.where!r}")
        await_worker(client, self.where, self._unwanted)
        if self.where != "local":
            check_pythons(client, self.where)
            check_workers(client, self.where)
            load_plugins_there(client, self.where)
        if self.options.performance_report:
            from distributed import performance_report

            # Inline, so that the page works without a network.
            report = performance_report(self.options.performance_report, mode="inline")
            self._exit.enter_context(report)
        return client


def resource_of(workers: Iterable[dict[str, Any]], device: str) -> dict[str, float]:
    """Resource that a block asks of one of these workers."""
    offered = {name for worker in workers for name in worker.get("resources", {})}
    if device == "gpu" and "GPU" in offered:
        return {"GPU": 1}
    return {"CPU": 1} if "CPU" in offered else {}


def await_worker(client: Client, where: str, unwanted: Event) -> None:
    """Wait until there is a worker, or none is wanted any more; `CppclError` if none comes up."""
    seconds = kinds.SECONDS.get(where, kinds.OTHER_SECONDS)
    limit = time.monotonic() + seconds
    while not unwanted.is_set():
        try:
            return client.wait_for_workers(1, timeout=min(LOOKING_S, seconds))
        except TimeoutError as error:
            if time.monotonic() > limit:
                raise CppclError(
                    f"no Dask worker of cluster {where!r} came up within {seconds:.0f} s; "
                    "see the log of the workers"
                ) from error
    return None


@contextmanager
def children_uninterrupted() -> Iterator[None]:
    """Keep Ctrl-C, and the end of a terminal, from processes and threads started within.

    A terminal sends both to all processes at once. This one ends the others in order, and the
    servers that it talks to while it ends would be gone already. The mask of blocked signals is
    inherited.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, OF_TERMINALS)
    resource_tracker.ensure_running()  # where it has to start, it unblocks Ctrl-C
    signal.pthread_sigmask(signal.SIG_BLOCK, OF_TERMINALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_sessions: list[Cluster] = []
_ahead: list[Cluster] = []


@contextmanager
def starting_ahead(
    where: str, workers: int | None, memory_per_worker: str, options: ClusterOptions | None = None
) -> Iterator[None]:
    """Start a cluster while other things start: the first session of such a one takes it.

    Only one of this machine; others may have to be waited for.
    """
    if where != "local":
        yield
        return
    cluster = Cluster(where, workers, memory_per_worker, options)
    cluster.start()
    _ahead.append(cluster)
    try:
        yield
    finally:
        if cluster in _ahead:
            _ahead.remove(cluster)
            cluster.close()


@contextmanager
def cluster_session(
    where: str = "local",
    workers: int | None = None,
    memory_per_worker: str = "3GiB",
    options: ClusterOptions | None = None,
) -> Iterator[Cluster]:
    """Make a cluster available to the stages that run inside the ``with`` block."""
    cluster = Cluster(where, workers, memory_per_worker, options)
    if started := next(filter(cluster.is_as, _ahead), None):
        _ahead.remove(started)
        cluster = started
    _sessions.append(cluster)
    try:
        yield cluster
    finally:
        _sessions.remove(cluster)
        cluster.close()


def available_cluster() -> Cluster | None:
    """Cluster of the innermost session, if there is one."""
    return _sessions[-1] if _sessions else None


def current_cluster() -> Cluster:
    """Cluster of the innermost session."""
    if not _sessions:
        raise RuntimeError(
            "this needs a cluster: wrap the call in tasks.cluster.session.cluster_session()"
        )
    return _sessions[-1]


def load_plugins_there(client: Any, where: str) -> None:
    """Load the plugins of this process on the workers of a cluster that runs elsewhere.

    Raises
    ------
    CppclError
        A worker does not have one of them.
    """
    if not (names := named_plugins()):
        return
    from tasks.cluster.plugins import LoadPlugins

    try:
        client.register_plugin(LoadPlugins(names))
    except InputError as error:
        raise CppclError(
            f"workers of cluster {where!r}: {error}; put it there under the same name, or install "
            "it as a package"
        ) from error


def check_pythons(client: Any, where: str) -> None:
    """Refuse workers of another Python than this: what is sent to them is of this one's.

    Asked of Dask alone, without sending a function: compiled for this Python, it may kill another.

    Raises
    ------
    CppclError
        Naming the workers and what they have.
    """
    here = "{}.{}".format(*sys.version_info)
    versions = client.get_versions()["workers"]
    found = {
        worker: ".".join(str(has["host"]["python"]).split(".")[:2])
        for worker, has in versions.items()
        if has is not None
    }
    wrong = {worker: python for worker, python in found.items() if python != here}
    if wrong:
        listed = "; ".join(f"{worker}: {python}" for worker, python in sorted(wrong.items()))
        raise CppclError(
            f"workers of cluster {where!r} need Python {here}, as here, but have another "
            f"({listed}); start them with Python {here}, or run this with theirs"
        )


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
            for module in (
                "tasks.workers.blocks",
                "tasks.workers.search",
                "tasks.workers.training",
            ):
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
