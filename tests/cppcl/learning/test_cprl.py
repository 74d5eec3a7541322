import inspect
import json
from typing import get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.errors import InputError
from cppcl.learning.cprl import CPRL
from tests.nested import nested


def two_views(n_train=200, n_test=150, N=30, m=60, noise=0.5, seed=0):
    """Shared sparse codes seen through two unrelated dictionaries of equal width, with noise."""
    rng = np.random.default_rng(seed)
    atoms = [rng.standard_normal((N, m)) for _ in range(2)]
    codes = rng.standard_normal((n_train + n_test, N)) * (rng.random((n_train + n_test, N)) < 0.2)
    views = [codes @ D + noise * rng.standard_normal((len(codes), m)) for D in atoms]
    return [F[:n_train] for F in views], [F[n_train:] for F in views]


def rank_1(queries, gallery):
    """Share of queries whose nearest gallery row by cosine is their own."""
    unit = [X / (np.linalg.norm(X, axis=1, keepdims=True) + 1e-12) for X in (queries, gallery)]
    return float(((unit[0] @ unit[1].T).argmax(axis=1) == np.arange(len(queries))).mean())


def small(dtype=np.float64, seed=0):
    """Fit's four positional arguments on a tiny problem with classes missing on either side."""
    rng = np.random.default_rng(seed)
    sketch_labels, image_labels = ["a", "a", "b", "c", "d"], ["a", "b", "b", "c", "e", "e"]
    F = rng.standard_normal((5, 8)).astype(dtype)
    G = rng.standard_normal((6, 9)).astype(dtype)
    return F, G, sketch_labels, image_labels


def fitted(dtype=np.float64, **options):
    return CPRL(**nested(**{"n_atoms": 4, "n_rounds": 3, **options})).fit(*small(dtype))


@pytest.mark.parametrize("regularizer", ["B", "A", "none"])
@pytest.mark.parametrize("atom_start", ["samples", "correlated"])
def test_retrieval_beats_raw_cosine_by_far(regularizer, atom_start):
    (sketches, images), (queries, gallery) = two_views()
    names = [f"pair {k}" for k in range(len(sketches))]
    model = CPRL(
        n_atoms=40,
        alpha=0.02,
        beta=0.3,
        pacing={"regularizer": regularizer},
        initialization={"atom_start": atom_start},
    )
    model.fit(sketches, images, names, names)
    score = rank_1(model.encode_sketches(queries), model.encode_images(gallery))
    assert rank_1(queries, gallery) < 0.05
    assert score > 0.5


def test_independent_dictionaries_without_graph_are_no_better_than_chance():
    (sketches, images), (queries, gallery) = two_views()
    names = np.arange(len(sketches))
    model = CPRL(n_atoms=40, alpha=0.02, beta=0.0, initialization={"dictionaries": "independent"})
    model.fit(sketches, images, names, names)
    assert rank_1(model.encode_sketches(queries), model.encode_images(gallery)) < 0.05


def test_classes_of_several_samples_are_retrieved():
    rng = np.random.default_rng(0)
    centres = [rng.standard_normal((5, m)) for m in (20, 25)]

    def draw(n):
        labels = np.arange(n) % 5
        return labels, [C[labels] + rng.standard_normal((n, C.shape[1])) for C in centres]

    labels, (sketches, images) = draw(100)
    tested, (queries, gallery) = draw(60)
    model = CPRL(n_atoms=10, alpha=0.01).fit(sketches, images, labels, labels)
    codes = [model.encode_sketches(queries), model.encode_images(gallery)]
    unit = [C / (np.linalg.norm(C, axis=1, keepdims=True) + 1e-12) for C in codes]
    nearest = (unit[0] @ unit[1].T).argmax(axis=1)
    assert (tested[nearest] == tested).mean() > 0.8


