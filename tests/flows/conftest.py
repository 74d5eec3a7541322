"""The chain without Prefect: each stage called as a plain function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows.chain import Chain
from flows.config import Experiment
from flows.load import load_experiment
from flows.selection import Selection
from storage import Reference
from tasks.stage import StageResult
from tasks.workspace import Workspace


class PlainChain(Chain):
    """Notes every piece of every stage under a name."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.pieces: dict[str, list[StageResult]] = {}

    def stage(self, name: str, task: Any, /, **arguments: Any) -> Reference:
        result = task.fn.__wrapped__(
            workspace=self.workspace, mode=self.selection.mode(name), **arguments
        )
        words = [
            name,
            arguments.get("rule"),
            arguments.get("modality"),
            arguments.get("extractor"),
            arguments.get("what", "").split(",")[0],
        ]
        self.pieces.setdefault(" ".join(filter(None, words)), []).append(result)
        return self.record.add(result)


@pytest.fixture(scope="session")
def run_plain() -> Callable[..., PlainChain]:
    """Run an experiment, a configuration or a file of one, in this process."""

    def run(
        experiment: Experiment | str,
        workspace: Workspace,
        *overrides: str,
        selection: Selection = Selection(),  # noqa: B008  (frozen)
    ) -> PlainChain:
        if not isinstance(experiment, Experiment):
            experiment = load_experiment(str(experiment), overrides)
        chain = PlainChain(experiment, workspace, selection)
        chain.run()
        return chain

    return run
