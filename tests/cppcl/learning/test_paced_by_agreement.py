"""Pacing by agreement, and sample weights by agreement, where errors are known."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression as Sklearn
from sklearn.metrics import roc_auc_score

import cppcl.learning.agreement as agreeing
from cppcl.errors import InputError
from cppcl.learning.agreement import Agreement, agreement, remembered_agreement
from cppcl.learning.cprl import CPRL
from cppcl.learning.soft_links import expected_group_codes, group_codes
from cppcl.methods import make_method
from tests.cppcl.learning.test_agreement import classes, pairs

SMALL = {"n_atoms": 12, "n_rounds": 12, "alpha": 0.003}


def paced(regularizer="B", **options):
    return CPRL(**SMALL, pacing={"loss": "agreement", "regularizer": regularizer}, **options)


@pytest.mark.parametrize("regularizer", ["B", "A"])
@pytest.mark.parametrize("make", [pairs, classes])
def test_wrong_ones_lose_their_influence(make, regularizer):
    *given, right = make(wrong=0.3)
    model = paced(regularizer).fit(*given)
    right = np.broadcast_to(right, (2, right.shape[-1])).ravel()
    v = np.concatenate([model.sketch_pacing_, model.image_pacing_])
    assert model.right_share_ == pytest.approx(0.7, abs=0.1)
    assert roc_auc_score(right, v) > (0.93 if make is pairs else 0.85)
    assert v[right].mean() > v[~right].mean() + 0.3
    blind = CPRL(**SMALL, pacing={"regularizer": regularizer}).fit(*given)
    last = np.concatenate([blind.sketch_pacing_, blind.image_pacing_])
    assert last[~right].mean() > v[~right].mean() + 0.3


def test_the_schedule_ends_at_the_share_that_is_right():
    *given, _ = pairs(wrong=0.4)
    model = paced().fit(*given)
    v = np.concatenate([model.sketch_pacing_, model.image_pacing_])
    assert model.right_share_ < 0.8
    assert model.history_["gamma"][-1] == model.history_["gamma"][-2]
    assert 0.9 * model.right_share_ < v.mean() < 1


def test_clean_data_are_paced_as_ever():
    *given, _ = pairs()
    one = paced().fit(*given)
    other = CPRL(**SMALL, pacing={"loss": "reconstruction"}).fit(*given)
    assert one.right_share_ == 1
    np.testing.assert_array_equal(one.sketch_dictionary_, other.sketch_dictionary_)
    np.testing.assert_array_equal(one.sketch_pacing_rounds_, other.sketch_pacing_rounds_)


def test_every_step_lowers_the_objective(monkeypatch):
    from cppcl.optim.alternation import Alternation

    values = []
    for name in ("step_pacing", "step_codes", "step_dictionaries"):
        whole = getattr(Alternation, name)

        def recorded(self, step=whole, name=name):
            first_pacing = name == "step_pacing" and self.pacing.gamma is None
            before = np.inf if first_pacing else self.objective()
            step(self)
            values.append((before, self.objective()))

        monkeypatch.setattr(Alternation, name, recorded)
    *given, _ = pairs(wrong=0.3)
    model = paced().fit(*given)
    assert len(values) == 3 * len(model.history_["gamma"])
    for before, after in values:
        assert after <= before * (1 + 1e-9) + 1e-9


def test_resumes_with_the_same_bytes():
    *given, _ = pairs(n=60, wrong=0.3)
    states = []
    whole = paced().fit(*given, callback=lambda state: states.append(dict(state.to_arrays())))
    again = paced().fit(*given, resume_from=states[3])
    np.testing.assert_array_equal(whole.sketch_dictionary_, again.sketch_dictionary_)
    np.testing.assert_array_equal(whole.image_pacing_, again.image_pacing_)


def test_spaces_judge_together(monkeypatch):
    *given, _ = pairs(n=60, wrong=0.3)
    asked = []

    def counted(*arguments, **options):
        asked.append(options["spaces"])
        return agreement(*arguments, **options)

    monkeypatch.setattr(agreeing, "agreement", counted)
    monkeypatch.setattr(agreeing, "_remembered", {})
    options = SMALL | {"pacing": {"loss": "agreement"}, "composition": {"spaces": "separate"}}
    widths = (10, 20), (10, 20)
    model = make_method("cprl", **options).fit(*given, spaces=widths)
    assert asked == [widths]
    arrays = model.to_arrays()
    probability = agreement(*given, spaces=widths).sketch_probability
    np.testing.assert_array_equal(arrays["sketch_probability"], probability)
    np.testing.assert_array_equal(arrays["space1_sketch_probability"], probability)
    make_method("cprl", **options).fit(*given, spaces=widths)
    assert asked == [widths]


def certain(n, weights):
    """Agreement of pairs of given probabilities."""
    rows = np.arange(n)
    return Agreement("pairs", np.ones(n), np.ones(n), *weights, 0.5, rows, rows)


@pytest.mark.parametrize("method", ["ridge_cca", "class_cca"])
def test_canonical_analysis_weighs_links_by_both_samples(method):
    sketches, images, names, partner, _ = pairs(n=80)
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.1, 1, (2, 80))
    options = {"n_directions": 5}
    found = make_method(method, sample_weights="agreement", **options).fit(
        sketches, images, names, partner, agreement=certain(80, weights)
    )
    links = sparse.csr_array(np.diag(weights[0] * weights[1]))
    expected = make_method(method, **options).fit(sketches, images, names, partner, links=links)
    np.testing.assert_allclose(
        found.encode_sketches(sketches), expected.encode_sketches(sketches), atol=1e-8
    )


def test_logistic_regression_weighs_samples():
    sketches, images, sketch_labels, image_labels, _ = classes(n=60, n_classes=3)
    weights = np.random.default_rng(0).uniform(0.1, 1, (2, 60))
    options = {"sharing": 1.0, "C": 1.0}
    model = make_method("logistic_regression", sample_weights="agreement", **options)
    model.fit(sketches, images, sketch_labels, image_labels, agreement=certain(60, weights))
    prepared = [
        model._preparations[m].transform(F) for m, F in (("sketch", sketches), ("image", images))
    ]
    oracle = Sklearn(C=1.0, tol=1e-6, max_iter=1000).fit(
        np.concatenate(prepared),
        np.concatenate([sketch_labels, image_labels]),
        sample_weight=weights.ravel(),
    )
    order = [int(np.flatnonzero(oracle.classes_ == c)[0]) for c in dict.fromkeys(sketch_labels)]
    np.testing.assert_allclose(
        model.encode_sketches(sketches), oracle.predict_proba(prepared[0])[:, order], atol=0.01
    )


def test_expected_groups_are_those_of_labels_where_certain():
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((30, 4)), rng.standard_normal((20, 4))
    labels = rng.integers(4, size=30), rng.integers(1, 5, size=20)
    weights = rng.uniform(0.1, 1, 30), rng.uniform(0.1, 1, 20)
    members = tuple(
        sparse.csr_array(w[:, None] * (of_modality[:, None] == np.arange(5)))
        for w, of_modality in zip(weights, labels, strict=True)
    )
    for found, expected in zip(
        expected_group_codes(codes, labels, members),
        group_codes(codes, labels, weights),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected)
    by_hand = np.average(codes[0][labels[0] == 1], axis=0, weights=weights[0][labels[0] == 1])
    np.testing.assert_allclose(group_codes(codes, labels, weights)[0][0], by_hand)


def test_members_are_probabilities():
    *given, _ = classes(wrong=0.3)
    found = agreement(*given)
    for members, probability in zip(found.members, found.probabilities, strict=True):
        dense = members.toarray()
        np.testing.assert_allclose(dense.sum(axis=1), 1, atol=0.01)
        assert dense.max() <= 1
        assert np.isclose(dense, probability[:, None]).any(axis=1).all()


def test_agreement_is_remembered(monkeypatch):
    monkeypatch.setattr(agreeing, "_remembered", {})
    *features, names, partner, _ = pairs(n=60)
    first = remembered_agreement(tuple(features), (names, partner))
    assert remembered_agreement(tuple(features), (names, partner)) is first
    assert remembered_agreement(tuple(features), (names, partner[::-1])) is not first
    assert remembered_agreement(tuple(features), (names, partner), seed=1) is not first


def test_refusals():
    *given, _ = pairs(n=40)
    links = np.eye(40)
    with pytest.raises(InputError, match="loss='agreement' judges labels, not given links"):
        paced().fit(*given, links=links)
    with pytest.raises(InputError, match="sample_weights='agreement' judges labels"):
        make_method("ridge_cca", sample_weights="agreement").fit(*given, links=links)
    with pytest.raises(InputError, match="loss='agreement' is of pacing"):
        paced("none")
    with pytest.raises(InputError, match="loss='odds'"):
        CPRL(pacing={"loss": "odds"})
    with pytest.raises(InputError, match="sample_weights='yes'"):
        make_method("class_cca", sample_weights="yes")
    with pytest.raises(InputError, match="agreement is of 3 sketch samples"):
        paced().fit(*given, agreement=certain(3, np.ones((2, 3))))
