"""One's own drawings with strokes, as sketches of more and more of their ink."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from cppcl.datasets import FolderDrawn
from cppcl.datasets.splits.seeded import Split
from cppcl.datasets.unfinished import drawn_at_least, drawn_shares
from cppcl.errors import InputError
from cppcl.pictures.decoding import decode_picture

LINE = '<svg xmlns="http://www.w3.org/2000/svg"><line x2="9"/></svg>'


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "mine"
    for label in ("cat", "dog"):
        (folder / "images" / label).mkdir(parents=True)
        (folder / "images" / label / "a.png").write_bytes(label.encode())
    (folder / "sketches" / "dog").mkdir(parents=True)
    (folder / "sketches" / "dog" / "a.svg").write_text(LINE)
    line = {"word": "cat", "drawing": [[[0, 9], [0, 0]], [[0, 9], [5, 5]]]}
    lines = [
        json.dumps(line | {"key_id": n, "recognized": n != "1"}) for n in ("a", "1", "2", "3")
    ]
    (folder / "sketches" / "cats.ndjson").write_text("\n".join(lines))
    return folder


def test_strokes_become_sketches_of_several_shares(root, tmp_path):
    data = FolderDrawn(root=root, shares=(50, 100), n_drawings=2, pairing="name")
    data.check()
    place = data.fetch(tmp_path / "data")
    table = data.table(place)
    assert table.column("ids", "sketch") == [
        "sketch/cat/2/050", "sketch/cat/2/100", "sketch/cat/a/050", "sketch/cat/a/100",
        "sketch/dog/a/050", "sketch/dog/a/100",
    ]  # fmt: skip
    assert table.column("groups", "sketch") == ["cat/2"] * 2 + ["cat/a"] * 2 + ["dog/a"] * 2
    assert table.column("groups", "image") == ["cat/a", "dog/a"]
    assert table.column("labels", "sketch") == ["cat"] * 4 + ["dog"] * 2
    assert drawn_shares(table.column("ids", "sketch")).tolist() == [0.5, 1.0] * 3
    half, whole = (
        (decode_picture(place / path, longest_side=64) < 128).sum()
        for path in table.column("paths", "sketch")[:2]
    )
    assert half == pytest.approx(whole / 2, rel=0.05)
    assert data.fetch(tmp_path / "data") == place
    (root / "sketches" / "dog" / "a.svg").write_text(LINE.replace("9", "8"))
    assert data.fetch(tmp_path / "data") != place, "other drawings are another data set"
    apart = FolderDrawn(root=root).table(place)
    assert set(apart.column("groups", "sketch")).isdisjoint(apart.column("groups", "image"))

    split = Split(*map(np.array, ([0, 1, 2, 3], [0], [4, 5], [1])))
    assert drawn_at_least(table, split, 0.6).train_sketches.tolist() == [1, 3]
    with pytest.raises(InputError, match=r"least_drawn=0.6: .* the fullest shows 0.5"):
        drawn_at_least(table, Split(*map(np.array, ([0], [0], [4], [1]))), 0.6)


def test_what_has_no_strokes_or_class_is_refused(root, tmp_path):
    with pytest.raises(InputError, match="n_drawings"):
        FolderDrawn(root=root, n_drawings=0)
    with pytest.raises(InputError, match=r"neither \.svg nor"):
        FolderDrawn(root=root, sketches="images").check()
    (root / "sketches" / "loose.svg").write_text(LINE)
    with pytest.raises(InputError, match=r"loose.svg lies in no class folder"):
        FolderDrawn(root=root).fetch(tmp_path / "data")
    (root / "sketches" / "loose.svg").unlink()
    (root / "sketches" / "dog" / "b.svg").write_text("<svg/>")
    with pytest.raises(InputError, match=r"b.svg: the drawing has no shapes"):
        FolderDrawn(root=root).fetch(tmp_path / "data")


@pytest.mark.parametrize(
    ("word", "key", "reason"),
    [
        ("../../../evil", "x", "without '/'"),
        ("/evil", "x", "without '/'"),
        ("cat", "../../../../evil", "without '/'"),
        ("", "x", "printed"),
        ("c\0", "x", "printed"),
        ("\ud800", "x", "printed"),
        ("cat", "..", "hidden"),
        ("Thumbs.db", "x", "hidden"),
        ("c" * 300, "x", "more than 200 bytes"),
        ("cat", "2", "another drawing '2' of the class 'cat'"),
        ("dog", "a", "another drawing 'a' of the class 'dog'|dog/a.svg: there is another"),
    ],
)
def test_a_word_leads_to_no_other_folder(root, tmp_path, word, key, reason):
    line = {"word": word, "key_id": key, "drawing": [[[0, 9], [0, 0]]]}
    (root / "sketches" / "more.ndjson").write_text(json.dumps(line))
    with pytest.raises(InputError, match=reason):
        FolderDrawn(root=root).fetch(tmp_path / "data" / "there")
    assert {p.name for p in tmp_path.iterdir()} == {"data", "mine"}
    assert not list((tmp_path / "data").rglob("*.svg"))


def test_files_are_found_as_pictures_are(root, tmp_path):
    """Through links, and neither hidden ones, nor folders, nor names that are no Unicode."""
    sketches = root / "sketches"
    (sketches / "dog").rename(tmp_path / "elsewhere")
    (sketches / "dog").symlink_to(tmp_path / "elsewhere")
    (sketches / "dog" / "b.svg").mkdir()
    for hidden in (".git", "__MACOSX"):
        (sketches / hidden).mkdir()
        (sketches / hidden / "c.svg").write_text("no SVG")
    data = FolderDrawn(root=root, shares=(100,))
    ids = data.table(data.fetch(tmp_path / "data")).column("ids", "sketch")
    assert "sketch/dog/a/100" in ids
    assert not any("c/100" in name for name in ids)
    (sketches / "dog" / "b.svg").rmdir()
    (sketches / "dog" / os.fsdecode(b"\xff.svg")).write_text(LINE)
    with pytest.raises(InputError, match="not valid Unicode"):
        data.check()
