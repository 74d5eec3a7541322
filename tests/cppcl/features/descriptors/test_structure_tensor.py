import numpy as np
import pytest

from cppcl.features.descriptors.structure_tensor import StructureTensor


def _rgb(gray: np.ndarray) -> np.ndarray:
    return np.repeat(np.asarray(gray, dtype=np.uint8)[..., None], 3, axis=2)


@pytest.fixture
def noise():
    return _rgb(np.random.default_rng(0).integers(0, 256, (256, 256)))


def test_dimension_as_printed():
    assert StructureTensor().dimension == 1200


def test_distances_are_those_of_the_tensors(noise):
    rows = StructureTensor(contours="none").transform([noise, noise.transpose(1, 0, 2)])
    tensors = np.empty((2, 400, 2, 2))
    cells = rows.reshape(2, 400, 3)
    tensors[..., 0, 0], tensors[..., 1, 1] = cells[..., 0], cells[..., 2]
    tensors[..., 0, 1] = tensors[..., 1, 0] = cells[..., 1] / np.sqrt(2)
    by_cell = np.linalg.norm(tensors[0] - tensors[1], axis=(1, 2))
    assert np.linalg.norm(rows[0] - rows[1]) == pytest.approx(np.linalg.norm(by_cell), rel=1e-5)
    np.testing.assert_allclose(np.linalg.norm(tensors, axis=(2, 3)), 1, rtol=1e-5)


def test_a_single_grey_level_is_no_edge():
    gray = np.full((256, 256), 128)
    gray[:, 130:] = 129
    row = StructureTensor(contours="none").transform([_rgb(gray)])[0]
    assert not row.any()
    gray[:, 130:] = 140
    row = StructureTensor(contours="none").transform([_rgb(gray)])[0]
    cells = np.linalg.norm(row.reshape(20, 20, 3), axis=2)
    assert np.flatnonzero(cells.any(axis=0)) == [10]


@pytest.mark.parametrize("contours", ["none", "strokes", "canny"])
def test_no_contours_give_zeros(contours):
    flat = [np.full((60, 60, 3), value, dtype=np.uint8) for value in (0, 128, 255)]
    np.testing.assert_array_equal(StructureTensor(contours=contours).transform(flat), 0)
