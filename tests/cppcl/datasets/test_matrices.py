"""Feature matrices with a table of labels."""

import hashlib

import numpy as np
import pytest

from cppcl.datasets import Matrices
from cppcl.errors import InputError
from cppcl.pictures.decoding import read_sample

RNG = np.random.default_rng(11)
SKETCHES = RNG.standard_normal((3, 4))
IMAGES = RNG.standard_normal((2, 6)).astype(np.float32)
LABELS = "modality,row,label\nimage,1,b\nsketch,0,a\nsketch,1,b\nsketch,2,a\nimage,0,a\n"


@pytest.fixture
def make(tmp_path):
    def build(sketches=SKETCHES, images=IMAGES, labels=LABELS, **options):
        np.save(tmp_path / "s.npy", sketches)
        np.save(tmp_path / "i.npy", images)
        (tmp_path / "labels.csv").write_text(labels, encoding="utf-8-sig")
        given = {
            "sketch_features": tmp_path / "s.npy",
            "image_features": tmp_path / "i.npy",
            "labels": tmp_path / "labels.csv",
        }
        return Matrices(**(given | options))

    return build


def test_rows_become_samples(make, tmp_path):
    data = make()
    root = data.fetch(tmp_path / "made")
    table = data.table(root)
    assert table.ids == ("sketch/0", "sketch/1", "sketch/2", "image/0", "image/1")
    assert table.labels == ("a", "b", "a", "a", "b")
    assert table.groups == table.ids
    for row, path in enumerate(table.paths):
        expected = [*SKETCHES.astype(np.float32), *IMAGES][row]
        values = read_sample(root, path)
        np.testing.assert_array_equal(values, expected)
        assert table.sha256[row] == hashlib.sha256(expected.tobytes()).hexdigest()
    assert data.findings(root) == []
    assert "licence unknown" in data.licence


def test_groups_and_ids(make, tmp_path):
    text = "modality,row,label,group,id\nsketch,0,a,g,first\nsketch,1,b,,\nimage,0,a,g,second\n"
    data = make(SKETCHES[:2], IMAGES[:1], text)
    table = data.table(data.fetch(tmp_path))
    assert table.ids == ("first", "sketch/1", "second")
    assert table.groups == ("g", "sketch/1", "g")


def test_fetch_is_keyed_by_content(make, tmp_path):
    first = make().fetch(tmp_path / "made")
    before = (first / "sketch.npy").stat().st_mtime_ns
    assert make().fetch(tmp_path / "made") == first
    assert (first / "sketch.npy").stat().st_mtime_ns == before
    assert make(SKETCHES + 1).fetch(tmp_path / "made") != first


def test_npz_and_other_orders_and_types(make, tmp_path):
    np.savez(tmp_path / "one.npz", SKETCHES)
    np.savez(tmp_path / "two.npz", x=np.asfortranarray(SKETCHES), y=np.zeros((1, 1)))
    whole = make().fetch(tmp_path / "made")
    for file, array in (("one.npz", None), ("two.npz", "x")):
        root = make(sketch_features=tmp_path / file, array=array).fetch(tmp_path / "made")
        np.testing.assert_array_equal(np.load(root / "sketch.npy"), np.load(whole / "sketch.npy"))
    with pytest.raises(InputError, match=r"two\.npz holds the arrays \['x', 'y'\]; name one"):
        make(sketch_features=tmp_path / "two.npz").fetch(tmp_path)
    with pytest.raises(InputError, match=r"\['x', 'y'\], not 'z'"):
        make(sketch_features=tmp_path / "two.npz", array="z").fetch(tmp_path)
    integers = make(np.array([[1, 2]], np.int16)).fetch(tmp_path / "made")
    assert np.load(integers / "sketch.npy").dtype == np.float32


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros(3), r"s\.npy has shape \(3,\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        (np.zeros((2, 2), complex), "dtype complex128; features are real"),
        (np.array([["a", "b"]]), "dtype <U1"),
        (np.array([[None]], object), "no readable .npy or .npz file"),
        (np.array([[0.0], [np.nan], [np.inf], [1.0], [1e300]]), r"3 rows .* 1, 2, 4;"),
        (np.full((7, 1), np.nan), r"7 rows .* 0, 1, 2, 3, 4, \.\.\.;"),
    ],
)
def test_matrices_that_are_no_features_are_named(make, tmp_path, matrix, message):
    with pytest.raises(InputError, match=message):
        make(matrix).fetch(tmp_path / "made")
    assert list((tmp_path / "made").glob("*")) == []


def test_bad_rows_beyond_the_first_block_are_numbered_right(make, tmp_path):
    matrix = np.zeros((5000, 1), np.float32)
    matrix[4999] = np.inf
    with pytest.raises(InputError, match=r"1 row .*: 4999;"):
        make(matrix).fetch(tmp_path / "made")


def test_files_that_cannot_be_read_are_named(make, tmp_path):
    (tmp_path / "f.zarr").mkdir()
    with pytest.raises(InputError, match=r"f\.zarr is a folder: .* save a Zarr array"):
        make(image_features=tmp_path / "f.zarr").fetch(tmp_path)
    with pytest.raises(InputError, match=r"gone\.npy: no such file"):
        make(image_features=tmp_path / "gone.npy").fetch(tmp_path)
    (tmp_path / "bad.npy").write_bytes(b"text")
    with pytest.raises(InputError, match=r"bad\.npy: no readable"):
        make(image_features=tmp_path / "bad.npy").fetch(tmp_path)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("modality,row\nsketch,0\n", r"it needs modality, row, label\[, group, id\]"),
        (LABELS.replace("sketch,1,b\n", ""), "no line for 1 of 3 sketch rows: 1"),
        (LABELS + "image,7,a\n", r"names image rows 7, but the matrix has 2 rows \(0 to 1\)"),
        (LABELS + "image,0,a\n", "line 7: image row 0 occurs twice"),
        (LABELS + "photo,0,a\n", "line 7: modality 'photo'"),
        (LABELS + "image,-1,a\n", "row '-1'"),
        (LABELS + "image,2,\n", "label ''"),
        (LABELS + "image\n", "line 7: .*row ''"),
        (
            "modality,row,label,label\n",
            r"labels\.csv, line 1: the head has the columns label twice",
        ),
        (LABELS + f"image,2,{'a' * 200_000}\n", "is no CSV .*field larger"),
    ],
)
def test_mistakes_in_the_labels_are_named(make, tmp_path, labels, message):
    data = make(labels=labels)
    with pytest.raises(InputError, match=message):
        data.table(data.fetch(tmp_path / "made"))


def test_labels_that_cannot_be_read_are_named(make, tmp_path):
    data = make(labels="")
    root = data.fetch(tmp_path / "made")
    (tmp_path / "labels.csv").write_bytes(b"modality,row,label\nsketch,0,\xff\n")
    with pytest.raises(InputError, match="not UTF-8"):
        data.table(root)
    (tmp_path / "labels.csv").unlink()
    with pytest.raises(InputError, match=r"labels\.csv does not exist"):
        data.table(root)


def test_findings_name_one_sided_classes_and_zero_rows(make, tmp_path):
    sketches = SKETCHES.copy()
    sketches[1] = 0
    data = make(sketches, labels=LABELS.replace("sketch,2,a", "sketch,2,c"))
    assert data.findings(data.fetch(tmp_path / "made")) == [
        "1 class with 1 sketch but no image: 'c'.",
        "All zero: 1 row of the sketch features, 1.",
    ]
