"""The chain without Prefect: each stage called as a plain function."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tasks.reporting.report
from flows.chain import Chain
from flows.configuration.experiment import Experiment
from flows.configuration.load import load_experiment
from flows.selection import Selection
from storage import Reference
from tasks.stages.contract import StageResult
from tasks.workspace import Workspace


@pytest.fixture(scope="module", autouse=True)
def undrawn(blank_figures: None) -> None:
    """Draw no figure: tests of reports look at them."""


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
            arguments.get("label", "").split(",")[0],
        ]
        self.pieces.setdefault(" ".join(filter(None, words)), []).append(result)
        return self.record.add(result)

    def train_ahead(self, recipes: Any) -> dict[Reference, float]:
        return {}

    def search_ahead(self, searches: Any) -> None:
        pass


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


@pytest.fixture(scope="module")
def blank_reports() -> Iterator[None]:
    """Pages of no content: drawing them takes longer than all other stages together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks.reporting.report, "gather", lambda *arguments: None)
        patch.setattr(tasks.reporting.report, "render", lambda data: {"report.html": b""})
        yield
