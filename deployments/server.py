"""Prefect's server: started or found before a flow runs, and ended with this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cppcl.errors import CppclError
from deployments.guard import guarded, sessions_of_their_own
from deployments.terminal import Terminal


@contextmanager
def prefect_ready(terminal: Terminal, workspace: Path, *, verbose: bool) -> Iterator[None]:
    """Make a server answer, so that flows can be imported and run within the ``with`` block.

    Parameters
    ----------
    terminal : Terminal
        Where it is told.
    workspace : path
        Takes Prefect's records where its home cannot be written.
    verbose : bool
        Whether Prefect's log is shown.

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
    with guarded(reach_server()):
        yield


def move_home(workspace: Path) -> Path | None:
    """Let Prefect keep its records in the workspace where its home cannot be written.

    Prefect starts its server again and again there, and says nothing.
    """
    try:
        home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect").expanduser()
        home.mkdir(parents=True, exist_ok=True)
        if os.access(home, os.W_OK | os.X_OK):
            return None
    except (OSError, RuntimeError):
        pass
    home = workspace.absolute() / "prefect"
    os.environ["PREFECT_HOME"] = str(home)
    return home


def reach_server() -> int | None:
    """Start or find Prefect's server; returns its process id if it is a child of this one.

    Raises
    ------
    CppclError
        If it does not answer.
    """
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.settings import get_current_settings

    settings = get_current_settings()
    problem: Exception | None
    try:
        with sessions_of_their_own(), get_client(sync_client=True) as client:
            problem = client.api_healthcheck()
    except (RuntimeError, ValueError, OSError, httpx.HTTPError) as error:
        problem = error
    if problem is None:
        if settings.api.url:
            return None
        from prefect.server.api.server import SubprocessASGIServer

        process = SubprocessASGIServer().server_process
        return process.pid if process else None
    if settings.api.url:
        raise CppclError(
            f"no Prefect server answers at PREFECT_API_URL={settings.api.url} ({problem}); start "
            "it with 'prefect server start', or unset the variable"
        ) from problem
    raise CppclError(
        f"Prefect's server did not start ({problem}); see that {settings.home} can be written "
        "and has space, or set PREFECT_HOME to another folder"
    ) from problem
