import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cppcl.features.descriptors.grids import cell_of, nearest_bins, nearest_cells


@given(st.integers(1, 60), st.integers(1, 60))
def test_every_pixel_lies_in_one_cell(size, n_cells):
    cells = cell_of(size, n_cells)
    assert cells.shape == (n_cells, size)
    np.testing.assert_array_equal(cells.sum(axis=0), 1)
    assert (np.diff(cells.argmax(axis=0)) >= 0).all()
    counts = cells.sum(axis=1)
    assert counts.max() - counts.min() <= 1


@given(st.integers(1, 60), st.integers(1, 60))
def test_shares_of_the_nearest_cells(size, n_cells):
    shares, touched = nearest_cells(size, n_cells)
    places = np.arange(size) / size * n_cells
    for index, place in enumerate(places):
        for cell in range(n_cells):
            distance = abs(place - (cell + 0.5))
            assert shares[cell, index] == pytest.approx(max(1 - distance, 0), abs=1e-5)
            if distance < 1:
                assert touched[cell, index] == 1
            elif distance > 1:
                assert touched[cell, index] == 0


def test_shares_inside_the_grid_sum_to_one_and_are_lost_outside():
    shares, touched = nearest_cells(256, 4)
    np.testing.assert_allclose(shares[:, 32:224].sum(axis=0), 1, atol=1e-6)
    assert shares[:, 0].sum() == 0.5
    assert touched[:, 0].sum() == 1
    assert touched[:, 100].sum() == 2


def test_bins_close_a_circle():
    first, share = nearest_bins(np.array([0, np.pi / 8, np.pi / 4, 7 * np.pi / 8, 3.1415]), 4)
    np.testing.assert_array_equal(first, [3, 0, 0, 3, 3])
    np.testing.assert_allclose(share, [0.5, 0, 0.5, 0, 0.5], atol=1e-3)


def test_matrices_are_shared_and_cannot_be_written():
    assert cell_of(10, 3) is cell_of(10, 3)
    for matrix in (cell_of(10, 3), *nearest_cells(10, 3)):
        with pytest.raises(ValueError, match="read-only"):
            matrix[0, 0] = 5
