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


def test_stripes():
    upright = np.zeros((256, 256))
    upright[:, ::8] = upright[:, 1::8] = upright[:, 2::8] = upright[:, 3::8] = 255
    cells = StructureTensor(contours="none").transform([_rgb(upright)])[0].reshape(20, 20, 3)
    np.testing.assert_allclose(cells, np.broadcast_to([1, 0, 0], (20, 20, 3)), atol=1e-6)
    y, x = np.mgrid[:256, :256]
    diagonal = 255 * ((x + y) // 4 % 2)
    cells = StructureTensor(contours="none").transform([_rgb(diagonal)])[0].reshape(20, 20, 3)
    # At 45 degrees all four entries of the tensor are 1/2.
    expected = np.broadcast_to([0.5, np.sqrt(0.5), 0.5], (18, 18, 3))
    np.testing.assert_allclose(cells[1:-1, 1:-1], expected, atol=0.02)


def test_a_single_grey_level_is_no_edge():
    gray = np.full((256, 256), 128)
    gray[:, 130:] = 129
    row = StructureTensor(contours="none").transform([_rgb(gray)])[0]
    assert not row.any()
    gray[:, 130:] = 140
    row = StructureTensor(contours="none").transform([_rgb(gray)])[0]
    cells = np.linalg.norm(row.reshape(20, 20, 3), axis=2)
    assert np.flatnonzero(cells.any(axis=0)) == [10]


def test_strokes_do_not_depend_on_place():
    sketch = np.full((100, 80), 255)
    sketch[20:70, 30:33] = sketch[40:43, 10:60] = 0
    moved = np.full((300, 200), 255)
    moved[150:250, 100:180] = sketch
    rows = StructureTensor().transform([_rgb(sketch), _rgb(moved)])
    np.testing.assert_array_equal(rows[0], rows[1])
    assert rows[0].any()


@pytest.mark.parametrize("contours", ["none", "strokes", "canny"])
def test_no_contours_give_zeros(contours):
    flat = [np.full((60, 60, 3), value, dtype=np.uint8) for value in (0, 128, 255)]
    np.testing.assert_array_equal(StructureTensor(contours=contours).transform(flat), 0)
