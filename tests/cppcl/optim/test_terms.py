import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.learning.affinity import within_weights
from cppcl.learning.graph import Laplacian
from cppcl.optim import terms as module
from cppcl.optim.terms import CodeBlock, GraphTerm, Reconstruction, Sparsity

K, L, N = 4, 6, 5


def terms(seed=0, within="knn", beta=0.7):
    rng = np.random.default_rng(seed)
    labels = [0, 0, 1, 2], [0, 1, 1, 1, 2, 3]
    blocks, weights = [], []
    for rows, m, of_side in zip((slice(0, K), slice(K, K + L)), (7, 9), labels, strict=True):
        F = rng.standard_normal((rows.stop - rows.start, m))
        blocks.append(CodeBlock(rows, F, rng.standard_normal((N, m)) / m**0.5))
        weights.append(within_weights(F, of_side, within, n_neighbors=2))
    graph = Laplacian.from_labels(*labels, within=tuple(weights))
    C, v = rng.standard_normal((K + L, N)), rng.random(K + L)
    return {"reconstruction": Reconstruction(blocks), "graph": GraphTerm(graph, beta)}, C, v


@pytest.mark.parametrize("name", ["reconstruction", "graph"])
def test_gradients_agree_with_finite_differences(name):
    smooth, C, v = terms()
    term, step = smooth[name], 1e-6
    gradient = term.gradient(C, v)
    for index in np.ndindex(C.shape):
        E = np.zeros_like(C)
        E[index] = step
        numeric = (term.value(C + E, v) - term.value(C - E, v)) / (2 * step)
        assert gradient[index] == pytest.approx(numeric, rel=1e-6, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 999),
    name=st.sampled_from(["reconstruction", "graph"]),
    within=st.sampled_from(["none", "knn", "dense"]),
)
def test_step_bounds_majorise(seed, name, within):
    smooth, C, v = terms(seed, within)
    term = smooth[name]
    move = np.random.default_rng(seed + 1).standard_normal(C.shape)
    bound = term.value(C, v) + np.vdot(term.gradient(C, v), move)
    bound += 0.5 * np.vdot((term.curvature() * v * v)[:, None] * move, move)
    assert term.value(C + move, v) <= bound + 1e-9


def test_values_are_those_written_in_the_paper():
    smooth, C, v = terms(1)
    V = np.diag(v)
    expected = sum(
        np.linalg.norm((b.features - C[b.rows] @ b.dictionary).T @ V[b.rows, b.rows]) ** 2
        for b in smooth["reconstruction"].blocks
    )
    assert smooth["reconstruction"].value(C, v) == pytest.approx(expected)
    dense = smooth["graph"].laplacian.apply(np.eye(K + L))
    assert smooth["graph"].value(C, v) == pytest.approx(0.7 * np.trace(C.T @ V @ dense @ V @ C))
    assert Sparsity(0.3).value(C, v) == pytest.approx(0.3 * np.abs(V @ V @ C).sum())
    assert Sparsity(0.3, "none").value(C, v) == pytest.approx(0.3 * np.abs(C).sum())


@pytest.mark.parametrize("weight", ["v2", "none"])
def test_prox_of_sparsity_is_the_least_of_its_definition(weight):
    term, v, step = Sparsity(0.5, weight), np.array([0.6]), np.array([0.8])
    grid = np.linspace(-3, 3, 60001)
    scale = 0.36 if weight == "v2" else 1.0
    for x in (-2.0, -0.3, 0.0, 0.1, 1.7):
        best = grid[np.argmin(0.5 * (grid - x) ** 2 + 0.8 * 0.5 * scale * np.abs(grid))]
        assert term.prox(np.array([[x]]), v, step)[0, 0] == pytest.approx(best, abs=1e-4)


def test_losses_of_the_same_codes_are_not_computed_again_and_cannot_be_spoilt(monkeypatch):
    smooth, C, _ = terms(2)
    term = smooth["reconstruction"]
    first = term.losses(C)
    first[:] = -1
    monkeypatch.setattr(module, "chunks", lambda n: pytest.fail("computed again"))
    again = term.losses(C)
    assert (again > 0).all()
    monkeypatch.undo()
    np.testing.assert_array_equal(term.losses(C.copy()), again)
    assert not np.array_equal(term.losses(2 * C), again)


def test_more_samples_than_fit_at_once(monkeypatch):
    smooth, C, _ = terms(3)
    whole = smooth["reconstruction"].losses(C)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 2)
    np.testing.assert_allclose(smooth["reconstruction"].losses(C.copy()), whole, rtol=1e-12)
