"""The embedded data set with unfinished drawings."""

from __future__ import annotations

import numpy as np
import pytest

from cppcl.datasets import Emoji, EmojiDrawn
from cppcl.datasets.unfinished import drawn_share, fuller_is_easier
from cppcl.errors import DataUnavailableError, InputError


def test_every_thing_has_a_sketch_of_each_share(tmp_path):
    data = EmojiDrawn(shares=(100, 40))
    root = data.fetch(tmp_path)
    table, whole = data.table(root), Emoji().table(tmp_path / "emoji-1")
    assert len(table) == 3 * 857
    assert table.column("groups", "image") == whole.column("groups", "image")
    ids, content = table.column("ids", "sketch"), table.column("sha256", "sketch")
    assert ids[:2] == ["sketch/1f004/040", "sketch/1f004/100"]
    assert content[1::2] == whole.column("sha256", "sketch")
    assert not set(content[::2]) & set(content[1::2])
    assert table.column("labels", "sketch")[::2] == whole.column("labels", "sketch")
    before = (root / "labels.json").stat().st_mtime_ns
    assert data.fetch(tmp_path) == root
    assert (root / "labels.json").stat().st_mtime_ns == before
    (root / "labels.json").unlink()
    with pytest.raises(DataUnavailableError, match="no complete folder of drawings"):
        data.table(root)


@pytest.mark.parametrize("way", ["thinned", "jittered"])
def test_drawings_may_be_poorer_in_other_ways(tmp_path, way):
    data = EmojiDrawn(shares=(100, 40), way=way)
    root = data.fetch(tmp_path)
    assert root.name == f"emoji-drawn-1-{way}-40-100"
    content = data.table(root).column("sha256", "sketch")
    whole = Emoji().table(tmp_path / "emoji-1").column("sha256", "sketch")
    assert content[1::2] == whole
    assert np.mean(np.array(content[::2]) != np.array(whole)) > 0.9  # others have one stroke


@pytest.mark.parametrize("shares", [(), (0,), (50, 101), (50, 50)])
def test_shares_are_percentages(shares):
    with pytest.raises(InputError, match="percentages from 1 to 100"):
        EmojiDrawn(shares=shares)


def test_of_one_thing_the_fuller_is_easier():
    assert drawn_share("sketch/1f98a/040") == 0.4
    assert drawn_share("sketch/1f98a") is None
    assert drawn_share("image/1f98a/040") is None
    ids = ["sketch/a/010", "sketch/b/050", "sketch/a/100", "sketch/a/050"]
    pairs = fuller_is_easier(ids, ["a", "b", "a", "a"])
    assert sorted(pairs) == [
        ("sketch/a/050", "sketch/a/010"),
        ("sketch/a/100", "sketch/a/010"),
        ("sketch/a/100", "sketch/a/050"),
    ]
