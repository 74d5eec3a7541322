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
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.deployments.processes import wait_for

ROOT = Path(__file__).parents[2]
README = ROOT / "deployments" / "README.md"
CONFIGURATION = ROOT / "deployments" / "prefect.yaml"
README_PORT = "4200"
COMMAND_TIMEOUT_S = 600
SERVER_TIMEOUT_S = 300
STOP_TIMEOUT_S = 40
SCHEDULE_TIMEOUT_S = 600

FLOWS = {
    "cppcl/on-demand": "flows/experiment.py:run_experiment",
    "cppcl-index/nightly": "flows/index.py:update_index",
    "cppcl-retraining/weekly": "flows/promotion.py:retrain",
    "cppcl/tuberlin-extract": "flows/experiment.py:run_experiment",
    "cppcl-reproduce/on-demand": "flows/reproduction/reproduce.py:run_reproduction",
}
EVERY_15_SECONDS = "* * * * * */15"
SCHEDULES = {"cppcl-index/nightly": "0 3 * * *", "cppcl-retraining/weekly": "0 4 * * 0"}

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

        def well() -> bool:
            with suppress(OSError):
                return self.get("/api/health") is True
            return False

        assert wait_for(well, server, SERVER_TIMEOUT_S), f"it did not come up:\n{self.logs()}"

    def get(self, path: str) -> Any:
        """Document that the server gives for a path."""
        return self._ask("GET", path, None)

    def ask(self, path: str, **body: Any) -> Any:
        """Document that the server gives for a question."""
        return self._ask("POST", path, json.dumps(body))

    def _ask(self, method: str, path: str, body: str | None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200, f"{path}: {response.status} {response.reason}"
            return json.load(response)
        finally:
            connection.close()

    def artifact(self, key: str) -> str:
        """Text of the latest artifact of a key."""
        return str(self.get(f"/api/artifacts/{key}/latest")["data"])

    def wait_for_run(self, flow: str, worker: subprocess.Popen[bytes]) -> dict[str, Any]:
        """Wait until a run of a flow has completed that began after this was asked."""
        ended = {"any_": ["COMPLETED", "FAILED", "CRASHED"]}
        after = {"after_": datetime.now(UTC).isoformat()}
        asked = {
            "flows": {"name": {"any_": [flow]}},
            "flow_runs": {"state": {"type": ended}, "start_time": after},
            "sort": "START_TIME_ASC",
        }
        path = "/api/flow_runs/filter"
        runs = wait_for(lambda: self.ask(path, **asked), worker, SCHEDULE_TIMEOUT_S)
        assert runs, f"no run of {flow} completed by the clock:\n{self.logs()}"
        assert runs[0]["state_type"] == "COMPLETED", self.logs()
        return dict(runs[0])

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
def deployed(tmp_path_factory) -> Iterator[Deployed]:
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
        deployments = {name: shell.get(f"/api/deployments/name/{name}") for name in FLOWS}
        # Else a worker would begin a run if the clock struck during the tests.
        shell.run("pause")
        yield Deployed(shell, deployments)
    finally:
        shell.stop()


@pytest.fixture(scope="module")
def experiment(tmp_path_factory, draw_pictures, write_experiment) -> Path:
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


@dataclass(frozen=True)
class Watched:
    """A workspace in which a deployed run has completed, and what was seen of it."""

    workspace: Path
    experiment: Path
    output: str
    worker: subprocess.Popen[bytes]


@pytest.fixture(scope="module")
def watched(deployed, experiment, tmp_path_factory) -> Watched:
    shell, workspace = deployed.shell, tmp_path_factory.mktemp("watched") / "workspace"
    here = {
        "experiment=emoji": f"experiment={experiment}",
        "workspace=.cppcl": f"workspace={workspace}",
    }
    worker = shell.start("worker")
    output = shell.run("run", **here)
    assert worker.poll() is None, shell.logs()
    return Watched(workspace, experiment, output, worker)


def test_three_deployments_wait_to_be_asked_and_two_go_by_the_clock(deployed):
    for name, deployment in deployed.deployments.items():
        assert deployment["entrypoint"] == FLOWS[name]
        assert deployment["work_pool_name"] == "local"
        assert deployment["parameters"]["workspace"] == ".cppcl"
        assert f"`{name}`" in README.read_text()
        (step,) = deployment["pull_steps"]
        (options,) = step.values()
        assert Path(options["directory"]).samefile(ROOT)
        if name not in SCHEDULES:
            assert deployment["schedules"] == []
            continue
        (schedule,) = deployment["schedules"]
        assert schedule["active"]
        assert schedule["schedule"]["cron"] == SCHEDULES[name]
        assert schedule["schedule"]["timezone"] == "UTC"
        assert f"`{SCHEDULES[name]}`" in README.read_text()
        assert deployment["global_concurrency_limit"]["limit"] == 1
        assert deployment["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"
    assert str(ROOT) not in CONFIGURATION.read_text(), "the file must fit any machine"


def test_forms_are_typed_by_the_experiment(deployed):
    schema = deployed.deployments["cppcl/on-demand"]["parameter_openapi_schema"]
    assert {"Experiment", "Protocol", "Compute", "Evaluation"} <= schema["definitions"].keys()
    assert "train" in json.dumps(schema["properties"]["only"])
    schema = deployed.deployments["cppcl-retraining/weekly"]["parameter_openapi_schema"]
    assert schema["properties"]["tolerance"]["maximum"] == 1
    assert "Experiment" in schema["definitions"]


def test_ten_commands_lead_to_a_scheduled_run():
    text = README.read_text()
    walk = text[text.index("## From nothing") : text.index("After the run at that time")]
    blocks = re.findall(r"(?ms)^```bash.*?\n(.*?)^```$", walk)
    assert sum(len(block.splitlines()) for block in blocks) == 10
    made = subprocess.run(
        ["make", "-n", "-B", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "pip install" in made.stdout
    assert "cppcl run emoji --workspace .cppcl" in made.stdout


def test_the_clock_can_be_stopped(deployed):
    for name in SCHEDULES:
        (schedule,) = deployed.shell.get(f"/api/deployments/name/{name}")["schedules"]
        assert not schedule["active"]


def test_a_watched_run_completes_and_leaves_a_report(deployed, watched):
    shell, workspace = deployed.shell, watched.workspace
    assert "Completed" in watched.output
    (report,) = (workspace / "store" / "report").glob("*/files/report.html")
    assert "centred_cosine" in report.read_text(encoding="utf-8")
    (record,) = (json.loads(path.read_text()) for path in (workspace / "runs").glob("*.json"))
    assert set(record["metrics"]["category"]) == {"centred_cosine", "cprl", "chance"}
    assert not any(record["cached"].values())
    # Where the README says that the address is found.
    assert re.search(r"dashboard.*http://\S+:\d+/status", shell.log("worker").read_text(), re.I)
    assert re.search(r"http://\S+:\d+/status", shell.artifact("tiny-dashboard"))

    here = {'"emoji"': f'"{watched.experiment}"', '".cppcl"': f'"{workspace}"'}
    log = shell.run("stage", **here)
    assert "Cached" in log, "the stage alone takes what the deployed run stored"


def test_new_pictures_are_found_after_a_scheduled_run(deployed, watched, draw_pictures, tmp_path):
    shell, workspace = deployed.shell, watched.workspace
    folder, here = tmp_path / "gallery", {".cppcl": str(workspace)}
    shell.run("gallery", gallery=str(folder))
    draw_pictures(tmp_path / "new", per_class=2, first=20)
    (tmp_path / "new" / "images" / "circle").rename(folder / "circle")
    (folder / "circle" / "broken.png").write_bytes(b"no picture")
    # As an operator writes it: another workspace, another folder, one worker.
    ours = CONFIGURATION.read_text()
    for old, new in {
        "workspace: .cppcl": f"workspace: {workspace}",
        "model: emoji, folder: gallery": f"model: tiny, folder: {folder}, workers: 1",
    }.items():
        assert old in ours
        ours = ours.replace(old, new)
    (tmp_path / "prefect.yaml").write_text(ours)
    shell.run("deploy", **{"deployments/prefect.yaml": str(tmp_path / "prefect.yaml")})
    shell.run("pause")

    shell.run("schedule", **{"0 3 * * *": EVERY_15_SECONDS})
    try:
        first = shell.wait_for_run("cppcl-index", watched.worker)
        text = shell.artifact("gallery-index")
        assert "index gallery: 3 pictures; 3 added, 0 changed, 0 removed, 1 skipped" in text
        assert "- `circle/broken.png`: " in text
        (tmp_path / "new" / "images" / "square").rename(folder / "square")
        (folder / "circle" / "20.png").unlink()
        second = shell.wait_for_run("cppcl-index", watched.worker)
    finally:
        shell.run("pause")
    assert first["auto_scheduled"]
    assert second["auto_scheduled"]
    sketch = watched.experiment.parent / "shapes" / "sketches" / "square" / "0.png"
    found = shell.run("search", **here, **{"sketch.png": str(sketch)})
    assert "square/20.png" in found
    assert "square/21.png" in found
    assert "circle/21.png" in found
    assert "circle/20.png" not in found
    assert "broken.png" not in found


def test_a_run_that_fails_says_how_to_go_on(deployed, watched):
    shell = deployed.shell
    here = {"experiment=emoji": "experiment=nowhere", "workspace=.cppcl": "workspace=there"}
    process = shell.start("run", **here)
    assert process.wait(COMMAND_TIMEOUT_S) == 1

    def note():
        with suppress(AssertionError):  # not yet there
            return shell.artifact("cppcl-failure")

    text = wait_for(note, watched.worker, STOP_TIMEOUT_S)
    assert "nowhere: failed" in text
    assert "InputError: experiment 'nowhere' is neither one of" in text
    command = "prefect deployment run cppcl/on-demand --watch -p experiment=nowhere"
    assert f"{command} -p workspace=there" in text


def test_a_model_is_promoted(deployed, watched):
    here = {"emoji": "tiny", ".cppcl": str(watched.workspace)}
    assert "promoted tiny-" in deployed.shell.run("promote", **here)
    assert "served" in deployed.shell.run("promotions", **here)


def test_a_stage_gets_a_deployment_of_its_own(deployed):
    deployed.shell.run("stage-deploy")
    deployment = deployed.shell.get("/api/deployments/name/cppcl-report/on-demand")
    assert deployment["work_pool_name"] == "local"
    assert deployment["entrypoint"] == "flows/experiment.py:report_flow"
