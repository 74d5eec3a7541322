"""A host that is cut off from the network while it extracts.

The other host is a network namespace that one cable ties to this one; where namespaces are not
allowed, it is a worker behind relays that can be cut just so.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cppcl.errors import CppclError
from storage import Artifact
from tasks.cluster import network
from tasks.cluster.session import cluster_session
from tasks.progress import Progress, listening
from tests.faults.chaos.proxy import Cable

pytestmark = pytest.mark.flow

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "clusters.md"
NUMBERS = count()
OUTAGE_S = 5.0
PATIENCE_S = 120.0


class Programs:
    """A scheduler and workers, started as an operator starts them, ended with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{len(self.started)}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **network.environment(), "OMP_NUM_THREADS": "1"},
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def scheduler(self, host: str, port: int) -> subprocess.Popen[bytes]:
        words = ("--host", host, "--port", str(port), "--no-dashboard")
        process = self.start(sys.executable, "-m", "distributed.cli.dask_scheduler", *words)
        while process.poll() is None:
            with suppress(ConnectionRefusedError), socket.create_connection((host, port)):
                break
            threading.Event().wait(0.05)
        return process

    def worker(
        self, address: str, *words: str, inside: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        program = (sys.executable, "-m", "distributed.cli.dask_worker", address)
        common = ("--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder))
        waits = ("--death-timeout", str(network.DEATH_TIMEOUT_S))
        return self.start(*inside, *program, *common, *waits, *words)

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        for process in self.started:
            process.wait(30)


class Namespace:
    """A network namespace, and a cable to it that can be pulled, of which nobody is told."""

    def __init__(self) -> None:
        # A network that was removed a moment ago may still be there.
        number = (os.getpid() + 7919 * next(NUMBERS)) % 2**14
        self.name = f"cppcl{number}"
        net, _, last = f"10.213.{number // 64}.{number % 64 * 4}".rpartition(".")
        self.here, self.there = f"{net}.{int(last) + 1}", f"{net}.{int(last) + 2}"

    def __enter__(self) -> Namespace:
        mine, other = f"{self.name}a", f"{self.name}b"
        ip("netns", "add", self.name)
        try:
            ip("link", "add", mine, "type", "veth", "peer", "name", other, "netns", self.name)
            ip("addr", "add", f"{self.here}/30", "dev", mine)
            ip("link", "set", mine, "up")
            ip("-n", self.name, "addr", "add", f"{self.there}/30", "dev", other)
            for device in (other, "lo"):
                ip("-n", self.name, "link", "set", device, "up")
        except subprocess.CalledProcessError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        ip("netns", "del", self.name)

    def start_worker(self, programs: Programs, port: int) -> subprocess.Popen[bytes]:
        inside = ("ip", "netns", "exec", self.name)
        return programs.worker(f"tcp://{self.here}:{port}", "--host", self.there, inside=inside)

    def cut(self) -> None:
        ip("link", "set", f"{self.name}a", "down")

    def join(self) -> None:
        ip("link", "set", f"{self.name}a", "up")


class Relays:
    """A worker that reaches its scheduler, and is reached, through relays."""

    here = "127.0.0.1"

    def __init__(self) -> None:
        self.cables: list[Cable] = []

    def __enter__(self) -> Relays:
        return self

    def __exit__(self, *error: object) -> None:
        for cable in self.cables:
            cable.close()

    def start_worker(self, programs: Programs, port: int) -> subprocess.Popen[bytes]:
        own = free_port(self.here)
        self.cables = [Cable(port), Cable(own)]
        to_scheduler, to_worker = (f"tcp://{self.here}:{cable.port}" for cable in self.cables)
        listens = ("--listen-address", f"tcp://{self.here}:{own}")
        return programs.worker(
            to_scheduler, "--no-nanny", *listens, "--contact-address", to_worker
        )

    def cut(self) -> None:
        for cable in self.cables:
            cable.cut()

    def join(self) -> None:
        for cable in self.cables:
            cable.join()


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def free_port(host: str) -> int:
    with socket.socket() as found:
        found.bind((host, 0))
        return int(found.getsockname()[1])


def namespaces_are_allowed() -> bool:
    try:
        with Namespace():
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@pytest.fixture
def host(request) -> Iterator[Any]:
    kind = Namespace if request.param == "namespace" and namespaces_are_allowed() else Relays
    with kind() as host:
        yield host


@pytest.fixture
def programs(tmp_path) -> Iterator[Programs]:
    programs = Programs(tmp_path)
    yield programs
    programs.end()


@pytest.mark.parametrize(
    ("host", "comes_back"),
    [("namespace", True), ("namespace", False), ("relays", True)],
    ids=["for seconds", "for ever", "for seconds, by relays"],
    indirect=["host"],
)
def test_a_host_that_is_cut_off_does_not_stop_a_run(
    host, comes_back, programs, slow_extraction, workspace
):
    port = free_port(host.here)
    address = f"tcp://{host.here}:{port}"
    scheduler = programs.scheduler(host.here, port)
    programs.worker(address, "--host", host.here)
    there = host.start_worker(programs, port)
    joined = threading.Event()

    def join() -> None:
        host.join()
        joined.set()

    with ExitStack() as stack:
        session = stack.enter_context(cluster_session(address))
        client = session.client()
        client.wait_for_workers(2, timeout=PATIENCE_S)
        before = set(client.scheduler_info(n_workers=-1)["workers"])
        # A run that hangs ends so with an error.
        timers = [threading.Timer(PATIENCE_S, scheduler.kill)]
        timers += [threading.Timer(OUTAGE_S, join)] * comes_back

        def cut(progress: Progress) -> None:
            if progress.total == slow_extraction.n_blocks and progress.done == 3:
                host.cut()
                for timer in timers:
                    timer.start()
                    stack.callback(timer.cancel)

        with listening(cut):
            artifact: Artifact = slow_extraction.extract(workspace)
        after = set(client.scheduler_info(n_workers=-1)["workers"])
        if comes_back:
            assert joined.is_set()  # what the host had to do was waited for
            assert after == before
        else:
            assert len(after & before) == 1
            host.join()
            # It was given up, so it ends, and what supervises it starts another.
            assert there.wait(PATIENCE_S) is not None
    expected = slow_extraction.expected
    assert artifact.manifest == expected.manifest
    for name in ("features", "ok"):
        assert artifact.array(name).tobytes() == expected.array(name).tobytes()
    assert workspace.store.verify() == []


def test_a_run_that_loses_its_scheduler_for_a_moment_sends_its_jobs_again(
    programs, slow_extraction, workspace
):
    port = free_port("127.0.0.1")
    scheduler = programs.scheduler("127.0.0.1", port)
    for _ in range(2):
        programs.worker(f"tcp://127.0.0.1:{port}", "--no-nanny")
    said: list[str] = []
    with ExitStack() as stack:
        cable = Cable(port)
        stack.callback(cable.close)
        session = stack.enter_context(cluster_session(f"tcp://127.0.0.1:{cable.port}"))
        session.client()
        timer = threading.Timer(PATIENCE_S, scheduler.kill)
        timer.start()
        stack.callback(timer.cancel)

        def drop(progress: Progress) -> None:
            if progress.total == slow_extraction.n_blocks and progress.done in (3, 9):
                cable.drop()

        with listening(drop, said.append):
            artifact: Artifact = slow_extraction.extract(workspace)
    assert any("was lost; its jobs are sent again" in text for text in said)
    assert artifact.manifest == slow_extraction.expected.manifest
    assert workspace.store.verify() == []


def test_a_scheduler_that_is_gone_is_an_error():
    with pytest.raises(CppclError, match="cluster 'tcp://a:1' is gone; run again"):
        network.await_scheduler(SimpleNamespace(status="closed"), "tcp://a:1")


def test_an_operator_is_told_the_settings():
    text = DOCS.read_text()
    for name, value in network.environment().items():
        assert f"{name}={value}" in text
    assert f"--death-timeout {network.DEATH_TIMEOUT_S}" in text


def test_settings_reach_a_process_by_its_environment():
    program = (
        "import dask, distributed; from tasks.cluster import network;"
        "print([n for n, v in network.SETTINGS.items() if str(dask.config.get(n)) != str(v)])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, **network.environment()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "[]\n"
