import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import sparse_encode

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.learning.graph import Laplacian
from cppcl.optim.alternation import Alternation
from cppcl.optim.dictionary import project_atoms
from cppcl.optim.pacing.options import Pacing
from cppcl.optim.pacing.problem import group_sizes

K, L, N = 14, 18, 10


def training(seed, *, curricula=True, dtype=np.float64, **options):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, K), rng.integers(0, 4, L)
    features = []
    for m, of_side in zip((9, 11), labels, strict=True):
        F = rng.standard_normal((4, m))[of_side] + 0.7 * rng.standard_normal((len(of_side), m))
        features.append((F / np.linalg.norm(F, axis=1, keepdims=True)).astype(dtype))
    pairs = [np.array([rng.permutation(n)[:2] for _ in range(10)]) for n in (K, L)]
    settings = {"alpha": 0.05, "beta": 0.5, "n_rounds": 12} | options
    pacing = {name: settings.pop(name) for name in Pacing.option_names() if name in settings}
    return Alternation(
        features=tuple(features),
        dictionaries=[
            project_atoms(rng.standard_normal((N, F.shape[1]))).astype(dtype) for F in features
        ],
        laplacian=Laplacian.from_labels(*labels, dtype=dtype),
        group_scale=np.concatenate([group_sizes(of_side) for of_side in labels]).astype(dtype),
        curricula=tuple(
            ExplicitPairs(p, n) if curricula else None for p, n in zip(pairs, (K, L), strict=True)
        ),
        pacing_options=Pacing(**pacing),
        **settings,
    )


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 99),
    regularizer=st.sampled_from(["A", "B", "none"]),
    printed=st.sampled_from([(), ("l1",)]),
    beta=st.sampled_from([0.0, 0.5, 10.0]),
    mu=st.sampled_from([0.0, 0.5]),
)
def test_no_block_step_raises_the_full_objective(seed, regularizer, printed, beta, mu):
    state = training(seed, regularizer=regularizer, printed=printed, beta=beta, mu=mu)
    state.step_codes()
    state.pacing.gamma = 0.3
    rng = np.random.default_rng(seed)
    value = state.objective()
    for _ in range(3):
        for step in (state.step_pacing, state.step_codes, state.step_dictionaries):
            step()
            after = state.objective()
            assert after <= value + 1e-6 * abs(value)
            value = after
            assert state.v.min() >= 0
            assert state.v.max() <= 1
            for D in state.dictionaries:
                assert np.linalg.norm(D, axis=1).max() <= 1 + 1e-6
        state.replace_unused(rng)
        # Atoms that no code uses are free to change.
        assert state.objective() == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("regularizer", ["A", "B", "none"])
def test_the_objective_is_the_sum_written_in_the_paper(regularizer):
    state = training(0, regularizer=regularizer, printed=("l1",))
    rng = np.random.default_rng(1)
    state.codes, state.pacing.v = rng.standard_normal(state.codes.shape), rng.random(K + L)
    state.pacing.gamma = 0.7
    v, C = state.v, state.codes
    expected = state.alpha * np.abs(C).sum()
    for F, D, rows in zip(state.features, state.dictionaries, state.rows, strict=True):
        expected += np.linalg.norm((F - C[rows] @ D).T @ np.diag(v[rows])) ** 2
    dense = state.laplacian.apply(np.eye(K + L))
    expected += 0.5 * np.trace(C.T @ np.diag(v) @ dense @ np.diag(v) @ C)
    if regularizer == "B":
        expected += 0.7 / 2 * np.sum(v**2 - 2 * v)
    if regularizer == "A":
        expected -= 0.7 * np.sum(v / state.group_scale)
    if regularizer != "none":
        for rows, pairs, n in zip(state.rows, state.curricula, (K, L), strict=True):
            hinge = sum(max(0, v[rows][i] - v[rows][j]) for i, j in pairs.pairs)
            expected += 0.5 * 0.7 * n / 10 * hinge
    assert state.objective() == pytest.approx(expected)


