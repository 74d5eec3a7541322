"""The objective and its steps against dense matrices and enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.hashing import objective
from cppcl.hashing.objective import HashedSamples, HashObjective, set_bits

SIZES = 13, 9


def problem(seed, *, m=4, n_classes=3, unlike=0.5, label_weight=0.7, function_weight=0.3):
    rng = np.random.default_rng(seed)
    sketches, images = (
        HashedSamples(
            rng.permutation(np.arange(n) % n_classes),
            rng.choice([-1.0, 1.0], (n, m)),
            rng.normal(size=(n, m)),
            rng.uniform(0.1, 2, n),
        )
        for n in SIZES
    )
    made = HashObjective(sketches, images, n_classes, unlike, label_weight, function_weight)
    made.class_map = rng.normal(size=(n_classes, m))
    made.penalty = 1.7
    return made


def dense_value(made, *, vectors=None, class_map=None):
    """Objective as it is written down, with W in full."""
    m, G = made.n_bits, made.n_classes
    vectors = np.eye(G) if vectors is None else vectors
    D = made.class_map if class_map is None else class_map
    S, T = made.sketches, made.images
    W = np.where(S.classes[:, None] == T.classes, 1, -made.unlike)
    missed = (W - S.codes @ T.codes.T / m) ** 2
    total = made.function_weight * made.penalty / m
    for side, pairs in ((S, missed.mean(axis=1)), (T, missed.mean(axis=0))):
        told = ((vectors[side.classes] - side.codes @ D.T) ** 2).sum(axis=1)
        fitted = ((side.values - side.codes) ** 2).sum(axis=1) / m
        losses = pairs + made.label_weight * told + made.function_weight * fitted
        total += side.weights @ losses
    return total


@pytest.mark.parametrize("unlike", [1.0, 0.5])
def test_the_value_is_that_of_the_dense_problem(unlike, monkeypatch):
    monkeypatch.setattr(objective, "CHUNK", 4)
    made = problem(0, unlike=unlike)
    assert made.value() == pytest.approx(dense_value(made), rel=1e-12)
    with_unit_weight = problem(0, unlike=unlike)
    with_unit_weight.sketches.weights[2] += 1
    difference = dense_value(with_unit_weight) - dense_value(made)
    assert made.losses(made.sketches)[2] == pytest.approx(difference, rel=1e-9)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_every_bit_is_the_better_of_both(seed):
    made = problem(seed, m=3)
    expected = problem(seed, m=3)
    codes = expected.images.codes
    for k, row in product(range(3), range(len(codes))):
        values = []
        for bit in (codes[row, k], -codes[row, k]):
            codes[row, k] = bit
            values.append(dense_value(expected))
        if values[0] <= values[1] + 1e-12:
            codes[row, k] *= -1
    before = made.images.codes.copy()
    n_changed = made.step_codes(made.images)
    np.testing.assert_array_equal(made.images.codes, codes)
    assert n_changed == (before != codes).sum()


def test_a_bit_on_which_nothing_depends_stays():
    codes = np.array([[1.0, -1.0]])
    assert set_bits(codes, np.eye(2), np.eye(2), np.ones(1), np.zeros((1, 2))) == 0
    np.testing.assert_array_equal(codes, [[1, -1]])


def test_the_class_map_is_the_least_squares_solution():
    made = problem(1)
    made.step_class_map()
    sides = made.sketches, made.images
    u = np.sqrt(np.concatenate([side.weights for side in sides]))[:, None]
    B = np.concatenate([side.codes for side in sides])
    Y = np.eye(3)[np.concatenate([side.classes for side in sides])]
    np.testing.assert_allclose(made.class_map, np.linalg.lstsq(u * B, u * Y)[0].T, atol=1e-10)


def test_random_orthonormal_class_vectors_give_the_same_codes():
    made = problem(2)
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    rotated = dense_value(made, vectors=rotation.T, class_map=rotation @ made.class_map)
    assert rotated == pytest.approx(dense_value(made), rel=1e-12)


def test_codes_that_all_products_are_met_by_cost_nothing():
    # Three classes on the corners of a regular triangle: 2 of 3 bits differ.
    corners = np.array([[1.0, 1, -1], [1, -1, 1], [-1, 1, 1]])
    classes = np.array([0, 1, 2, 2])
    sides = [
        HashedSamples(classes, corners[classes], corners[classes], np.ones(4)) for _ in range(2)
    ]
    made = HashObjective(*sides, 3, 1 / 3, 1.0, 1.0)
    made.step_class_map()
    assert made.value() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("unlike", "wasted"), [(1.0, True), (1 / 3, False)])
def test_opposite_codes_reward_a_bit_that_tells_the_modality_alone(unlike, wasted):
    classes = np.arange(4)
    corners = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    values = []
    for last in ((corners[:, 0], corners[:, 0]), (np.ones(4), -np.ones(4))):
        sides = [
            HashedSamples(classes, np.column_stack([corners, bit]), np.zeros((4, 4)), np.ones(4))
            for bit in last
        ]
        values.append(HashObjective(*sides, 4, unlike, 0.0, 0.0).value())
    assert (values[1] < values[0]) == wasted
