"""What surrounds a run: its folder, Prefect's home and server, the encoding of the terminal."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deployments.commands.stages
from cppcl.errors import CppclError
from deployments.cli import main
from deployments.server import check_server, may_name_server, move_home, read_settings

Command = Callable[..., Any]


@pytest.fixture
def prefect_home(monkeypatch) -> None:
    """Put the variable back that the command may set."""
    monkeypatch.setenv("PREFECT_HOME", os.environ["PREFECT_HOME"])


@pytest.mark.usefixtures("prefect_home")
def test_a_home_that_can_be_written_stays(tmp_path) -> None:
    os.environ["PREFECT_HOME"] = str(tmp_path / "home")
    assert move_home(tmp_path / "workspace") is None
    assert os.environ["PREFECT_HOME"] == str(tmp_path / "home")


@pytest.mark.usefixtures("prefect_home")
@pytest.mark.parametrize("trouble", ["a file", "no permission"])
def test_a_home_that_cannot_be_written_moves_into_the_workspace(
    trouble, tmp_path, monkeypatch
) -> None:
    home = tmp_path / "home"
    if trouble == "a file":
        home.touch()
    else:
        monkeypatch.setattr(os, "access", lambda path, mode: False)
    os.environ["PREFECT_HOME"] = str(home)
    expected = tmp_path / "workspace" / "prefect"
    assert move_home(tmp_path / "workspace") == expected
    assert os.environ["PREFECT_HOME"] == str(expected)
    assert expected.is_dir()  # Prefect makes no folder above it


def test_a_server_that_does_not_answer_is_named():
    from prefect.settings import PREFECT_API_URL, temporary_settings

    for address in ("http://127.0.0.1:9/api", "nonsense"):
        with (
            temporary_settings({PREFECT_API_URL: address}),
            pytest.raises(CppclError, match=f"PREFECT_API_URL={address}"),
        ):
            check_server(address)


def test_a_server_that_answers_is_taken(prefect_server):
    check_server(prefect_server)


def test_children_do_not_import_from_the_current_folder(tmp_path, cppcl):
    """Prefect starts its server as a module, which Python looks for in the current folder."""
    (tmp_path / "queue.py").write_text("raise SystemExit('shadowed')")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    code = "from deployments.cli import quieten; quieten(); import json, os; " + (
        "print(json.dumps(dict(os.environ)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    child = [sys.executable, "-m", "concurrent.futures.thread"]  # imports queue
    for variables, code_of_child in ((environment, 1), (json.loads(told.stdout), 0)):
        ended = subprocess.run(
            child, cwd=tmp_path, env=variables, capture_output=True, check=False
        )
        assert ended.returncode == code_of_child


def test_what_the_terminal_cannot_show_is_escaped(monkeypatch):
    def show(options: Any) -> int:
        print("76.7 ± 2.9")
        return 0

    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(deployments.commands.stages, "run", show)
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["stages"]) == 0
    screen.flush()
    assert screen.buffer.getvalue() == b"76.7 \\xb1 2.9\n"


@pytest.mark.parametrize(("command", "code"), [("stages >&-", 0), ("run nope 2>&-", 2)])
def test_closed_streams_take_everything(command, code):
    ended = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m deployments.cli {command}'],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout + ended.stderr) == (code, "")


def test_lack_of_memory_is_told(cppcl, monkeypatch):
    def fail(options: Any) -> int:
        raise MemoryError("Unable to allocate 23.8 GiB")

    monkeypatch.setattr(deployments.commands.stages, "run", fail)
    result = cppcl("stages", code=1)
    assert result.stderr.startswith("cppcl: out of memory (Unable to allocate 23.8 GiB); use")


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("profiles.toml", "[profiles.mine]\nPREFECT_API_URL = 'http://h/api'", True),
        ("profiles.toml", "active = 'local'", False),
        ("pyproject.toml", "[tool.prefect.api]\nurl = 'http://h/api'", True),
        ("pyproject.toml", "dependencies = ['prefect']", False),
        ("pyproject.toml", "[tool]\nprefect.api.url = 'http://h/api'", True),
        ("prefect.toml", "[api]\nurl = 'http://h/api'", True),
        ("prefect.toml", "profiles_path = 'mine.toml'", True),
        (".env", "PREFECT_API_URL=http://h/api", True),
        (".env", "prefect_api_url=http://h/api", True),
        (".env", "OTHER=1", False),
        (".env/activate", "", False),
    ],
)
def test_prefect_is_asked_for_its_server_where_one_may_be_set(
    monkeypatch, tmp_path, file, content, expected
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    for name in ("PREFECT_API_URL", "PREFECT_PROFILES_PATH"):
        monkeypatch.delenv(name, raising=False)
    assert not may_name_server()
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content)
    assert may_name_server() is expected


@pytest.mark.parametrize("name", ["PREFECT_API_URL", "prefect_api_url"])
def test_prefect_is_asked_for_its_server_where_a_variable_names_one(monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.setenv(name, "http://h/api")
    assert may_name_server()


def test_settings_that_prefect_cannot_read_are_told(monkeypatch):
    def fail() -> None:
        raise ValueError("1 validation error\nport\n  no integer")

    monkeypatch.setattr("prefect.settings.get_current_settings", fail)
    with pytest.raises(
        CppclError, match=r"settings \(1 validation error port no integer\); see the variables"
    ):
        read_settings()
