"""Self-pacing as an object of its own: it paces a subspace learner that knows nothing of it."""

import numpy as np
import pytest

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.errors import InputError
from cppcl.learning.graph import Laplacian
from cppcl.optim.pacing.options import Pacing
from cppcl.optim.pacing.problem import group_sizes
from cppcl.optim.pacing.schedule import SelfPacing
from cppcl.optim.pacing.step import update_pacing

N, N_OUTLIERS, RANK = 120, 18, 2


def planted():
    """Samples near a plane, and outliers in every direction, which come last."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    near = rng.standard_normal((N - N_OUTLIERS, RANK)) @ axes[:, :RANK].T
    near += 0.05 * rng.standard_normal(near.shape)
    far = 2.0 * rng.standard_normal((N_OUTLIERS, 8))
    return np.concatenate([near, far]), axes[:, :RANK]


def subspace(X, weights):
    """Orthonormal basis (m, RANK) that minimises the weighted squared distances."""
    return np.linalg.svd(np.sqrt(weights)[:, None] * X, full_matrices=False)[2][:RANK].T


def tilt(basis, truth):
    """Sine-like distance of a subspace from that which inliers span."""
    return np.linalg.norm(truth - basis @ (basis.T @ truth))


def distances(X, basis):
    return ((X - X @ basis @ basis.T) ** 2).sum(axis=1)


@pytest.mark.parametrize("regularizer", ["A", "B"])
@pytest.mark.parametrize("with_pairs", [False, True])
def test_a_paced_subspace_learner_descends_and_leaves_outliers_for_last(regularizer, with_pairs):
    X, truth = planted()
    pairs = np.array([[N - 1 - k, k] for k in range(N_OUTLIERS)])
    pacing = SelfPacing(
        sizes=[N],
        options=Pacing(regularizer=regularizer, gamma0=0.02),
        curricula=[ExplicitPairs(pairs, N)] if with_pairs else (),
        final_rounds=2,
    )
    plain = basis = subspace(X, np.ones(N))
    least_tilt, gammas = np.inf, []
    for _ in range(60):
        losses = distances(X, basis)
        before = pacing.problem(losses).value(pacing.v) if pacing.gamma else np.inf
        v = pacing.step(losses)
        paced = pacing.problem(losses).value(v)
        assert paced <= before + 1e-12
        basis = subspace(X, v * v)
        fitted = pacing.problem(distances(X, basis)).value(v)
        assert fitted <= paced + 1e-12
        gammas.append(pacing.gamma)
        if pacing.gamma < 2:
            assert v[-N_OUTLIERS:].max() < np.median(v[:-N_OUTLIERS])
            least_tilt = min(least_tilt, tilt(basis, truth))
        if pacing.advance():
            break
    assert least_tilt < 0.1 * tilt(plain, truth)
    # Every sample was selected in the end, and the last rounds were at one gamma.
    assert pacing.v.min() > 0.89
    assert len(gammas) < 60
    assert gammas[-1] == gammas[-3]
    assert gammas[0] == 0.02
    assert gammas[1] == pytest.approx(0.02 * 1.3)


def two_modalities(**options):
    rng = np.random.default_rng(1)
    labels = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 0])
    curricula = [None, ExplicitPairs(np.array([[0, 1], [2, 3]]), 4)]
    own = {name: options.pop(name) for name in Pacing.option_names() if name in options}
    settings = {"curricula": curricula, "laplacian": Laplacian.from_labels(*labels)}
    settings = {"sizes": (5, 4), **settings, **options}
    pacing = SelfPacing(options=Pacing(**own), **settings)
    return pacing, rng.random(9), rng.standard_normal((9, 3))


def test_a_step_is_the_pacing_step_of_its_problem():
    pacing, losses, codes = two_modalities(mu=0.7, beta=0.3)
    assert pacing.gamma is None
    v = pacing.step(losses, codes)
    assert pacing.gamma == 0.5 * np.median(losses)
    problem = pacing.problem(losses, codes)
    assert problem.beta == 0.3
    ((rows, _, mu),) = problem.curricula
    assert rows == slice(5, 9)
    # In units of gamma and of pairs a sample: 4 samples, 2 pairs.
    assert mu == pytest.approx(0.7 * pacing.gamma * 4 / 2)
    np.testing.assert_array_equal(v, update_pacing(problem, start=np.ones(9)).v)
    assert pacing.result.objective == problem.value(v)


def test_the_penalty_is_what_neither_losses_nor_graph_count():
    pacing, losses, codes = two_modalities()
    v = pacing.step(losses, codes)
    total = pacing.problem(losses, codes).value(v)
    data = (v * v) @ losses
    graph = pacing.laplacian.quadratic_form(v[:, None] * codes)
    assert pacing.penalty() == pytest.approx(total - data - graph)
    assert pacing.penalty() < 0


@pytest.mark.parametrize(("printed", "growth"), [((), 2.0), (("pair_weight",), 1.0)])
def test_curricula_keep_up_with_gamma_or_fade_as_printed(printed, growth):
    pacing, losses, codes = two_modalities(printed=printed, eta=2.0)
    pacing.step(losses, codes)
    first = pacing.problem(losses, codes).curricula[0].mu
    assert not pacing.advance()
    assert pacing.problem(losses, codes).curricula[0].mu == growth * first
    if printed:
        assert first == 0.5


@pytest.mark.parametrize(
    ("coupling", "printed"),
    [("trace", ["sign"]), ("trace", ["sign", "coupling"]), ("none", ["sign"])],
)
def test_the_printed_sign_selects_nothing_at_any_gamma(coupling, printed):
    pacing, losses, codes = two_modalities(printed=printed, coupling=coupling, eta=100.0)
    rng = np.random.default_rng(2)
    for _ in range(3):
        np.testing.assert_array_equal(pacing.step(losses, codes), 0)
        assert pacing.result.kkt == 0
        assert not pacing.advance()
        problem = pacing.problem(losses, codes)
        assert problem.value(np.zeros(9)) == 0
        assert min(problem.value(scale * rng.random(9)) for scale in (0.01, 0.1, 1)) > 0


def test_the_printed_group_scale_slows_down_the_modality_of_larger_groups():
    labels = np.arange(4) % 2, np.arange(40) % 2
    losses = np.ones(44)
    paced = {}
    for scale in ("relative", "size"):
        E = np.concatenate([group_sizes(of_side, scale) for of_side in labels])
        pacing = SelfPacing(
            sizes=(4, 40), options=Pacing(regularizer="A", gamma0=1.0), group_scale=E
        )
        paced[scale] = pacing.step(losses)
    np.testing.assert_allclose(paced["relative"], 0.5)
    # Groups of 2 sketches and of 20 images: min(1, gamma / (2 l E)).
    np.testing.assert_allclose(paced["size"], np.repeat([1 / 4, 1 / 40], [4, 40]))


def test_gamma_grows_until_all_are_selected_and_a_few_rounds_follow():
    pacing = SelfPacing(sizes=[2], final_rounds=2, options=Pacing(eta=2.0))
    pacing.step(np.array([1.0, 3.0]))
    outcomes = []
    for least in (0.5, 0.95, 0.8, 0.95, 0.95):
        pacing.v = np.array([least, 1.0])
        outcomes.append((pacing.advance(), pacing.gamma))
    assert outcomes == [(False, 2), (False, 2), (False, 2), (False, 2), (True, 2)]


def test_without_a_regulariser_there_is_no_end():
    pacing, losses, codes = two_modalities(regularizer="none")
    for _ in range(10):
        np.testing.assert_array_equal(pacing.step(losses, codes), 1)
        assert not pacing.advance()
    assert pacing.penalty() == 0


def test_the_state_resumes():
    whole, losses, codes = two_modalities()
    for _ in range(4):
        whole.step(losses, codes)
        whole.advance()
    resumed, _, _ = two_modalities()
    resumed.v, resumed.gamma = whole.v.copy(), whole.gamma
    resumed.rounds_selected = whole.rounds_selected
    np.testing.assert_array_equal(resumed.step(losses, codes), whole.step(losses, codes))


def test_float32_is_kept():
    pacing, losses, _ = two_modalities(laplacian=None)
    assert pacing.step(losses.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"printed": ["sign"], "regularizer": "A"}, "regulariser B, not 'A'"),
        ({"printed": ["coupling"], "coupling": "none"}, "coupling='trace'"),
        ({"sizes": (5, 4, 2)}, "curricula has 2 entries for 3 modalities"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        two_modalities(**options)


def test_a_graph_without_codes_is_refused():
    pacing, losses, _ = two_modalities()
    with pytest.raises(InputError, match="codes is None, but the laplacian compares codes"):
        pacing.step(losses)


def test_an_unknown_group_scale_is_refused():
    with pytest.raises(InputError, match="group_scale='mean' is not one of"):
        group_sizes(np.zeros(3, dtype=int), "mean")
