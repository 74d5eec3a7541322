import numpy as np
import pytest

from cppcl.curriculum import AllPairs, ChainedPairs, ExplicitPairs, Union, pairs_from_scores
from cppcl.curriculum.annotation.answered_pairs import pairs_from_answers
from cppcl.curriculum.annotation.answers import PairAnswer
from cppcl.curriculum.build import build_curriculum
from cppcl.curriculum.scores import hash_pairs
from cppcl.curriculum.semiorder import order_by_scores
from cppcl.curriculum.union import curriculum_arrays, curriculum_from_arrays, joined
from cppcl.errors import InputError

rng = np.random.default_rng(0)
SCORES, LABELS, V = rng.normal(size=20), rng.integers(0, 2, 20), rng.random(20)
ANSWERED = pairs_from_answers(
    [PairAnswer("3", "4", "a"), PairAnswer("7", "9", "b")], [str(k) for k in range(20)]
)
IDS = [str(k) for k in range(20)]
FORMS = {"sampled": ExplicitPairs, "hashed": ExplicitPairs, "all": AllPairs, "chain": ChainedPairs}


@pytest.mark.parametrize("pairs", FORMS)
def test_scores_alone(pairs):
    built = build_curriculum(SCORES, LABELS, pair_form=pairs, ids=IDS, rho=0.4, seed=2)
    assert isinstance(built.curriculum, FORMS[pairs])
    order = order_by_scores(SCORES, LABELS)
    assert built.n_admissible == order.n_pairs == len(order.pairs())
    if pairs == "sampled":
        expected = pairs_from_scores(SCORES, LABELS, rho=0.4, seed=2)
        np.testing.assert_array_equal(built.curriculum.pairs, expected.pairs)
    elif pairs == "hashed":
        expected = hash_pairs(order, IDS, rho=0.4, seed=2)
        np.testing.assert_array_equal(built.curriculum.pairs, expected.pairs)
        assert len(expected)
    else:
        assert built.curriculum.value(V) == FORMS[pairs](order).value(V)


@pytest.mark.parametrize("pairs", FORMS)
def test_answers_alone(pairs):
    built = build_curriculum(SCORES, LABELS, ANSWERED, source="answers", pair_form=pairs, ids=IDS)
    np.testing.assert_array_equal(built.curriculum.pairs, [[4, 3], [7, 9]])


@pytest.mark.parametrize("pairs", FORMS)
def test_both_add_up(pairs):
    built = build_curriculum(SCORES, LABELS, ANSWERED, source="both", pair_form=pairs, ids=IDS)
    alone = build_curriculum(SCORES, LABELS, pair_form=pairs, ids=IDS).curriculum
    parts = (alone, ANSWERED.pairs)
    assert built.curriculum.n_pairs == alone.n_pairs + 2
    assert built.curriculum.value(V) == pytest.approx(sum(part.value(V) for part in parts))
    found = built.curriculum.smoothed_gradient(V, 0.1)
    expected = [part.smoothed_gradient(V, 0.1) for part in parts]
    assert found[0] == pytest.approx(sum(value for value, _ in expected))
    np.testing.assert_allclose(found[1], sum(gradient for _, gradient in expected), atol=1e-12)
    for method, arguments in (("degree", ()), ("curvature", (0.1,))):
        whole = getattr(built.curriculum, method)(*arguments)
        sums = sum(getattr(part, method)(*arguments) for part in parts)
        np.testing.assert_allclose(whole, sums)
    assert hasattr(built.curriculum, "pairs") == (FORMS[pairs] is ExplicitPairs), "solved exactly"


@pytest.mark.parametrize("source", ["scores", "answers", "both"])
@pytest.mark.parametrize("pairs", FORMS)
def test_arrays_restore_the_curriculum(pairs, source):
    curriculum = build_curriculum(
        SCORES, LABELS, ANSWERED, source=source, pair_form=pairs, ids=IDS
    ).curriculum
    restored = curriculum_from_arrays(curriculum_arrays(curriculum), 20)
    assert type(restored) is type(curriculum)
    assert restored.n_pairs == curriculum.n_pairs
    assert restored.value(V) == curriculum.value(V)
    rows = np.array([9, 7, 4, 3, 1, 0, 12, 15, 16, 17, 18, 19])
    kept = restored.restrict(rows)
    assert kept.n_samples == 12
    assert kept.value(V[rows]) == pytest.approx(curriculum.restrict(rows).value(V[rows]))
    assert kept.value(V[rows]) > 0


def test_absolute_thresholds_keep_pairs_when_samples_are_added():
    more = np.concatenate([SCORES, rng.normal(3, 5, size=10)])
    labels = np.concatenate([LABELS, rng.integers(0, 2, 10)])

    def listed(scores, labels, unit):
        order = order_by_scores(scores, labels, delta=0.7, delta_unit=unit)
        return {(h, e) for h, e in order.pairs().tolist() if max(h, e) < 20}

    assert listed(SCORES, LABELS, "absolute") == listed(more, labels, "absolute")
    assert listed(SCORES, LABELS, "deviation") != listed(more, labels, "deviation")
    harder, easier = np.array(sorted(listed(SCORES, LABELS, "absolute"))).T
    assert (SCORES[easier] - SCORES[harder] > 0.7).all()


def test_wrong_options_are_named():
    with pytest.raises(InputError, match="source='answers' needs answers"):
        build_curriculum(SCORES, LABELS, source="answers")
    with pytest.raises(InputError, match="source='people' is not one of"):
        build_curriculum(SCORES, LABELS, source="people")
    with pytest.raises(InputError, match="pair_form='some' is not one of"):
        build_curriculum(SCORES, LABELS, pair_form="some")
    with pytest.raises(InputError, match="pair_form='hashed' needs ids"):
        build_curriculum(SCORES, LABELS, pair_form="hashed")
    with pytest.raises(InputError, match="delta_unit='metres' is not one of"):
        order_by_scores(SCORES, LABELS, delta_unit="metres")
    with pytest.raises(InputError, match=r"over \[3, 4\] samples"):
        Union([ExplicitPairs(np.array([[0, 1]]), n) for n in (3, 4)])
    with pytest.raises(InputError, match="array 'ladder'"):
        curriculum_from_arrays({"ladder": np.zeros((0, 3))}, 4)
    assert joined([ANSWERED.pairs, ANSWERED.pairs]).n_pairs == 4
