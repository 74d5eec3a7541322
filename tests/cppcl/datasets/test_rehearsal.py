"""Pictures that are made to rehearse on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cppcl.datasets.emoji import Emoji
from cppcl.datasets.rehearsal import make_rehearsal_pictures, spread, warped
from cppcl.datasets.tuberlin import TuBerlin
from cppcl.errors import InputError
from cppcl.pictures.decoding import decode_picture

CLASSES = ("ant", "hot air balloon", "t-shirt")


@pytest.fixture(scope="module")
def emoji(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Emoji().fetch(tmp_path_factory.mktemp("emoji"))


def make(root: Path, emoji: Path, **changes: int) -> int:
    counts = {"n_sketches": 7, "n_images": 11, **changes}
    return make_rehearsal_pictures(root, emoji, classes=CLASSES, **counts)


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize(("total", "n", "expected"), [(7, 3, [3, 2, 2]), (2, 3, [1, 1, 0])])
def test_samples_are_spread_evenly(total: int, n: int, expected: list[int]) -> None:
    assert spread(total, n) == expected


def test_they_are_read_as_the_data_set(tmp_path: Path, emoji: Path) -> None:
    assert make(tmp_path, emoji) == 18
    data = TuBerlin(root=tmp_path)
    table = data.table(data.fetch(tmp_path / "unused"))
    assert Counter(table.column("labels", "sketch")) == dict(zip(CLASSES, (3, 2, 2), strict=True))
    assert Counter(table.column("labels", "image")) == dict(zip(CLASSES, (4, 4, 3), strict=True))
    assert len(set(table.sha256)) == 18  # no two are the same picture
    for path in table.paths:
        picture = decode_picture(tmp_path / path)
        assert picture.shape == (128, 128, 3)
        assert picture.std() > 5


def test_same_seed_same_bytes_whatever_was_there(tmp_path: Path, emoji: Path) -> None:
    make(tmp_path / "a", emoji)
    make(tmp_path / "b", emoji, n_images=5)
    first = contents(tmp_path / "b")
    removed = tmp_path / "b/sketches/ant/00001.png"
    removed.unlink()
    assert make(tmp_path / "b", emoji) == 11 - 5 + 1
    assert contents(tmp_path / "b") == contents(tmp_path / "a")
    assert make(tmp_path / "b", emoji) == 0
    assert first.items() <= contents(tmp_path / "b").items()
    make(tmp_path / "c", emoji, seed=1)
    assert not set(contents(tmp_path / "c").values()) & set(first.values())


def test_too_many_classes_are_refused(tmp_path: Path, emoji: Path) -> None:
    with pytest.raises(InputError, match="900 classes are more than the 857 emoji"):
        make_rehearsal_pictures(
            tmp_path, emoji, classes=[str(k) for k in range(900)], n_sketches=900, n_images=900
        )


def test_warps_keep_most_of_the_picture() -> None:
    picture = np.full((64, 64, 3), 255, dtype=np.uint8)
    picture[16:48, 16:48] = (200, 0, 0)
    for seed in range(20):
        seen = np.asarray(warped(picture, np.random.default_rng(seed)))
        red = (seen[..., 0] > 150) & (seen[..., 1] < 100)
        assert 0.5 < red.sum() / 32**2 < 2.0
        assert seen[32, 32, 1] < 100