@pytest.mark.parametrize(
    "options", [{}, {"whiten": True, "n_components": 3, "center_codes": True}]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_restore_the_same_encodings(options, dtype):
    model = fitted(dtype, **options)
    F, G, *_ = small(dtype)
    arrays = model.to_arrays()
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    again = CPRL(**nested(n_atoms=4, n_rounds=3, **options)).from_arrays(arrays)
    np.testing.assert_array_equal(again.encode_sketches(F), model.encode_sketches(F))
    np.testing.assert_array_equal(again.encode_images(G), model.encode_images(G))
    assert again.history_.keys() == model.history_.keys()
    for name, column in model.history_.items():
        np.testing.assert_array_equal(again.history_[name], column)
    np.testing.assert_array_equal(again.sketch_pacing_, model.sketch_pacing_)
    np.testing.assert_array_equal(again.image_dictionary_, model.image_dictionary_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept_and_codes_are_float32(dtype):
    model = fitted(dtype)
    F, G, *_ = small(dtype)
    assert model.sketch_dictionary_.dtype == dtype
    assert model.image_pacing_.dtype == dtype
    for codes, n in ((model.encode_sketches(F), 5), (model.encode_images(G), 6)):
        assert codes.dtype == np.float32
        assert codes.shape == (n, 4)


@settings(max_examples=10, deadline=None)
@given(
    n_atoms=st.sampled_from([1, 3, 40]),
    regularizer=st.sampled_from(["A", "B", "none"]),
    seed=st.integers(0, 9),
)
def test_atoms_stay_in_the_ball_and_codes_finite(n_atoms, regularizer, seed):
    model = CPRL(n_atoms=n_atoms, n_rounds=2, seed=seed, pacing={"regularizer": regularizer})
    model.fit(*small(seed=seed))
    for D in (model.sketch_dictionary_, model.image_dictionary_):
        assert D.shape[0] == n_atoms
        assert np.linalg.norm(D, axis=1).max() <= 1 + 1e-6
    assert np.isfinite(model.encode_sketches(small()[0])).all()
    for v in (model.sketch_pacing_, model.image_pacing_):
        assert v.min() >= 0
        assert v.max() <= 1


@pytest.mark.parametrize("modality", ["sketch", "image"])
def test_one_curriculum_may_take_part_alone(modality):
    given = {
        "sketch_curriculum": ExplicitPairs(np.array([[0, 1], [2, 3]]), len(small()[0])),
        "image_curriculum": ExplicitPairs(np.array([[4, 5], [1, 3]]), len(small()[1])),
    }
    model = CPRL(n_atoms=4, n_rounds=3, pacing={"mu": 5.0})
    both = clone(model).fit(*small(), **given)
    name = f"{modality}_curriculum"
    alone = clone(model).fit(*small(), **{name: given[name]})
    chosen = model.set_params(pacing__curricula=modality).fit(*small(), **given)
    for pacing in ("sketch_pacing_", "image_pacing_"):
        np.testing.assert_array_equal(getattr(chosen, pacing), getattr(alone, pacing))
    assert not np.array_equal(chosen.sketch_dictionary_, both.sketch_dictionary_)


def test_curricula_change_what_is_learned():
    pairs = ExplicitPairs(np.array([[0, 1], [2, 3]]), 5)
    plain = fitted()
    guided = CPRL(n_atoms=4, n_rounds=3, pacing={"mu": 5.0}).fit(*small(), sketch_curriculum=pairs)
    assert pairs.value(guided.sketch_pacing_) <= pairs.value(plain.sketch_pacing_)
    assert not np.array_equal(guided.sketch_pacing_, plain.sketch_pacing_)
    ignored = CPRL(n_atoms=4, n_rounds=3, pacing={"mu": 0.0}).fit(
        *small(), sketch_curriculum=pairs
    )
    np.testing.assert_array_equal(
        ignored.sketch_pacing_,
        CPRL(n_atoms=4, n_rounds=3, pacing={"mu": 0.0}).fit(*small()).sketch_pacing_,
    )


def test_centred_codes_have_mean_zero_on_the_training_samples():
    F, G, *_ = small()
    model = fitted(center_codes=True, alpha=0.01)
    assert model.encode_sketches(F).any()
    np.testing.assert_allclose(model.encode_sketches(F).mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(model.encode_images(G).mean(axis=0), 0, atol=1e-6)


def test_every_option_is_annotated_and_has_a_plain_default():
    parameters = inspect.signature(CPRL).parameters
    assert len(parameters) <= 12
    assert parameters.keys() <= get_type_hints(CPRL).keys()
    assert {parameter.kind for parameter in parameters.values()} == {
        inspect.Parameter.KEYWORD_ONLY
    }
    assert json.loads(json.dumps(CPRL().options())) == CPRL().options() | {"printed": []}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("n_atoms", value) for value in (0, 2.5, True, "many")),
        *(("alpha", value) for value in (-0.1, float("nan"), float("inf"), None)),
        *(("beta", value) for value in (-1.0, "1")),
        *(("regularizer", value) for value in ("C", ["B"])),
        *(("gamma0", value) for value in (0.0, float("nan"))),
        ("eta", 1.0),
        *(("n_rounds", value) for value in (0, 10.0)),
        ("mu", -1.0),
        ("coupling", "product"),
        ("selection", "hard"),
        ("qp_solver", "simplex"),
        *(("printed", value) for value in (["signs"], "sign", ["sign", "sign"])),
        ("center_codes", 1),
        ("unit_norm", "no"),
        ("pacing", 3),
        ("normalize", "rows"),
        ("dictionaries", "random"),
        ("atom_start", "zeros"),
        ("n_initial_rounds", -1),
        ("code_ridge", -1.0),
        ("n_components", 0),
        ("ridge", -1.0),
        *(("seed", value) for value in (-1, 0.5)),
        ("soft_links", -1),
        ("link_model", "mean"),
        ("link_temperature", 0),
        ("power", 0),
    ],
)
def test_options_out_of_range_are_named(option, value):
    with pytest.raises(InputError, match=option):
        CPRL(**nested(**{option: value}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"selection": "binary"}, "use regularizer='A'"),
        ({"printed": ["coupling"], "qp_solver": "osqp"}, "use qp_solver='fista'"),
        ({"printed": ["sign"], "regularizer": "A"}, "regularizer='B'"),
        ({"printed": ["unscaled_graph"], "normalize": "sym"}, "normalize='sym'"),
        ({"printed": ["dense_graph"], "within": "knn"}, "within='knn'"),
        ({"device": "cuda"}, "code_solver='gradient'"),
    ],
)
def test_contradicting_options_are_refused_with_the_mend(options, message):
    with pytest.raises(InputError, match=message):
        CPRL(**nested(**options))


