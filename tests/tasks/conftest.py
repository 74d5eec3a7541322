"""Every stage as a plain function, on one folder of shapes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tasks.workers.blocks
from cppcl.datasets.files import file_sha256
from storage import Artifact, Recipe, Reference
from tasks.progress import listening
from tasks.samples import open_pictures, open_split
from tasks.stages.build_curricula import curricula_of_split
from tasks.stages.contract import Mode, StageResult
from tasks.stages.encode import encode_features
from tasks.stages.evaluate import evaluate_method
from tasks.stages.extract import extract_features
from tasks.stages.fetch import fetch_data
from tasks.stages.split import split_table
from tasks.stages.train import train_method, training_recipe
from tasks.stages.tune import tune_method
from tasks.workers.blocks import Block
from tasks.workspace import Workspace


def fetch_folder(workspace: Workspace, root: Path) -> Reference:
    """Fetch a folder of pictures as it is now."""
    return fetch_data(
        workspace=workspace,
        name="folder",
        options={"root": root, "pairing": "name"},
        key_parameters={},
    ).reference


def extract_pictures(workspace: Workspace, root: Path, **changes: Any) -> StageResult:
    """Fetch a folder as it is now, and extract one modality."""
    given: dict[str, Any] = {
        "modality": "sketch",
        "extractor": "pixels",
        "options": {"size": [8, 8]},
        "longest_side": 40,
        "block_rows": 5,
    }
    if "table" not in changes:
        changes["table"] = fetch_folder(workspace, root)
    return extract_features(workspace=workspace, **given | changes)


class Stages:
    """Every stage before training, on one folder; results are references."""

    def __init__(self, workspace: Workspace, root: Path) -> None:
        self.workspace = workspace
        self.table = fetch_folder(workspace, root)
        self.split = split_table(
            workspace=workspace, table=self.table, rule="instance", options={"n_train": 7}, seed=0
        ).reference
        self.features = {m: self.extract(m, "pixels", {"size": [8, 8]}) for m in SIDES}
        self.scores = {
            "sketch": self.extract("sketch", "edgeness", {"n_windows": 20}),
            "image": self.extract("image", "colour_contrast", {"n_windows": 20}),
        }

    def extract(self, modality: Any, extractor: str, options: dict[str, Any]) -> Reference:
        return extract_features(
            workspace=self.workspace,
            table=self.table,
            modality=modality,
            extractor=extractor,
            options=options,
            longest_side=40,
            block_rows=5,
            max_bad_share=0.5,
        ).reference

    def curricula(self) -> Reference:
        return curricula_of_split(
            workspace=self.workspace,
            table=self.table,
            split=self.split,
            sketch_scores=self.scores["sketch"],
            image_scores=self.scores["image"],
            target="groups",
            options={"delta": 0.0, "rho": 1.0, "scope": "global", "seed": 0},
        ).reference

    def train(
        self,
        method: str,
        options: dict[str, Any],
        curricula: Reference | None,
        mode: Mode = "reuse",
    ) -> Any:
        recipe = self.training(method, options, curricula)
        return train_method(
            workspace=self.workspace, recipe=recipe, label=method, mode=mode
        ).reference

    def training(
        self, method: str, options: dict[str, Any], curricula: Reference | None = None
    ) -> Recipe:
        return training_recipe(
            table=self.table,
            split=self.split,
            sketch_features=self.features["sketch"],
            image_features=self.features["image"],
            curricula=curricula,
            method=method,
            options=options,
            target="groups",
        )

    def tune(self, grid: Any, curricula: Reference | None = None, **changes: Any) -> StageResult:
        given: dict[str, Any] = {
            "method": "cprl",
            "options": {
                "n_atoms": 4,
                "n_rounds": 3,
                "initialization": {"n_initial_rounds": 2},
                "alpha": 0.01,
            },
            "target": "groups",
            "held_out": "classes",
            "n_folds": 2,
            "n_repeats": 1,
            "score": "map",
            "metric": "cosine",
            "warm_start": False,
            "seed": 0,
        }
        return tune_method(
            workspace=self.workspace,
            table=self.table,
            split=self.split,
            sketch_features=self.features["sketch"],
            image_features=self.features["image"],
            curricula=curricula,
            grid=grid,
            label="cprl",
            **given | changes,
        )

    def encode(self, model: Reference) -> Reference:
        return encode_features(
            workspace=self.workspace,
            model=model,
            sketch_features=self.features["sketch"],
            image_features=self.features["image"],
        ).reference

    def evaluate(self, codes: Reference) -> Reference:
        return evaluate_method(
            workspace=self.workspace,
            table=self.table,
            split=self.split,
            codes=codes,
            target="groups",
            metric="cosine",
            ranks=(1, 2),
            seed=0,
        ).reference


SIDES = ("sketch", "image")


@pytest.fixture
def stages(workspace: Workspace, shapes: Path, inline_blocks: list[str]) -> Stages:
    return Stages(workspace, shapes)


@pytest.fixture
def broken_stages(workspace: Workspace, shapes: Path, inline_blocks: list[str]) -> Stages:
    """One training sketch and one test image cannot be read."""
    whole = Stages(workspace, shapes)
    rows = open_split(workspace.store, whole.split)
    table = open_pictures(workspace.store, whole.table).table
    for modality, row in (("sketch", rows.train_sketches[2]), ("image", rows.test_images[1])):
        path = shapes / table.paths[table.rows(modality)[row]]
        path.write_bytes(path.read_bytes()[:40])
    return Stages(workspace, shapes)


@pytest.fixture
def extract_folder(workspace: Workspace, shapes: Path) -> Callable[..., Artifact]:
    """Fetch a folder of pictures and extract its sketches."""

    def extract(place: Workspace = workspace, root: Path = shapes, **changes: Any) -> Artifact:
        result = extract_pictures(place, root, **{"block_rows": 3} | changes)
        return place.store.open(result.reference)

    return extract


@pytest.fixture
def said() -> Any:
    """Messages of tasks."""
    messages: list[str] = []
    with listening(on_message=messages.append):
        yield messages


@pytest.fixture
def block_of_shapes(workspace: Workspace, shapes: Path) -> Block:
    """The twelve sketches, as one block."""
    files = sorted((shapes / "sketches").rglob("*.png"))
    return Block(
        0,
        tuple(file.relative_to(shapes).as_posix() for file in files),
        tuple(file_sha256(file) for file in files),
    )


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, int], Any]:
    """What was written of blocks, by array and number, and not to a store."""
    found: dict[tuple[str, int], Any] = {}

    def write(partial: str, name: str, number: int, values: Any) -> None:
        found[name, number] = values

    monkeypatch.setattr(tasks.workers.blocks, "write_block", write)
    monkeypatch.setattr(tasks.workers.blocks, "write_block_note", write)
    return found
