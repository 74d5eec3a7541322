"""Folders appear whole or not at all."""

import pytest

from cppcl.datasets import DATASETS
from cppcl.datasets.files import made_whole


def test_folder_appears_whole(tmp_path):
    target = tmp_path / "new" / "data"
    with made_whole(target) as partial:
        (partial / "x").write_text("1")
        assert not target.exists()
    assert (target / "x").read_text() == "1"
    assert list(target.parent.iterdir()) == [target]


def test_nothing_is_made_where_nothing_came(tmp_path):
    with made_whole(tmp_path / "data", unless=lambda: True) as partial:
        (partial / "x").write_text("1")
    assert list(tmp_path.iterdir()) == []


def test_failure_leaves_nothing(tmp_path):
    def fail():
        with made_whole(tmp_path / "data") as partial:
            (partial / "x").write_text("1")
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_what_another_process_made_meanwhile_stays(tmp_path):
    target = tmp_path / "data"
    with made_whole(target) as partial:
        (partial / "x").write_text("ours")
        target.mkdir()
        (target / "x").write_text("theirs")
    assert (target / "x").read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [target]


def test_target_that_cannot_be_made(tmp_path):
    target = tmp_path / "data"
    with pytest.raises(OSError, match="data"), made_whole(target):
        target.write_text("a file is in the way")


def test_registry_names_its_entries():
    published = ["cufs", "flickr15k", "pacs", "qmul", "qmul-test", "tuberlin"]
    published += ["qmul-chair-v2", "qmul-shoe-v2", "quickdraw-ext", "sketchy-ext", "tuberlin-ext"]
    own = ["emoji", "emoji-drawn", "folder", "folder-drawn", "matrices"]
    assert sorted(DATASETS) == sorted([*own, *published])
    for name, data_set in DATASETS.items():
        assert data_set.name == name
        assert data_set.version >= 1
