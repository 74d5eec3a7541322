"""Render what an experiment measured."""

from __future__ import annotations

from typing import Any

from storage import Recipe, Reference, Writer
from tasks.stage import Mode, StageResult, produce, stage_task
from tasks.workspace import Workspace

VERSION = "1"


def report_on_experiment(
    *,
    workspace: Workspace,
    table: Reference,
    scores: dict[str, dict[str, list[Reference]]],
    configuration: dict[str, Any],
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the report of an experiment."""
    inputs = {"table": table} | {
        f"{protocol}.{method}.{number}": reference
        for protocol, methods in scores.items()
        for method, references in methods.items()
        for number, reference in enumerate(references)
    }
    recipe = Recipe("report", VERSION, {"configuration": configuration}, inputs)

    def create(writer: Writer) -> None:
        writer.put_text("report.html", "soon")

    return produce(workspace.store, recipe, create, mode=mode, what="report")


render_report = stage_task(report_on_experiment)
