"""Pacing in the report of a run: what is kept of a training, and of one of an older version."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.lineage import Lineage
from tasks.reporting.pacing import pacing_result
from tasks.samples import open_pictures, open_split
from tasks.stages.build_curricula import scores_of
from tasks.workspace import Workspace
from tests.cppcl.report.pages import rows_of

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module")

CPRL = {"method": "cprl", "n_atoms": 4, "n_rounds": 3, "initialization": {"n_initial_rounds": 1}}
METHODS = {
    "centred_cosine": None,
    "unpaced": {**CPRL, "pacing": {"regularizer": "none", "mu": 0.0}},
    "paced": {**CPRL, "pacing": {"curricula": "image"}},
    "other": {**CPRL, "pacing": {"regularizer": "A"}},
}


@pytest.fixture(scope="module")
def file(tmp_path_factory, draw_pictures, write_experiment) -> Path:
    root = draw_pictures(tmp_path_factory.mktemp("pacing") / "shapes")
    split = {"rule": "instance", "n_train": 7, "seeds": [0, 1]}
    return write_experiment(root, protocols={"p": {"split": split, "methods": METHODS}})


def reader(modality: Any) -> Any:
    return lambda row: (np.full((4, 4, 3), row, dtype=np.uint8), f"{modality} {row}")


def test_the_first_paced_method_is_shown_on_the_first_split(file, run_plain, tmp_path):
    place = Workspace(tmp_path / "workspace")
    store = place.store
    chain = run_plain(file, place)
    methods = chain.record.scores["p"]
    found = pacing_result(store, methods, reader)
    assert found is not None
    assert (found.method, found.curricula) == ("paced", ("image",))
    lineage = Lineage.of_evaluation(store, methods["paced"][0])
    samples = open_pictures(store, lineage.table).table
    split = open_split(store, lineage.split)
    assert len(found.modalities) == 2
    for pacing, rows in zip(
        found.modalities, (split.train_sketches, split.train_images), strict=True
    ):
        assert pacing.v.shape == (3, 7)
        np.testing.assert_allclose(
            pacing.v.mean(axis=1),
            lineage.training.array(f"history.{pacing.modality}_mean_v"),
            rtol=1e-6,
        )
        np.testing.assert_allclose(
            pacing.v[-1], lineage.training.array(f"model.{pacing.modality}_pacing")
        )
        ids = samples.column("ids", pacing.modality)
        assert list(pacing.ids) == [ids[row] for row in rows]
        scores = chain.pieces[f"extract {pacing.modality} {pacing.score}"][0].reference
        expected = scores_of(store, scores, pacing.modality)[rows]
        np.testing.assert_array_equal(pacing.easiness, expected)
        shown = {k for entries in pacing.entries for k in entries.shown.tolist()}
        assert set(pacing.pictures) == shown
        assert all((picture == rows[k]).all() for k, picture in pacing.pictures.items())
    report = store.open(chain.pieces["report"][0].reference)
    rows = rows_of(report.text("pacing_p.csv"))
    assert [row["sample"] for row in rows] == [
        n for pacing in found.modalities for n in pacing.ids
    ]
    page = report.text("report.html")
    assert page.count("Which samples entered when") == 1
    vectors = pacing_result(store, methods, lambda modality: lambda row: (np.zeros(3), ""))
    assert vectors is not None
    assert not any(pacing.pictures for pacing in vectors.modalities)


def test_without_pacing_there_is_nothing_to_show(file, run_plain, tmp_path):
    place = Workspace(tmp_path / "workspace")
    chain = run_plain(file, place, "regularizer=none", "mu=0", "curriculum=null")
    methods = chain.record.scores["p"]
    assert pacing_result(place.store, methods, reader) is None
    page = place.store.open(chain.pieces["report"][0].reference).text("report.html")
    assert "Which samples entered when" not in page


def test_without_scores_the_order_is_shown_alone(file, run_plain, tmp_path):
    place = Workspace(tmp_path / "workspace")
    chain = run_plain(file, place, "curriculum=null")
    found = pacing_result(place.store, chain.record.scores["p"], reader)
    assert found is not None
    assert (found.method, found.curricula) == ("paced", ())
    assert all(
        pacing.score == "" and np.isnan(pacing.easiness).all() for pacing in found.modalities
    )
    assert "pacing_p.csv" in place.store.open(chain.pieces["report"][0].reference).names