def test_binary_selection_paces_by_zeros_and_ones():
    model = fitted(regularizer="A", selection="binary", gamma0=0.6, n_rounds=10)
    share = model.history_["image_mean_v"]
    assert share[0] < share[-1] == 1
    assert set(model.image_pacing_.tolist()) == {1.0}
    fewer = fitted(regularizer="A", selection="binary", gamma0=0.6, n_rounds=4)
    assert set(fewer.image_pacing_.tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("qp_solver", ["osqp", "cvxpy"])
def test_solvers_of_the_pacing_step_learn_the_same(qp_solver):
    options = {"n_rounds": 3, "beta": 1.0, "whiten": False}
    one, other = fitted(**options), fitted(**options, qp_solver=qp_solver)
    assert one.image_pacing_.std() > 0.01
    np.testing.assert_allclose(other.image_pacing_, one.image_pacing_, atol=2e-3)
    assert other.image_pacing_.tobytes() != one.image_pacing_.tobytes()


def test_printed_coupling_paces_otherwise():
    one, other = fitted(n_rounds=3), fitted(n_rounds=3, printed=["coupling"])
    assert np.abs(other.image_pacing_ - one.image_pacing_).max() > 0.01


def test_dual_dictionary_step_learns_as_well_and_is_refused_for_many_atoms():
    (sketches, images), _ = two_views(m=20)
    names = np.arange(len(sketches))
    options = {"n_atoms": 20, "alpha": 0.02, "n_rounds": 5}
    one, other = (
        CPRL(**options, printed=printed).fit(sketches, images, names, names)
        for printed in ([], ["dual"])
    )
    finals = [model.history_["reconstruction_objective"][-1] for model in (one, other)]
    assert finals[1] == pytest.approx(finals[0], rel=0.02)
    assert not np.array_equal(one.sketch_dictionary_, other.sketch_dictionary_)
    with pytest.raises(InputError, match=r"sketch_features: .*dual"):
        fitted(n_atoms=5, printed=["dual"])


def test_correlated_start_without_pairs_is_refused():
    with pytest.raises(InputError, match="joint"):
        fitted(dictionaries="independent", atom_start="correlated")


def test_arrays_of_another_size_are_refused():
    with pytest.raises(InputError, match="n_atoms=5"):
        CPRL(n_atoms=5).from_arrays(fitted().to_arrays())


def test_more_atoms_than_memory_holds_are_refused():
    features = np.random.default_rng(0).standard_normal((6, 4))
    with pytest.raises(InputError, match=r"n_atoms=2000000 needs 96000 GB .* use fewer atoms"):
        CPRL(n_atoms=2_000_000).fit(features, features, np.arange(6), np.arange(6))
