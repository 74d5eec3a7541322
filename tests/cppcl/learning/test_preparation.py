import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.decomposition import PCA

from cppcl.errors import InputError
from cppcl.learning.preparation import Preparation, principal_axes, unit_rows
from cppcl.validation import check_matrix


def features(n=40, m=12, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    scales = np.geomspace(1, 0.05, m)
    return (rng.normal(size=(n, m)) * scales @ rng.normal(size=(m, m)) + 3).astype(dtype)


def pca_oracle(matrix, k):
    pca = PCA(k, svd_solver="full").fit(matrix)
    axes = pca.components_.T
    strongest = np.abs(axes).argmax(axis=0)
    signs = np.sign(axes[strongest, np.arange(k)])
    return pca, (matrix - pca.mean_) @ (axes * signs)


@pytest.mark.parametrize(("n", "m"), [(40, 12), (12, 40)])
def test_projection_equals_scikit_learn_pca(n, m):
    matrix = features(n, m)
    pca, expected = pca_oracle(matrix, 6)
    preparation = Preparation(unit_norm=False, n_components=6).fit(matrix)
    np.testing.assert_allclose(preparation.transform(matrix), expected, atol=1e-9)
    np.testing.assert_allclose(
        preparation.to_arrays()["eigenvalues"], pca.explained_variance_ * (n - 1) / n
    )


def test_projection_is_taken_after_centring_and_scaling():
    matrix = features()
    scaled = matrix - matrix.mean(axis=0)
    scaled /= np.linalg.norm(scaled, axis=1, keepdims=True)
    _, expected = pca_oracle(scaled, 5)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(
        Preparation(n_components=5).fit_transform(matrix), expected, atol=1e-9
    )


def test_without_ridge_whitening_gives_unit_covariance():
    whitened = Preparation(unit_norm=False, whiten=True, ridge=0).fit_transform(features())
    np.testing.assert_allclose(np.cov(whitened.T, bias=True), np.eye(12), atol=1e-8)


def test_whitening_ridge_is_relative_to_the_largest_eigenvalue():
    matrix = features()
    ridge = 0.1
    plain = Preparation(unit_norm=False, n_components=12).fit(matrix)
    eigenvalues = plain.to_arrays()["eigenvalues"]
    expected = plain.transform(matrix) / np.sqrt(eigenvalues + ridge * eigenvalues[0])
    for scale in (1.0, 1e3):
        whitened = Preparation(unit_norm=False, whiten=True, ridge=ridge).fit_transform(
            scale * matrix
        )
        np.testing.assert_allclose(whitened, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize(("n", "m", "rank"), [(5, 30, 4), (30, 5, 5)])
def test_components_are_capped_at_the_rank(n, m, rank, whiten):
    matrix = features(n, m)
    preparation = Preparation(n_components=1000, whiten=whiten, unit_norm=False).fit(matrix)
    assert preparation.dimension_ == rank
    assert preparation.transform(matrix).shape == (n, rank)


def test_rank_of_single_precision_features_does_not_count_rounding():
    rng = np.random.default_rng(1)
    matrix = (rng.normal(size=(50, 4)) @ rng.normal(size=(4, 20)) + 5).astype(np.float32)
    centred = matrix - matrix.mean(axis=0)
    _, eigenvalues = principal_axes(centred)
    assert eigenvalues[3] > 1e3 * eigenvalues[4:].sum()
    assert len(eigenvalues) <= 8


def test_new_samples_use_the_training_mean():
    training, new = features(seed=0), features(7, seed=1)
    expected = new - training.mean(axis=0)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(Preparation().fit(training).transform(new), expected, atol=1e-12)


def test_without_centring_axes_are_about_zero():
    matrix = features()
    prepared = Preparation(center=False, unit_norm=False, n_components=1).fit_transform(matrix)
    singular = np.linalg.svd(matrix, compute_uv=False)[0]
    assert np.linalg.norm(prepared) == pytest.approx(singular)
    untouched = Preparation(center=False, unit_norm=False).fit_transform(matrix)
    np.testing.assert_array_equal(untouched, matrix)


def test_rows_equal_to_the_mean_stay_zero():
    matrix = np.full((7, 3), 0.1)
    np.testing.assert_array_equal(Preparation().fit_transform(matrix), np.zeros((7, 3)))
    np.testing.assert_array_equal(unit_rows(np.zeros((2, 3))), np.zeros((2, 3)))


@given(
    n=st.integers(1, 12),
    m=st.integers(1, 9),
    seed=st.integers(0, 2**16),
    center=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=60, deadline=None)
def test_rows_are_of_unit_length_or_zero(n, m, seed, center, dtype):
    matrix = np.random.default_rng(seed).normal(size=(n, m)).astype(dtype)
    norms = np.linalg.norm(Preparation(center=center).fit_transform(matrix), axis=1)
    assert np.all(np.isclose(norms, 1, atol=1e-5) | (norms == 0))
    if n > 1 or not center:
        assert norms.max() > 0.5


@pytest.mark.parametrize("options", [{}, {"whiten": True, "n_components": 5}])
@pytest.mark.parametrize("power", [0.5, 2.0])
def test_power_keeps_signs_and_comes_first(power, options):
    matrix, new = features() - 3, features(seed=1) - 3
    raised = [np.sign(m) * np.abs(m) ** power for m in (matrix, new)]
    expected = Preparation(**options).fit(raised[0]).transform(raised[1])
    found = Preparation(power=power, **options).fit(matrix).transform(new)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert not np.allclose(found, Preparation(**options).fit(matrix).transform(new), atol=0.01)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "options",
    [{}, {"power": 0.5}, {"n_components": 3}, {"whiten": True}, {"center": False, "whiten": True}],
)
def test_arrays_restore_the_same_transform_and_dtype(options, dtype):
    matrix = features(dtype=dtype)
    fitted = Preparation(**options).fit(matrix)
    prepared = fitted.transform(matrix)
    restored = Preparation(**options).from_arrays(fitted.to_arrays())
    assert prepared.dtype == dtype
    assert restored.dimension_ == fitted.dimension_ == prepared.shape[1]
    np.testing.assert_array_equal(restored.transform(matrix), prepared)
    other = np.float64 if dtype == np.float32 else np.float32
    assert fitted.transform(matrix.astype(other)).dtype == other


@pytest.mark.parametrize(
    ("dtype", "becomes"),
    [
        (np.uint8, np.float32),
        (np.int16, np.float32),
        (np.float16, np.float32),
        (np.bool_, np.float32),
        (np.int32, np.float64),
        (np.int64, np.float64),
        (np.longdouble, np.float64),
        (">f4", np.float32),
        (">f8", np.float64),
    ],
)
def test_other_numbers_become_the_type_that_holds_them(dtype, becomes):
    matrix = np.random.default_rng(0).integers(0, 200, (6, 4)).astype(dtype)
    expected = Preparation().fit_transform(matrix.astype(becomes))
    prepared = Preparation().fit_transform(matrix)
    assert prepared.dtype == becomes
    assert prepared.tobytes() == expected.tobytes()


def test_a_matrix_of_rows_one_after_the_other_is_not_copied():
    matrix = features(dtype=np.float32)
    assert check_matrix(matrix, "pixels") is matrix
    assert check_matrix(np.ma.masked_array(matrix), "pixels").base is matrix


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0 must be a whole number of at least 1, or None"),
        ({"n_components": 2.5}, "n_components=2.5"),
        ({"ridge": -1.0}, "ridge=-1.0"),
        ({"ridge": "small"}, "ridge='small'"),
        ({"power": 0}, "power=0 must be a number above 0"),
        ({"center": "yes"}, "center='yes' must be True or False"),
        ({"whiten": 1}, "whiten=1"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        Preparation(**options)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.array([[1.0, np.nan], [0, 1]]), "pixels: 1 of 2 rows .*nan in row 0, column 1"),
        (np.array([[1.0, 0], [-np.inf, 1]]), "pixels: 1 of 2 rows .*-inf in row 1, column 0"),
        (np.zeros(3), r"pixels must be a non-empty matrix.*shape \(3,\).*reshape\(1, -1\)"),
        (np.float64(3), r"pixels must be a non-empty matrix.*shape \(\)"),
        (np.zeros((2, 3, 4)), r"pixels must be a non-empty matrix.*shape \(2, 3, 4\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        (np.zeros((3, 0)), r"shape \(3, 0\)"),
        ([], r"shape \(0,\)"),
        (np.array([["a"]]), "pixels must be real numbers, got <U1"),
        (np.array([[1.0, None]]), "pixels must be real numbers, got object; convert them"),
        (np.array([[1j, 2]]), "pixels must be real numbers, got complex128; give their parts"),
        (np.array([[1, 2]], dtype="m8[s]"), "pixels must be real numbers, got timedelta64"),
        ([[1.0, 2.0], [3.0]], "pixels is no matrix: .*inhomogeneous"),
        (sparse.csr_array(np.eye(3)), r"pixels is a sparse csr_array; give pixels.toarray\(\)"),
        (
            np.ma.masked_array(np.ones((3, 2)), [[0, 0], [0, 1], [0, 0]]),
            r"pixels holds masked values \(first: row 1\)",
        ),
    ],
)
def test_bad_features_are_named(matrix, message):
    with pytest.raises(InputError, match=message):
        Preparation().fit(matrix, name="pixels")


def test_other_wrong_uses():
    with pytest.raises(InputError, match="not fitted"):
        Preparation().transform(np.eye(3))
    with pytest.raises(InputError, match="not fitted"):
        Preparation().from_arrays({})
    with pytest.raises(InputError, match="4 columns, but training had 3"):
        Preparation().fit(np.eye(3)).transform(np.eye(4))
    with pytest.raises(InputError, match="no variance"):
        Preparation(whiten=True).fit(np.ones((4, 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [-1, 1])
@pytest.mark.parametrize("center", [True, False])
def test_unit_norm_is_the_same_at_scales_whose_squares_are_no_numbers(dtype, power, center):
    matrix = features(dtype=dtype)
    scaled = matrix * dtype(2.0) ** (power * (100 if dtype is np.float32 else 600))
    expected = Preparation(center=center).fit_transform(matrix)
    found = Preparation(center=center).fit_transform(scaled)
    np.testing.assert_allclose(found, expected, atol=8 * np.finfo(dtype).eps)
