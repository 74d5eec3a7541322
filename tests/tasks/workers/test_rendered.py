"""Rendered drawings: each is rendered once, and the memory that they take is bounded."""

import shutil

import numpy as np
import pytest

import tasks.workers.extractors
from cppcl.datasets.files import file_sha256
from cppcl.errors import DataUnavailableError, InputError
from cppcl.pictures.decoding import decode_picture
from tasks.workers.extractors import read_unchanged
from tasks.workers.rendered import RenderedDrawings

CIRCLE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle r="{}"/></svg>'


@pytest.fixture
def rendered(monkeypatch):
    """Paths that were decoded, from nothing kept on."""
    monkeypatch.setattr(tasks.workers.extractors, "DRAWINGS", RenderedDrawings())
    read, paths = tasks.workers.extractors.read_sample, []

    def note(root, path, longest_side):
        paths.append(path)
        return read(root, path, longest_side=longest_side)

    monkeypatch.setattr(tasks.workers.extractors, "read_sample", note)
    return paths


def test_a_drawing_is_rendered_once_for_each_size_and_content(rendered, tmp_path):
    file = tmp_path / "circle.svg"
    file.write_text(CIRCLE.format(3))
    digest = file_sha256(file)
    first = read_unchanged(str(tmp_path), "circle.svg", digest, 64)
    expected = decode_picture(file, longest_side=64)
    again = read_unchanged(str(tmp_path), "circle.svg", digest, 64)
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(again, expected)
    assert again.flags.writeable
    shutil.copy(file, tmp_path / "same.svg")
    read_unchanged(str(tmp_path), "same.svg", digest, 64)
    assert rendered == ["circle.svg"]
    assert read_unchanged(str(tmp_path), "circle.svg", digest, 32).shape == (32, 32, 3)
    assert rendered == ["circle.svg"] * 2


def test_a_drawing_that_changed_or_went_is_refused_all_the_same(rendered, tmp_path):
    file = tmp_path / "circle.svg"
    file.write_text(CIRCLE.format(3))
    digest = file_sha256(file)
    read_unchanged(str(tmp_path), "circle.svg", digest, 64)
    file.write_text(CIRCLE.format(4))
    for side in (64, 32):
        with pytest.raises(DataUnavailableError, match=r"circle\.svg .* has changed"):
            read_unchanged(str(tmp_path), "circle.svg", digest, side)
    file.write_text(CIRCLE.format(3))
    after = read_unchanged(str(tmp_path), "circle.svg", digest, 32)
    np.testing.assert_array_equal(after, decode_picture(file, longest_side=32))
    file.unlink()
    with pytest.raises(DataUnavailableError, match=r"circle\.svg .* is not there"):
        read_unchanged(str(tmp_path), "circle.svg", digest, 64)


def test_what_cannot_be_rendered_is_not_kept(rendered, tmp_path):
    file = tmp_path / "broken.svg"
    file.write_text("<svg")
    for _ in range(2):
        assert isinstance(
            read_unchanged(str(tmp_path), "broken.svg", file_sha256(file), 64), InputError
        )
    assert len(rendered) == 2


def test_those_longest_not_asked_for_go_first():
    noise = np.random.default_rng(0).integers(0, 256, (4, 20, 20, 3), dtype=np.uint8)
    kept, made = RenderedDrawings(most_bytes=3 * 1300), []

    def get(number):
        picture = kept.get(number)
        if picture is None:
            made.append(number)
            kept.keep(number, noise[number])
        else:
            np.testing.assert_array_equal(picture, noise[number])

    for number in (0, 1, 2, 0, 3, 0, 2, 1):
        get(number)
    assert made == [0, 1, 2, 3, 1]
    small = RenderedDrawings(most_bytes=100)
    small.keep(0, noise[0])
    assert small.get(0) is None
