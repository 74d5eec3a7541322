import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.learning.graph import Laplacian
from cppcl.optim import initialization as module
from cppcl.optim.codes import encode
from cppcl.optim.initialization import (
    complete_atoms,
    initial_dictionaries,
    learn_shared_codes,
    starting_atoms,
)


def shared_views(n=60, N=6, noise=0.01, seed=0):
    """Two views of the same sparse codes, and the dictionaries that made them."""
    rng = np.random.default_rng(seed)
    codes = rng.standard_normal((n, N)) * (rng.random((n, N)) < 0.4)
    atoms = [rng.standard_normal((N, m)) for m in (12, 15)]
    atoms = [D / np.linalg.norm(D, axis=1, keepdims=True) for D in atoms]
    return [codes @ D + noise * rng.standard_normal((n, D.shape[1])) for D in atoms], atoms


def initial(start="samples", initialization="joint", n_atoms=6, n_rounds=10, seed=0):
    views, _ = shared_views()
    labels = np.arange(len(views[0]))
    graph = Laplacian.from_labels(labels, labels)
    return initial_dictionaries(
        tuple(views),
        graph,
        n_atoms,
        alpha=0.02,
        initialization=initialization,
        start=start,
        n_rounds=n_rounds,
        rng=np.random.default_rng(seed),
    )


@pytest.mark.parametrize("n_atoms", [1, 6, 150])
@pytest.mark.parametrize(
    ("start", "initialization"),
    [
        ("samples", "joint"),
        ("principal", "joint"),
        ("correlated", "joint"),
        ("samples", "independent"),
        ("principal", "independent"),
    ],
)
def test_atoms_are_distinct_and_in_the_ball(start, initialization, n_atoms):
    dictionaries = initial(start, initialization, n_atoms, n_rounds=2)
    for D, m in zip(dictionaries, (12, 15), strict=True):
        assert D.shape == (n_atoms, m)
        assert np.linalg.norm(D, axis=1).max() <= 1 + 1e-9
        assert len(np.unique(D.round(9), axis=0)) == n_atoms


def test_learning_lowers_the_joint_error():
    views, _ = shared_views()
    stacked = np.hstack(views)

    def error(dictionaries):
        atoms = np.hstack(dictionaries)
        codes = encode(stacked, atoms, 0.04).codes
        return ((stacked - codes @ atoms) ** 2).sum() + 0.04 * np.abs(codes).sum()

    start = starting_atoms(views, 6, start="samples", rng=np.random.default_rng(0))
    learned = learn_shared_codes(views, start, alpha=0.02, n_rounds=15)
    assert error(learned) < 0.5 * error(start)


def test_joint_atoms_are_paired_and_independent_ones_are_not():
    views, _ = shared_views()

    def agreement(dictionaries):
        sketch, image = (
            encode(F, D, 0.02).codes for F, D in zip(views, dictionaries, strict=True)
        )
        unit = [C / (np.linalg.norm(C, axis=1, keepdims=True) + 1e-12) for C in (sketch, image)]
        return np.einsum("pn,pn->p", *unit).mean()

    assert agreement(initial(initialization="joint")) > 0.8
    assert agreement(initial(initialization="independent")) < 0.5


def test_principal_start_spans_the_leading_singular_directions():
    views, _ = shared_views()
    D = starting_atoms(views, 3, start="principal", rng=np.random.default_rng(0))
    leading = np.linalg.svd(np.hstack(views), full_matrices=False)[2][:3]
    for index, (sketch, image) in enumerate(zip(*D, strict=True)):
        parts = np.split(leading[index], [12])
        for atom, part in zip((sketch, image), parts, strict=True):
            cosine = atom @ part / np.linalg.norm(atom) / np.linalg.norm(part)
            assert cosine == pytest.approx(1)


def test_correlated_start_is_as_long_as_the_relative_strength():
    views, _ = shared_views()
    D = initial("correlated", n_atoms=4, n_rounds=0)
    values = np.linalg.svd(views[0].T @ views[1])[1]
    for of_side in D:
        np.testing.assert_allclose(
            np.linalg.norm(of_side, axis=1), values[:4] / values[0], atol=1e-8
        )


def test_copies_of_samples_differ():
    views = [np.eye(3), np.eye(3)]
    empty = [np.empty((0, 3))] * 2
    D = complete_atoms(empty, views, 8, rng=np.random.default_rng(0))
    assert len(np.unique(D[0].round(9), axis=0)) == 8


def test_correlated_start_needs_pairs():
    with pytest.raises(InputError, match="dictionaries='joint'"):
        initial("correlated", "independent")


@pytest.mark.parametrize("initialization", ["joint", "independent"])
def test_a_large_set_is_learned_from_a_draw_of_paired_samples(initialization, monkeypatch):
    seen = []

    def learn(views, atoms, **rest):
        seen.extend(views)
        return learn_shared_codes(views, atoms, **rest)

    monkeypatch.setattr(module, "learn_shared_codes", learn)
    initial(initialization=initialization, n_atoms=1)
    views, _ = shared_views()
    # 50 samples an atom, of 60; each is one of the set, and pairs stay pairs.
    assert [len(view) for view in seen] == [50, 50]
    rows = [
        [int(np.flatnonzero((view == sample).all(axis=1))[0]) for sample in drawn]
        for view, drawn in zip(views, seen, strict=True)
    ]
    assert all(len(set(of_side)) == 50 for of_side in rows)
    assert (rows[0] == rows[1]) == (initialization == "joint")


@pytest.mark.parametrize(("alpha", "learns"), [(1.5, True), (1.7, False)])
def test_shared_codes_pay_the_weight_of_every_view(alpha, learns):
    """A pair of equal views has no code from alpha = 2 * 0.8 on, as either view alone."""
    F, D = np.array([[0.8, 0.6]]), np.array([[1.0, 0.0]])
    learned = learn_shared_codes([F, F], [D, D], alpha=alpha, n_rounds=1)
    assert [not np.array_equal(found, D) for found in learned] == [learns, learns]
