"""Files for containers and for systemd: sound by their linters, and with the README's commands."""

from __future__ import annotations

import http.server
import re
import runpy
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deployments.processes import wait_for

ROOT = Path(__file__).parents[2]
CONTAINER, UNITS = ROOT / "deployments/container", ROOT / "deployments/systemd"
README = (ROOT / "deployments/README.md").read_text()
BIN = Path(sys.executable).parent
INSTALLED = "/opt/cppcl"
START_TIMEOUT_S = STOP_TIMEOUT_S = 120


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((CONTAINER / "compose.yaml").read_text()))


def block(name: str) -> str:
    """Commands of a named block of the README."""
    return re.search(rf"(?ms)^```bash {name}\n(.*?)^```$", README)[1].strip()


def unit_commands() -> list[list[str]]:
    """Words of every command that a unit starts, without the folder of the installation."""
    lines = (line for file in UNITS.glob("*.service") for line in file.read_text().splitlines())
    found = [line.partition("=")[2] for line in lines if line.startswith("Exec")]
    return [shlex.split(text.removeprefix(f"{INSTALLED}/.venv/bin/")) for text in found]


def test_the_container_file_is_sound():
    linter = BIN / "hadolint"
    checked = subprocess.run(
        [linter, CONTAINER / "Containerfile"], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout) == (0, "")
    wrong = (CONTAINER / "Containerfile").read_text().replace("WORKDIR /app", "WORKDIR app")
    checked = subprocess.run(
        [linter, "-"], input=wrong, capture_output=True, text=True, check=False
    )
    assert "DL3000" in checked.stdout


def test_the_image_holds_what_runs_need():
    text = (CONTAINER / "Containerfile").read_text()
    copied = {word for line in re.findall(r"^COPY (.*) \S+$", text, re.M) for word in line.split()}
    assert {"cppcl", "storage", "tasks", "flows", "deployments", "pyproject.toml"} <= copied
    assert all((ROOT / name).exists() for name in copied)
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert not copied & set(ignored)
    assert ".cppcl" in ignored


