"""Workers started by SSH, on a server that runs here."""

import asyncio
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.cluster.jobs import run_jobs
from tasks.cluster.session import cluster_session


class SshServer:
    """An SSH server on this machine that runs commands, with keys in a home folder."""

    def __init__(self, home: Path) -> None:
        import asyncssh

        self.home = home
        self.commands: list[str] = []
        self.children: list[subprocess.Popen[str]] = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        folder = home / ".ssh"
        folder.mkdir()
        host, client = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        client.write_private_key(folder / "id_ed25519")
        client.write_public_key(folder / "authorized_keys")
        self.thread.start()
        self.server = asyncio.run_coroutine_threadsafe(self._listen(host), self.loop).result(60)
        self.port = self.server.sockets[0].getsockname()[1]
        key = host.export_public_key().decode()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {key}")

    async def _listen(self, host: Any) -> Any:
        import asyncssh

        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[host],
            authorized_client_keys=str(self.home / ".ssh/authorized_keys"),
            process_factory=self._run,
        )

    async def _run(self, process: Any) -> None:
        self.commands.append(process.command)
        # asyncio's own children need the main thread.
        child = subprocess.Popen(
            ["sh", "-c", f"exec {process.command}"],
            # Of another machine: what was set here is not set there.
            env={k: v for k, v in os.environ.items() if not k.startswith("DASK_")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.children.append(child)
        assert child.stderr is not None
        while line := await asyncio.to_thread(child.stderr.readline):
            if not process.is_closing():
                process.stderr.write(line)
        child.stderr.close()
        process.exit(await asyncio.to_thread(child.wait))

    async def _finish(self) -> None:
        for child in self.children:
            if child.poll() is None:
                child.terminate()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=30)
        await self.loop.shutdown_default_executor()

    def close(self) -> None:
        self.server.close()
        asyncio.run_coroutine_threadsafe(self.server.wait_closed(), self.loop).result(60)
        asyncio.run_coroutine_threadsafe(self._finish(), self.loop).result(60)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(60)
        self.loop.close()


@pytest.fixture
def ssh_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    monkeypatch.setenv("HOME", str(tmp_path))
    server = SshServer(tmp_path)
    yield server
    server.close()


@pytest.mark.flow
def test_workers_on_hosts_of_ssh(ssh_server):
    """Also where the log is silenced, as the command line does."""
    import dask

    with dask.config.set({"logging.distributed": "critical"}):
        run_on_hosts(ssh_server)


def run_on_hosts(ssh_server: SshServer) -> None:
    def who(job: int) -> str:
        from distributed import get_worker

        return str(get_worker().name)

    where = f"ssh://127.0.0.1:{ssh_server.port}"
    with cluster_session(where, workers=1, memory_per_worker="1GiB") as session:
        done = list(run_jobs(who, range(3), device="cpu", name="who", hint=""))
        assert done == [(number, "cpu-0") for number in range(3)]
        assert session.memory_of_a_worker() == 2**30
    command = ssh_server.commands[-1]
    assert "distributed.cli.dask_spec" in command
