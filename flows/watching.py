"""What a run leaves where users of Prefect look: remarks, dashboards, and why it failed."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prefect import get_client, get_run_logger
from prefect.artifacts import LinkArtifact, MarkdownArtifact
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, State, TaskRun
from prefect.context import FlowRunContext
from prefect.flows import Flow

from tasks.progress import listening

_BY_HAND = {
    "cppcl-sweep": ("sweep", "experiment"),
    "cppcl-index": ("index", "model", "folder"),
    "cppcl-reproduce": ("reproduce", "dataset"),
}
"""Commands that do what a flow does: words, and names of parameters."""

_FLAGS = {
    "overrides": "--set",
    "only": "--only",
    "until": "--until",
    "name": "--name",
    "items": "--only",
    "workspace": "--workspace",
}
"""What a command is told by, of parameters."""

_ANEW = {"force", "start", "anew", "again"}
"""Parameters by which something stored is computed anew; what was, need not be once more."""

_PATIENCE_S = 5.0
"""How long the server may take to hear that a task has ended."""

_DASHBOARD = re.compile(r"\bdashboard\b.*?(https?://\S+)", re.IGNORECASE)


def artifact_key(*words: str) -> str:
    """Key of an artifact in Prefect's pages: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")


@contextmanager
def watched(name: str) -> Iterator[None]:
    """Write remarks into the log of the flow run, and link each Dask dashboard that is named.

    Outside a flow run nothing happens; others may listen beside it.

    Parameters
    ----------
    name : str
        What the run is about; the link is the artifact ``<name>-dashboard``.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        yield
        return
    with listening(on_message=_teller(name, context.flow_run, get_run_logger().info)):
        yield


def _teller(name: str, run: FlowRun, log: Callable[[str], None]) -> Callable[[str], None]:
    linked: set[str] = set()

    def tell(message: str) -> None:
        log(message)
        found = _DASHBOARD.search(message)
        if found and found[1] not in linked:
            linked.add(found[1])
            LinkArtifact(
                key=artifact_key(name, "dashboard"),
                link=found[1],
                link_text="Dask dashboard",
                description="What workers do now. The address holds while the cluster runs.",
                flow_run_id=run.id,
            ).create()

    return tell


def tell_failure(flow: Flow[..., Any], run: FlowRun, state: State[Any]) -> None:
    """Leave an artifact that says what failed and with which command to go on.

    A hook of flows, for failed and crashed runs. Of a run by hand that was interrupted nothing is
    left: who did it knows.
    """
    if state.is_crashed() and run.deployment_id is None:
        return
    with get_client(sync_client=True) as client:
        tasks = _task_runs(client, run)
        deployment = client.read_deployment(run.deployment_id).name if run.deployment_id else None
    failed = [t.name for t in tasks if t.state and (t.state.is_failed() or t.state.is_crashed())]
    MarkdownArtifact(
        key=artifact_key(flow.name, "failure"),
        description=f"Why {run.name} ended as {state.name}, and how to go on",
        markdown=failure_text(flow.name, run, state, failed, deployment),
        flow_run_id=run.id,
    ).create()


def _task_runs(client: SyncPrefectClient, run: FlowRun) -> list[TaskRun]:
    """Task runs of a flow run that failed; the server hears of their ends a little later."""
    ours = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
    give_up = time.monotonic() + _PATIENCE_S
    while True:
        tasks = client.read_task_runs(flow_run_filter=ours)
        states = [task.state for task in tasks if task.state]
        if any(s.is_failed() or s.is_crashed() for s in states) or time.monotonic() > give_up:
            return tasks
        time.sleep(0.1)


def failure_text(
    flow: str, run: FlowRun, state: State[Any], failed: list[str], deployment: str | None
) -> str:
    """Markdown about a run that failed."""
    stages = f" in {', '.join(f'`{name}`' for name in failed)}" if failed else ""
    return (
        f"# {run.name}: {(state.name or state.type.value).lower()}{stages}\n\n"
        f"```\n{state.message or 'no message: see the log of the run'}\n```\n\n"
        "What was finished is kept. When the cause is fixed, go on with\n\n"
        f"```\n{going_on(flow, run.parameters, deployment)}\n```\n\n"
        f"and read the log with `prefect flow-run logs {run.id}`.\n"
    )


def going_on(flow: str, parameters: dict[str, Any], deployment: str | None) -> str:
    """Command that does what a run was to do; only what is missing is computed."""
    given = {
        name: value
        for name, value in parameters.items()
        if value not in (None, []) and name not in _ANEW
    }
    if deployment is not None:
        words = ["prefect", "deployment", "run", f"{flow}/{deployment}", "--watch"]
        for name, value in given.items():
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            words += ["-p", f"{name}={text}"]
        return shlex.join(words)
    words = ["cppcl", *_BY_HAND.get(flow, ("run", "experiment"))]
    words = [str(given.get(word, word)) for word in words]
    words += [str(option) for option in given.get("options", ())]
    words += ["--quick"] * bool(given.get("quick"))
    for name, flag in _FLAGS.items():
        values = given.get(name, [])
        for value in values if isinstance(values, list) else [values]:
            words += [flag, str(value)]
    return shlex.join(words)
