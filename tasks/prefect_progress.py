"""Progress of a task where users of Prefect look."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.context import TaskRunContext


@contextmanager
def prefect_progress(label: str) -> Iterator[Callable[..., None]]:
    """Show progress as an artifact of the Prefect task that runs, at most once a second.

    The artifact is made when there is something to show: the share that is done, and perhaps how
    fast it goes, which stands beside what it is.
    """
    identifier: Any = None
    last = 0.0

    def show(share: float, detail: str = "") -> None:
        nonlocal identifier, last
        if TaskRunContext.get() is None:
            return
        words = f"{label}: {detail}" if detail else label
        if identifier is None:
            identifier = create_progress_artifact(progress=100 * share, description=words)
        elif share >= 1 or time.monotonic() - last > 1:
            update_progress_artifact(identifier, progress=100 * share, description=words)
        else:
            return
        last = time.monotonic()

    yield show