def test_pacing_grows_until_every_sample_is_selected_and_then_stops():
    state = training(0, n_rounds=80)
    history = state.run(np.random.default_rng(0))
    gamma = history["gamma"]
    assert len(gamma) < 80
    np.testing.assert_allclose(gamma[1:-6] / gamma[:-7], 1.3)
    np.testing.assert_array_equal(gamma[-6:], gamma[-1])
    assert state.v.min() > 0.9
    assert history["sketch_mean_v"][0] < 0.5 < 0.9 < history["sketch_mean_v"][-1]
    assert history["image_selected"][0] < history["image_selected"][-1] == 1
    assert all(len(column) == len(gamma) for column in history.values())


def test_without_regularizer_the_reconstruction_objective_falls_every_round():
    history = training(1, regularizer="none", n_rounds=10).run(np.random.default_rng(0))
    assert (np.diff(history["reconstruction_objective"]) <= 1e-9).all()
    np.testing.assert_allclose(history["objective"], history["reconstruction_objective"])
    np.testing.assert_array_equal(history["sketch_mean_v"], 1)


def test_curricula_make_marked_samples_wait():
    def mean_v_of_hard(curricula):
        state = training(2, n_rounds=6, mu=5.0, beta=0.0, curricula=False)
        pairs = ExplicitPairs(np.array([[k, k + 7] for k in range(7)]), K)
        state.pacing.curricula = (pairs if curricula else None, None)
        state.run(np.random.default_rng(0))
        violation = pairs.value(state.v[:K])
        return violation, state.v[:K]

    assert mean_v_of_hard(False)[0] > 0.05
    assert mean_v_of_hard(True)[0] < 0.01


def test_graph_pulls_linked_codes_together():
    def disagreement(beta):
        state = training(3, beta=beta, regularizer="none", n_rounds=5)
        state.run(np.random.default_rng(0))
        return state.laplacian.quadratic_form(state.codes) / (state.codes**2).sum()

    assert disagreement(3.0) < 0.3 * disagreement(0.0)


def test_shadow_losses_are_those_of_codes_without_graph_at_full_weight():
    state = training(4, printed=("l1", "shadow_loss"), beta=5.0)
    state.pacing.v = np.full(K + L, 1e-3)
    state.step_codes()
    assert not state.codes.any()
    expected = []
    for F, D in zip(state.features, state.dictionaries, strict=True):
        C = sparse_encode(F, D, algorithm="lasso_cd", alpha=0.05 / 2, max_iter=100_000)
        expected.append(((F - C @ D) ** 2).sum(axis=1))
    np.testing.assert_allclose(state.pacing_losses(), np.concatenate(expected), atol=1e-3)


def test_the_stop_rule_can_be_switched_off():
    state = training(0, n_rounds=60, eta=2.0, stop_when_selected=False)
    gamma = state.run(np.random.default_rng(0))["gamma"]
    assert len(gamma) == 60
    assert gamma[-1] == gamma[-40]


@pytest.mark.parametrize("factor", [4.0, 0.25])
def test_scaling_features_scales_the_alternation(factor):
    """Objective scales by s^2 if alpha scales by s, gamma and mu by s^2; beta stays.

    W and D are fixed, and a power of two leaves every rounding as it is.
    """

    def alternate(s):
        state = training(5, alpha=0.05 * s, gamma0=0.2 * s * s)
        state.features = tuple(F * s for F in state.features)
        state.pacing.gamma = state.pacing_options.gamma0
        state.step_codes()
        for _ in range(3):
            state.step_pacing()
            state.step_codes()
        return state

    plain, scaled = alternate(1.0), alternate(factor)
    np.testing.assert_array_equal(scaled.codes, factor * plain.codes)
    np.testing.assert_array_equal(scaled.v, plain.v)
    assert scaled.objective() == factor**2 * plain.objective()
    assert 0.1 < plain.v.mean() < 0.95


def test_atoms_are_replaced_until_the_last_ten_rounds(monkeypatch):
    replaced = []
    monkeypatch.setattr(
        Alternation, "replace_unused", lambda state, rng: replaced.append(state.round_number)
    )
    training(0, n_rounds=14, regularizer="none").run(np.random.default_rng(0))
    assert replaced == [0, 1, 2, 3]