def test_services_of_the_compose_file_fit_together(compose):
    services = compose["services"]
    assert set(services) == {"server", "deploy", "worker", "scheduler", "dask-worker", "search"}
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= services.keys(), name
        for volume in service["volumes"]:
            source, place = volume.split(":")[-2:] if "$" not in volume else ("", "/app/gallery")
            assert source in {"", *compose["volumes"]} or place == "ro"
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), "nothing listens to other machines unasked"
    assert services["deploy"]["depends_on"]["server"]["condition"] == "service_healthy"
    done = services["worker"]["depends_on"]["deploy"]["condition"]
    assert done == "service_completed_successfully"
    # What the deployments call .cppcl and gallery, below the folder that runs start in.
    shared = services["worker"]["volumes"]
    assert "workspace:/app/.cppcl" in shared
    assert services["dask-worker"]["volumes"] == services["search"]["volumes"] == shared
    build = services["server"]["build"]
    assert (CONTAINER / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()


def test_the_commands_are_those_of_the_readme(compose):
    services = compose["services"]
    command = shlex.join(services["server"]["command"])
    assert command.replace(" --host 0.0.0.0", "") == block("server")
    assert shlex.join(services["worker"]["command"]) == block("worker")
    assert services["deploy"]["command"][:2] == ["sh", "-c"]
    steps = services["deploy"]["command"][2].split(" && ")
    assert steps == [f"{block('pool')} --overwrite", block("deploy")]
    units = unit_commands()
    for text in (*steps, block("server"), block("worker")):
        assert shlex.split(text) in units


def test_units_and_containers_serve_by_a_command_that_exists(compose):
    from deployments.cli import build_parser

    served = [compose["services"]["search"]["command"]]
    served += [words for words in unit_commands() if words[0] == "cppcl"]
    assert len(served) == 2
    for words in served:
        options = build_parser().parse_args(words[1:])
        assert options.command == "serve"
        assert options.port == 8766


@pytest.fixture
def units(tmp_path) -> Path:
    """Units as they would be with this installation."""
    for file in (*UNITS.glob("*.service"), *UNITS.glob("*.target")):
        text = file.read_text().replace(f"{INSTALLED}/.venv/bin", str(BIN))
        (tmp_path / file.name).write_text(text.replace(INSTALLED, str(ROOT)))
    return tmp_path


def parse_unit(text: str) -> dict[str, dict[str, list[str]]]:
    """Settings by section; what a unit file may not hold raises."""
    sections: dict[str, dict[str, list[str]]] = {}
    current: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if found := re.fullmatch(r"\[(Unit|Service|Install)\]", line):
            current = sections.setdefault(found[1], {})
        else:
            name, value = re.fullmatch(r"([A-Z][A-Za-z]+)=(.*)", line).groups()
            current.setdefault(name, []).append(value)
    return sections


def test_units_start_what_is_there_in_order(units):
    parsed = {file.name: parse_unit(file.read_text()) for file in units.iterdir()}
    names = {*parsed, "network.target", "multi-user.target"}
    for sections in parsed.values():
        unit = sections["Unit"]
        for key in ("After", "Requires", "Wants", "PartOf"):
            wanted = " ".join(unit.get(key, ())).split()
            assert {re.sub(r"@\d+", "@", name) for name in wanted} <= names
        service = sections.get("Service")
        for line in service["ExecStart"] if service else ():
            assert Path(line.split()[0]).is_file(), line
    assert "cppcl-server.service" in parsed["cppcl-worker.service"]["Unit"]["After"][0]
    for file in parsed:
        if file.endswith(".service"):
            assert parsed[file]["Service"]["User"] == ["cppcl"]


def test_systemd_takes_the_units(units):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:  # a machine without systemd: the units are parsed above all the same
        return
    files = sorted(map(str, units.iterdir()))
    checked = subprocess.run(
        [analyze, "verify", *files], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    wrong = units / "cppcl-worker.service"
    wrong.write_text(wrong.read_text().replace("Restart=", "Restrat="))
    checked = subprocess.run(
        [analyze, "verify", *files], capture_output=True, text=True, check=False
    )
    assert "Restrat" in checked.stderr


class Health(http.server.BaseHTTPRequestHandler):
    """Says that it is ill when first asked, and then that it is well."""

    answers = iter(())

    def do_GET(self) -> None:
        self.send_response(next(self.answers) if self.path == "/api/health" else 404)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


def test_others_start_when_the_server_answers(monkeypatch, capsys):
    path = UNITS / "wait_for_server.py"
    assert (
        f"ExecStartPost={INSTALLED}/.venv/bin/python {path.relative_to(ROOT)}"
        in (UNITS / "cppcl-server.service").read_text()
    )
    wait = runpy.run_path(str(path))
    monkeypatch.setattr(Health, "answers", iter((500, 200)))
    with http.server.HTTPServer(("127.0.0.1", 0), Health) as server:
        monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{server.server_port}/api")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        assert wait["main"]() == 0
        server.shutdown()
        thread.join()
    assert list(Health.answers) == [], "it asks again"
    monkeypatch.setitem(wait["main"].__globals__, "LIMIT_S", 0)
    assert wait["main"]() == 1
    assert "nothing answers at http://127.0.0.1:" in capsys.readouterr().err


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts commands, and stops them in the end."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*words: object) -> subprocess.Popen[bytes]:
        processes.append(
            subprocess.Popen(
                [BIN / str(words[0]), *map(str, words[1:])],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
            )
        )
        return processes[-1]

    yield start
    for process in reversed(processes):
        process.terminate()
    for process in processes:
        process.wait(STOP_TIMEOUT_S)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.flow
def test_a_dask_cluster_by_these_commands_does_the_work(compose, started, tmp_path):
    from tasks.cluster.jobs import run_jobs
    from tasks.cluster.session import cluster_session

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    services = compose["services"]
    scheduler = [word.replace("8786", port) for word in services["scheduler"]["command"]]
    process = started(*(":0" if word == ":8787" else word for word in scheduler))
    here = {
        "tcp://scheduler:8786": f"tcp://127.0.0.1:{port}",
        "${CPPCL_WORKERS:-2}": "1",
        "/tmp": str(tmp_path),
    }
    started(*(here.get(word, word) for word in services["dask-worker"]["command"]))
    assert wait_for(lambda: listens(int(port)), process, START_TIMEOUT_S)
    with cluster_session(f"tcp://127.0.0.1:{port}") as session:
        assert session.resource("cpu") == {"CPU": 1}
        assert session.memory_of_a_worker() == 3 * 2**30
        done = list(run_jobs(len, ["a", "bb"], device="cpu", name="length", hint=""))
    assert sorted(done) == [(0, 1), (1, 2)]
