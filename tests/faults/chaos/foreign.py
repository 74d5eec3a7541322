"""Clusters that a run only finds: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

from experiment import ROOT
from proxy import Cable

from tasks.cluster import network

# What an operator is told to do: a worker that ends is started again.
AGAIN = ("sh", "-c", 'while sleep 0.2; do "$@"; done', "again")


class ForeignCluster:
    """A scheduler and two workers, as on several machines."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.port = free_port()

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        return f"tcp://127.0.0.1:{self.port}"

    def __enter__(self) -> ForeignCluster:
        self.start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port",
                   str(self.port), "--no-dashboard")  # fmt: skip
        self.start_workers()
        return self

    def start_workers(self) -> None:
        """Start two workers."""
        for _ in range(2):
            self.start_worker(self.address)

    def start_worker(self, address: str, *options: str, first: tuple[str, ...] = ()) -> None:
        """Start a worker of a scheduler at an address."""
        self.start("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny",
                   "--no-dashboard", "--death-timeout", "20", *options, first=first)  # fmt: skip

    def start(self, module: str, *arguments: str, first: tuple[str, ...] = ()) -> None:
        """Start a program of Dask."""
        process = subprocess.Popen(
            [*first, sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**os.environ, **network.environment()},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes.append(process)

    def __exit__(self, *error: object) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class CabledCluster(ForeignCluster):
    """Workers that reach the scheduler, and are reached, by cables; two for each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.cables: list[tuple[Cable, Cable]] = []

    def start_workers(self) -> None:
        for _ in range(2):
            own = free_port()
            to_scheduler, to_worker = pair = Cable(self.port), Cable(own)
            self.cables.append(pair)
            self.start_worker(
                f"tcp://127.0.0.1:{to_scheduler.port}",
                *("--listen-address", f"tcp://127.0.0.1:{own}"),
                *("--contact-address", f"tcp://127.0.0.1:{to_worker.port}"),
                first=AGAIN,
            )

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for cable in (cable for pair in self.cables for cable in pair):
            cable.close()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
