"""What the commands on stored artifacts share, here and in an object store."""

from __future__ import annotations

from typing import Any

from cppcl.errors import InputError
from deployments.terminal import PLAIN_WIDTH, Terminal
from tasks.stages.names import STAGES
from tasks.workspace import Workspace


def check_there(workspace: Workspace) -> None:
    """Refuse a workspace that was not made yet."""
    if not workspace.root.is_dir():
        raise InputError(
            f"workspace {str(workspace.root)!r} does not exist; give the one of your runs with "
            "--workspace"
        )


def check_stages(names: list[str]) -> None:
    """Refuse names that are no stages."""
    for name in names:
        if name not in STAGES:
            raise InputError(f"store ls {name}: the stages are {', '.join(STAGES)}")


def room(terminal: Terminal) -> tuple[int, int]:
    """Return how many digits of a key, and characters of its parameters, fit into a line.

    In a narrow terminal, the beginning of a key is enough to name it.
    """
    return (32, 60) if terminal.console.width >= PLAIN_WIDTH else (12, 20)


def shorten(parameters: dict[str, Any], width: int) -> str:
    """Return parameters in at most ``width`` characters."""
    text = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return text if len(text) <= width else f"{text[: width - 3]}..."
