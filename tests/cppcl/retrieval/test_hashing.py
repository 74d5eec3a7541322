"""Binary codes: against alternating Procrustes, and by what they must keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from cppcl.errors import InputError
from cppcl.retrieval.hashing import IterativeQuantization, signs


def codes(n: int = 60, length: int = 12, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, length)) * np.linspace(3, 0.3, length) + 2.0


def test_it_alternates_signs_and_the_procrustes_rotation() -> None:
    """The oracle solves each rotation by SciPy, from principal components by an SVD."""
    values, bits, rounds = codes(), 5, 7
    learned = IterativeQuantization.fit(values, bits, n_rounds=rounds, seed=3)
    centred = values - values.mean(axis=0)
    _, _, right = np.linalg.svd(centred, full_matrices=False)
    # Directions have a sign that nothing decides; those found are brought to the same.
    spanned = learned.projection @ np.linalg.lstsq(learned.projection, right[:bits].T)[0]
    np.testing.assert_allclose(spanned, right[:bits].T, atol=1e-8)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    directions = vectors[:, ::-1][:, :bits]
    draw = np.random.default_rng(3).standard_normal((bits, bits))
    rotation, projected, errors = np.linalg.qr(draw)[0], centred @ directions, []
    for _ in range(rounds):
        binary = np.where(projected @ rotation >= 0, 1.0, -1.0)
        rotation, _ = orthogonal_procrustes(projected, binary)
        errors.append(np.linalg.norm(binary - projected @ rotation) ** 2)
    np.testing.assert_allclose(learned.projection, directions @ rotation, atol=1e-10)
    np.testing.assert_allclose(learned.errors, errors)
    expected = np.where(centred @ directions @ rotation >= 0, 1, -1)
    np.testing.assert_array_equal(learned.transform(values), expected)


@given(seed=st.integers(0, 1000), bits=st.integers(1, 8))
def test_errors_never_grow_and_the_projection_keeps_lengths(seed: int, bits: int) -> None:
    learned = IterativeQuantization.fit(codes(30, 8, seed), bits, n_rounds=12, seed=seed)
    assert (np.diff(learned.errors) <= 1e-9 * learned.errors[0]).all()
    np.testing.assert_allclose(learned.projection.T @ learned.projection, np.eye(bits), atol=1e-10)


def test_cosine_of_binary_codes_is_the_hamming_distance() -> None:
    values = codes()
    binary = IterativeQuantization.fit(values, 6).transform(values)
    assert binary.dtype == np.int8
    assert set(np.unique(binary)) == {-1, 1}
    hamming = (binary[:1] != binary).sum(axis=1)
    cosine = binary[:1] @ binary.T.astype(float) / 6
    np.testing.assert_allclose(cosine[0], 1 - 2 * hamming / 6)


def test_the_rotation_is_better_than_none() -> None:
    """Two clusters on a diagonal: signs of principal components alone lose little, a turn less."""
    values = codes(200, 6)
    learned = IterativeQuantization.fit(values, 6)
    centred = values - values.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    plain = centred @ vectors[:, ::-1]
    assert learned.errors[-1] < np.sum((signs(plain) - plain) ** 2)


def test_same_seed_same_bytes() -> None:
    first, second = (IterativeQuantization.fit(codes(), 4, seed=7) for _ in range(2))
    assert first.projection.tobytes() == second.projection.tobytes()
    other = IterativeQuantization.fit(codes(), 4, seed=8)
    assert first.projection.tobytes() != other.projection.tobytes()


@pytest.mark.parametrize(
    ("values", "bits", "rounds", "message"),
    [
        (np.ones((3, 2)), 3, 5, "bits=3, and codes have 2 entries"),
        (np.ones((3, 2)), 0, 5, "bits=0"),
        (np.ones((0, 2)), 1, 5, "no row"),
        (np.ones(3), 1, 5, r"shape \(3,\)"),
        (np.array([[np.nan]]), 1, 5, "codes row 0 holds nan"),
        (np.ones((3, 2)), 1, 0, "n_rounds=0"),
    ],
)
def test_what_is_refused(values: np.ndarray, bits: int, rounds: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        IterativeQuantization.fit(values, bits, n_rounds=rounds)
