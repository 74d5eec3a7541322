"""Prefect's server: found or started before a flow runs, and ended with this process."""

from __future__ import annotations

import atexit
import importlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

from cppcl.errors import CppclError
from deployments.terminal import Terminal

if TYPE_CHECKING:
    from prefect.settings import Settings

START_SECONDS = 120.0
STOP_SECONDS = 5.0
FOR_ONE_RUN = {
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
    "PREFECT_UI_ENABLED": "false",
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
}
"""What Prefect gives its own temporary servers: no pages, and no services for deployments.

Such a server must not touch those of others. Types of blocks are for pages and deployments, too; a
server that stays registers them itself.
"""

SET_IN = {
    Path(".env"): rb"(?i)prefect",
    Path("prefect.toml"): rb"",
    Path("pyproject.toml"): rb"prefect\s*[].=]",
}
"""Files of the current folder that may set Prefect's server, and a pattern of those that do."""

# Becomes the program that is its second argument, which the kernel then kills when the process
# that is its first argument ends, however that ends. Where that has ended already, ends at once.
END_WITH_PARENT = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


def prepare_prefect(terminal: Terminal, workspace: Path, *, verbose: bool) -> None:
    """Make a server answer, so that flows can be imported and run in this process.

    Call it in the main thread: the server ends with the thread that starts it.

    Parameters
    ----------
    terminal : Terminal
        Shows messages.
    workspace : path
        Takes Prefect's records where its home cannot be written.
    verbose : bool
        Show Prefect's log.

    Raises
    ------
    CppclError
        If no server answers.
    """
    # Prefect reads its settings when it is imported.
    if not verbose:
        os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    terminal.message("starting Prefect")
    if home := move_home(workspace):
        terminal.message(f"Prefect's home cannot be written; it is {home} for this run")
    if not may_name_server():
        start_server()
        return
    if url := read_settings().api.url:
        check_server(url)
    else:
        start_server()


def read_settings() -> Settings:
    """Prefect's settings, which it reads when it is imported.

    Raises
    ------
    CppclError
        If one of their files cannot be read, or holds what Prefect does not take.
    """
    try:
        from prefect.settings import get_current_settings

        return get_current_settings()
    except (ValueError, OSError) as error:
        said = " ".join(str(error).split())
        raise CppclError(
            f"Prefect cannot read its settings ({said}); see the variables PREFECT_..., .env, "
            "prefect.toml and pyproject.toml here, and profiles.toml in Prefect's home"
        ) from error


def may_name_server() -> bool:
    """False if surely no server is set: Prefect, which knows, takes two seconds to load."""
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect").expanduser()
    profiles = Path(os.environ.get("PREFECT_PROFILES_PATH") or home / "profiles.toml")
    # Prefect takes variables in small letters, too.
    return "PREFECT_API_URL" in map(str.upper, os.environ) or any(
        path.is_file() and re.search(pattern, path.read_bytes())
        for path, pattern in {profiles: rb"API_URL", **SET_IN}.items()
    )


def move_home(workspace: Path) -> Path | None:
    """Keep Prefect's records in the workspace if its home cannot be written.

    Otherwise its server would fail to start without a message.

    Raises
    ------
    OSError
        Where the workspace cannot be written either.
    """
    try:
        home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect").expanduser()
        home.mkdir(parents=True, exist_ok=True)
        if os.access(home, os.W_OK | os.X_OK):
            return None
    except (OSError, RuntimeError):
        pass
    home = workspace.absolute() / "prefect"
    home.mkdir(parents=True, exist_ok=True)  # Prefect makes no parents
    os.environ["PREFECT_HOME"] = str(home)
    return home


def check_server(url: str) -> None:
    """Raise `CppclError` if the server that the user has set does not answer."""
    import httpx
    from prefect.client.orchestration import get_client

    try:
        with get_client(sync_client=True) as client:
            problem = client.api_healthcheck()
    except (RuntimeError, ValueError, OSError, httpx.HTTPError) as error:
        problem = error
    if problem is not None:
        raise CppclError(
            f"no Prefect server answers at PREFECT_API_URL={url} ({problem}); start it with "
            "'prefect server start', or unset the variable"
        ) from problem


def start_server() -> None:
    """Start a server for this process, wait until it answers, and set it in Prefect.

    It has a session of its own: Ctrl-C, or a signal to the whole process group, must not take it
    from a run that is ending in order.

    Raises
    ------
    CppclError
        If it does not answer.
    """
    # The server keeps the file, which has no name, as long as it runs.
    with tempfile.TemporaryFile() as words:
        _start(words)


def _start(words: IO[bytes]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    server = subprocess.Popen(
        [
            *(sys.executable, "-IS", "-c", END_WITH_PARENT, str(os.getpid())),
            # Without Prefect's command line, which takes a second to import.
            *(
                sys.executable,
                "-m",
                "uvicorn",
                "--factory",
                "prefect.server.api.server:create_app",
            ),
            *("--host", "127.0.0.1", "--port", str(port), "--log-level", "error"),
        ],
        env={**os.environ, **FOR_ONE_RUN},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=words,
        start_new_session=True,
    )
    # Before anything of Prefect is: it then ends after the last events were sent to it.
    atexit.register(stop_server, server)
    # The run needs them, and the server needs about as long to start.
    read_settings()
    importlib.import_module("flows.experiment")
    import httpx

    limit = time.monotonic() + START_SECONDS
    # One client: making one reads all certificates, which costs more than asking.
    with httpx.Client(trust_env=False) as client:
        while server.poll() is None and time.monotonic() < limit:
            with suppress(httpx.TransportError):
                if client.get(f"{url}/health").is_success:
                    break
            time.sleep(0.05)
        else:
            refuse_server(server, words)
    from prefect.context import refresh_global_settings_context

    os.environ["PREFECT_API_URL"] = url
    refresh_global_settings_context()


def refuse_server(server: subprocess.Popen[bytes], words: IO[bytes]) -> NoReturn:
    """Say why a server does not answer, and stop it."""
    from prefect.settings import get_current_settings

    ended = server.poll() is not None
    stop_server(server)
    raise CppclError(
        "Prefect's server did not start "
        f"({f'exit code {server.returncode}' if ended else f'in {START_SECONDS:g} s'}"
        f"{last_words(words)}); see "
        f"that {get_current_settings().home} can be written, has space and is not locked, or "
        "set PREFECT_HOME to another folder"
    )


def last_words(stream: IO[bytes]) -> str:
    """Last line that a program wrote, after a colon; nothing if it wrote none."""
    stream.seek(0)
    lines = stream.read().decode(errors="replace").strip().splitlines()
    return f": {lines[-1].strip()[:500]}" if lines else ""


def stop_server(server: subprocess.Popen[bytes]) -> None:
    """End a server in order if that takes no longer than a few seconds."""
    server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
