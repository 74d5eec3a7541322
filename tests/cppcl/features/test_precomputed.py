import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.features.precomputed import Precomputed


def test_rows_pass_through():
    matrix = np.random.default_rng(0).normal(size=(4, 7)).astype(np.float32)
    np.testing.assert_array_equal(Precomputed().transform(list(matrix)), matrix)
    np.testing.assert_array_equal(Precomputed(length=7).transform(matrix), matrix)


def test_other_numbers_become_float32():
    rows = Precomputed().transform([np.array([1, 2]), np.array([0.5, 2.0**-20])])
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, [[1, 2], [0.5, 2.0**-20]])


def test_length_is_unknown_without_rows_or_option():
    with pytest.raises(InputError, match=r"length .*not set"):
        Precomputed().transform([])
    with pytest.raises(InputError, match=r"length .*not set"):
        _ = Precomputed().dimension


@pytest.mark.parametrize("length", [None, 3])
def test_rows_of_another_length_are_named(length):
    with pytest.raises(InputError, match="row 1 has 4 values, but 3"):
        Precomputed(length=length).transform([np.zeros(3), np.zeros(4)])


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_values_that_are_not_finite_are_named(value):
    with pytest.raises(InputError, match=r"value 2 of row 1 .*finite"):
        Precomputed().transform([np.zeros(3), np.array([0.0, 1.0, value])])


@pytest.mark.parametrize(
    "row",
    [np.zeros((3, 3)), np.array(["a", "b"]), np.zeros(3, dtype=complex), np.zeros(0)],
    ids=["matrix", "text", "complex", "empty"],
)
def test_what_is_no_vector_is_named(row):
    with pytest.raises(InputError, match="row 0 is"):
        Precomputed().transform([row])
