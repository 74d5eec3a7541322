"""One's own feature matrices, without a picture anywhere, by the packaged experiment."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from storage import Reference
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks")

N_CLASSES, PER_CLASS = 3, 8


@pytest.fixture
def matrices(tmp_path: Path) -> dict[str, Path]:
    """Two noisy views of three classes, of different lengths, and their labels."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(N_CLASSES), PER_CLASS)
    files = {"labels": tmp_path / "labels.csv"}
    lines = []
    for modality, length in (("sketch", 7), ("image", 9)):
        centres = 3 * rng.standard_normal((N_CLASSES, length))
        values = centres[labels] + rng.standard_normal((len(labels), length))
        files[f"{modality}_features"] = tmp_path / f"{modality}.npy"
        np.save(files[f"{modality}_features"], values.astype(np.float32))
        lines += [(modality, row, f"class {label}") for row, label in enumerate(labels)]
    with files["labels"].open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["modality", "row", "label"])
        writer.writerows(lines)
    return files


@pytest.fixture
def run_matrices(run_plain: Callable[..., Any], workspace: Workspace) -> Callable[..., Any]:
    def run(files: dict[str, Path], *overrides: str) -> Any:
        return run_plain(
            "matrices",
            workspace,
            *(f"{name}={path}" for name, path in files.items()),
            "n_atoms=6",
            "n_rounds=5",
            "n_components=4",
            "seeds=[0]",
            "ranks=[1]",
            *overrides,
        )

    return run


def test_features_pass_through_to_scores_and_report(matrices, run_matrices, workspace):
    chain = run_matrices(matrices)
    store = workspace.store
    for modality in ("sketch", "image"):
        (result,) = chain.pieces[f"extract {modality} precomputed"]
        stored = store.open(result.reference).array("features")
        np.testing.assert_array_equal(stored, np.load(matrices[f"{modality}_features"]))
    metrics = chain.record.metrics(store)["category"]
    # Classes are three deviations apart: both methods find them far more often than chance.
    assert metrics["chance"]["map"] < 0.5
    assert metrics["class_cca"]["map"] > 0.8
    assert metrics["cprl"]["map"] > 0.6
    assert not any(name.startswith("curricula") for name in chain.pieces)
    page = store.open(chain.pieces["report"][0].reference).text("report.html")
    assert "Query sketch" not in page
    assert "licence unknown" in page


def test_a_zarr_array_is_the_same_data(matrices, run_matrices, tmp_path):
    first = run_matrices(matrices)
    array = tmp_path / "sketch features.zarr"
    values = np.load(matrices["sketch_features"])
    zarr.create_array(array, data=values, chunks=(5, 7))
    again = run_matrices({**matrices, "sketch_features": array})
    assert {name: [r.reference for r in results] for name, results in again.pieces.items()} == {
        name: [r.reference for r in results] for name, results in first.pieces.items()
    }


def test_a_changed_row_alone_is_read_again(matrices, run_matrices, inline_blocks):
    first = run_matrices(matrices)
    assert len(inline_blocks) == 2 * N_CLASSES * PER_CLASS
    inline_blocks.clear()
    values = np.load(matrices["sketch_features"])
    values[5] += 1
    np.save(matrices["sketch_features"], values)
    again = run_matrices(matrices)
    assert inline_blocks == ["sketch.npy#5"]
    one, two = (chain.record.results["encode"][0].reference for chain in (first, again))
    assert isinstance(one, Reference)
    assert one != two
