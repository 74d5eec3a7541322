"""Contours of training images as sketches: through the chain, and what is refused."""

import numpy as np
import pytest

from cppcl.errors import InputError
from flows.configuration.load import load_experiment
from tasks.samples import open_pictures, open_split
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module", "blank_reports")
SPLIT = {"rule": "counted", "train_images": 2, "test_sketches": 2, "seeds": [0]}
METHODS = {"class_cca": {"n_directions": 2}}


def test_contours_train_and_are_never_asked(tmp_path, draw_pictures, write_experiment, run_plain):
    root = draw_pictures(tmp_path / "shapes", side=60)
    protocols = {
        name: {"split": SPLIT | {"train_sketches": n, "pseudo_share": share}, "methods": METHODS}
        for name, n, share in (("none", 0, 1.0), ("one", 1, 0.0), ("both", 1, 0.5))
    }
    dataset = {"name": "folder", "root": str(root)}
    file = write_experiment(
        root, dataset=dataset, protocols=protocols, curriculum=None,
        pseudo_sketches={"contours": "canny"},
    )  # fmt: skip
    place = Workspace(tmp_path / "workspace")
    chain = run_plain(file, place)
    plain, drawn = (piece.reference for piece in chain.pieces["fetch"])
    table = open_pictures(place.store, drawn).table
    n_real = len(open_pictures(place.store, plain).table.rows("sketch"))
    splits = [open_split(place.store, p.reference) for p in chain.pieces["split counted"]]
    none, one, both = (split.train_sketches for split in splits)
    assert [len(rows) for rows in (none, one, both)] == [6, 3, 6]
    assert (none >= n_real).all()
    assert (one < n_real).all()
    np.testing.assert_array_equal(both[:3], one)
    ids, images = table.column("ids", "sketch"), table.column("ids", "image")
    trained = {images[row] for row in splits[0].train_images}
    assert {ids[row].replace("sketch/contours-of/", "image/") for row in none} == trained
    for split in splits:
        np.testing.assert_array_equal(split.test_sketches, splits[0].test_sketches)
        assert (split.test_sketches < n_real).all()
    pictures = open_pictures(place.store, drawn)
    assert all((pictures.root / path).is_file() for path in table.paths)
    again = run_plain(file, place)
    assert all(piece.cached for pieces in again.pieces.values() for piece in pieces)


def test_folds_are_asked_by_real_sketches(tmp_path, draw_pictures, write_experiment, run_plain):
    root = draw_pictures(tmp_path / "shapes", side=60)
    tuned = {"class_cca": {"tune": {"ridge": [0.01, 0.1]}}}

    def run(train_sketches):
        split = SPLIT | {"train_sketches": train_sketches, "pseudo_share": 1.0}
        file = write_experiment(
            root, dataset={"name": "folder", "root": str(root)}, curriculum=None,
            protocols={"a": {"split": split, "methods": tuned}},
            pseudo_sketches={"contours": "canny"},
        )  # fmt: skip
        return run_plain(file, place)

    place = Workspace(tmp_path / "workspace")
    plain = run(1).pieces["fetch"][0].reference
    n_real = len(open_pictures(place.store, plain).table.rows("sketch"))
    (folds,) = place.store.artifacts("folds")
    asks = folds.array("sketch_asks").astype(bool)
    np.testing.assert_array_equal(asks, folds.array("sketch_rows") < n_real)
    for fold in folds.array("sketch_folds"):
        assert np.ptp(np.bincount(fold[asks])) == 1
        assert len(fold) == 9
    with pytest.raises(InputError, match="split 0: pseudo-sketches alone train in this split"):
        run(0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"protocols": {"a": {"split": SPLIT | {"pseudo_share": 0.5}, "methods": METHODS}}},
         r"pseudo_share=0.5 needs pseudo_sketches; set it to \{contours: canny\}"),
        ({"pseudo_sketches": {"contours": "canny"}}, "drawn for nothing: no split"),
        ({"pseudo_sketches": {"contours": "sobel"}}, "contours='sobel'"),
        ({"pseudo_sketches": {"contours": "canny"},
          "protocols": {"a": {"methods": METHODS, "split": SPLIT | {
              "pseudo_share": 0.5, "noise": {"wrong_labels": 0.2}}}}},
         r"protocols.a.split.pseudo_share: contours would keep the labels"),
    ],
)  # fmt: skip
def test_a_share_and_contours_go_together(shapes, write_experiment, change, reason):
    with pytest.raises(InputError, match=reason):
        load_experiment(str(write_experiment(shapes, **change)))
