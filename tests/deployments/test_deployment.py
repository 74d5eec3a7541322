"""The commands of deployments/README.md, as they stand there, from nothing to a watched run."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "deployments" / "README.md"
CONFIGURATION = ROOT / "deployments" / "prefect.yaml"
README_PORT = "4200"
COMMAND_TIMEOUT_S = 90
SERVER_TIMEOUT_S = 90
STOP_TIMEOUT_S = 20

pytestmark = pytest.mark.flow


def readme_commands() -> dict[str, str]:
    """Named blocks of commands: those that open with ```bash NAME."""
    blocks = re.findall(r"(?ms)^```bash (\S+)\n(.*?)^```$", README.read_text())
    assert len(blocks) == len(dict(blocks)), "two blocks of commands have one name"
    return dict(blocks)


@dataclass
class Shell:
    """Runs blocks of the README, each in a process group of its own, on a port of its own."""

    folder: Path
    port: int
    environment: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, **replacements: str) -> subprocess.Popen[bytes]:
        """Start a block; its output goes to a file."""
        commands = readme_commands()
        script = f"{commands['settings']}\n{commands[name]}"
        for old, new in {README_PORT: str(self.port), **replacements}.items():
            assert old in script, f"the README's block {name!r} has no {old!r}"
            script = script.replace(old, new)
        # A shell that runs the tests in the background makes them ignore SIGINT, and so would
        # their children; a handler of our own is reset to the default in a child.
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with self.log(name).open("wb") as log:
                process = subprocess.Popen(
                    ["bash", "-euc", script],
                    cwd=ROOT,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        finally:
            signal.signal(signal.SIGINT, handler)
        self.processes.append(process)
        return process

    def run(self, name: str, **replacements: str) -> str:
        """Run a block to its end, which must be good, and return what it printed."""
        process = self.start(name, **replacements)
        try:
            code = process.wait(COMMAND_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{name} took more than {COMMAND_TIMEOUT_S} s:\n{self.logs()}")
        assert code == 0, f"{name} ended with {code}:\n{self.logs()}"
        return self.log(name).read_text()

    def wait_for_server(self, server: subprocess.Popen[bytes]) -> None:
        """Wait until the server says that it is well."""
        limit = time.monotonic() + SERVER_TIMEOUT_S
        while time.monotonic() < limit:
            try:
                if self.get("/api/health") is True:
                    return
            except OSError:
                pass
            try:
                server.wait(0.25)
            except subprocess.TimeoutExpired:
                continue
            break
        pytest.fail(f"the server did not come up:\n{self.logs()}")

    def get(self, path: str) -> Any:
        """Document that the server gives for a path."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            assert response.status == 200, f"{path}: {response.status} {response.reason}"
            return json.load(response)
        finally:
            connection.close()

    def stop(self) -> None:
        """Stop everything that was started, last first, as Ctrl-C does; then by force."""
        for process in reversed(self.processes):
            if process.poll() is not None:
                continue
            # Flow runs lead sessions of their own, so the group does not hold them.
            family = psutil.Process(process.pid).children(recursive=True)
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            _, alive = psutil.wait_procs(family, timeout=STOP_TIMEOUT_S)
            for child in alive:
                child.kill()
            psutil.wait_procs(alive, timeout=STOP_TIMEOUT_S)

    def log(self, name: str) -> Path:
        """File with the output of a block."""
        return self.folder / f"{name}.log"

    def logs(self) -> str:
        """End of every output, for a message."""
        return "\n".join(
            f"== {path.stem}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-40:])
            for path in sorted(self.folder.glob("*.log"))
        )


@dataclass(frozen=True)
class Deployed:
    """A server with the deployments, as they were when they had just been registered."""

    shell: Shell
    deployments: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("deployment")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "DASK_"))}
    shell = Shell(
        folder,
        port,
        kept
        | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PREFECT_HOME": str(folder / "prefect"),
        },
    )
    try:
        shell.wait_for_server(shell.start("server"))
        shell.run("pool")
        shell.run("deploy")
        deployments = {
            name: shell.get(f"/api/deployments/name/cppcl/{name}")
            for name in ("on-demand", "nightly")
        }
        # Else a worker would begin the nightly run if the clock struck during the tests.
        shell.run("pause")
        yield Deployed(shell, deployments)
    finally:
        shell.stop()


@pytest.fixture(scope="module")
def experiment(
    tmp_path_factory: pytest.TempPathFactory,
    draw_pictures: Callable[..., Path],
    write_experiment: Callable[..., Path],
) -> Path:
    """YAML file of an experiment on a few pictures, which starts a Dask cluster of its own."""
    pictures = draw_pictures(tmp_path_factory.mktemp("experiment") / "shapes")
    return write_experiment(
        pictures,
        features={"sketch": {"name": "hog"}, "image": {"name": "hog"}},
        protocols={
            "category": {
                "split": {"rule": "category", "minimum_groups": 2, "seeds": [0]},
                "methods": {"centred_cosine": None, "cprl": {"n_atoms": 4, "n_rounds": 3}},
            }
        },
    )


def test_one_deployment_waits_to_be_asked_and_one_runs_every_night(deployed):
    on_demand, nightly = (deployed.deployments[name] for name in ("on-demand", "nightly"))
    assert on_demand["schedules"] == []
    (schedule,) = nightly["schedules"]
    assert schedule["active"]
    assert schedule["schedule"]["cron"] == "0 3 * * *"
    assert schedule["schedule"]["timezone"] == "UTC"
    assert "`0 3 * * *`" in README.read_text()
    for deployment in deployed.deployments.values():
        assert deployment["work_pool_name"] == "local"
        assert deployment["entrypoint"] == "flows/experiment.py:run_experiment"
        assert deployment["parameters"] == {"experiment": "emoji", "workspace": ".cppcl"}
        (step,) = deployment["pull_steps"]
        (options,) = step.values()
        assert Path(options["directory"]).samefile(ROOT)
    assert str(ROOT) not in CONFIGURATION.read_text(), "the file must fit any machine"


def test_the_clock_can_be_stopped(deployed):
    (schedule,) = deployed.shell.get("/api/deployments/name/cppcl/nightly")["schedules"]
    assert not schedule["active"]


def test_a_watched_run_completes_and_leaves_a_report(deployed, experiment, tmp_path):
    shell, workspace = deployed.shell, tmp_path / "workspace"
    here = {
        "experiment=emoji": f"experiment={experiment}",
        "workspace=.cppcl": f"workspace={workspace}",
    }
    worker = shell.start("worker")
    assert "Completed" in shell.run("run", **here)
    assert worker.poll() is None, shell.logs()

    (report,) = (workspace / "store" / "report").glob("*/files/report.html")
    assert "centred_cosine" in report.read_text(encoding="utf-8")
    (record,) = (json.loads(path.read_text()) for path in (workspace / "runs").glob("*.json"))
    assert set(record["metrics"]["category"]) == {"centred_cosine", "cprl", "chance"}
    assert not any(record["cached"].values())
    # Where the README says that the address is found.
    assert re.search(r"dashboard.*http://\S+:\d+/status", shell.log("worker").read_text(), re.I)

    here = {'"emoji"': f'"{experiment}"', '".cppcl"': f'"{workspace}"'}
    log = shell.run("stage", **here)
    assert "Cached" in log, "the stage alone takes what the deployed run stored"


def test_a_stage_gets_a_deployment_of_its_own(deployed):
    deployed.shell.run("stage-deploy")
    deployment = deployed.shell.get("/api/deployments/name/cppcl-report/on-demand")
    assert deployment["work_pool_name"] == "local"
    assert deployment["entrypoint"] == "flows/experiment.py:report_flow"
