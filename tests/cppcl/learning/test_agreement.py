"""Agreement of samples with their partners and labels, against data whose errors are known."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from cppcl.errors import InputError
from cppcl.learning.agreement import agreement, listed_links
from cppcl.learning.mixture import mixture


def pairs(n=200, wrong=0.0, seed=0, noise=0.7):
    """Features of n pairs in two spaces, names of their partners, and which are right."""
    rng = np.random.default_rng(seed)
    content = rng.standard_normal((n, 12))
    maps = rng.standard_normal((2, 12, 30))
    sketches, images = (content @ M + noise * rng.standard_normal((n, 30)) for M in maps)
    partner = np.arange(n)
    moved = rng.choice(n, int(wrong * n), replace=False)
    partner[moved] = np.roll(moved, 1)
    return sketches, images, np.arange(n), partner, partner == np.arange(n)


def classes(n=300, wrong=0.0, seed=0, n_classes=8):
    """Sketches and images of classes, their labels, and which labels are right."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((n_classes, 20))
    truth = rng.integers(n_classes, size=(2, n))
    features = means[truth] + 1.2 * rng.standard_normal((2, n, 20))
    labels = truth.copy()
    for row in labels:
        chosen = rng.choice(n, int(wrong * n), replace=False)
        row[chosen] += rng.integers(1, n_classes, len(chosen))
    labels %= n_classes
    return features[0], features[1], labels[0], labels[1], labels == truth


@pytest.mark.parametrize("make", [pairs, classes])
def test_clean_data_are_all_right(make):
    *given, _ = make()
    found = agreement(*given)
    assert found.kind == make.__name__.replace("classes", "labels")
    assert found.right_share == 1
    assert (found.sketch_probability == 1).all()
    assert (found.image_probability == 1).all()


@pytest.mark.parametrize("names", [np.repeat(np.arange(5), 4), np.arange(20)])
def test_where_all_look_wrong_they_are_judged_all_the_same(names):
    """Of features that have nothing to do with labels; no model is learned from none."""
    for seed in range(4):
        sketches, images = np.random.default_rng(seed).standard_normal((2, 20, 12))
        found = agreement(sketches, images, names, names)
        for values in (found.sketch, found.image, *found.probabilities):
            assert np.isfinite(values).all()
        for member in found.members or ():
            assert (member.data >= 0).all()
            assert member.sum(axis=1) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("make", [pairs, classes])
@pytest.mark.parametrize("wrong", [0.2, 0.4])
def test_wrong_ones_are_found(make, wrong):
    *given, right = make(wrong=wrong)
    found = agreement(*given)
    right = np.broadcast_to(right, (2, right.shape[-1]))
    for truth, scores, probability in zip(
        right,
        (found.sketch, found.image),
        (found.sketch_probability, found.image_probability),
        strict=True,
    ):
        assert roc_auc_score(truth, scores) > 0.9
        assert probability[truth].mean() > 0.8 > 0.4 > probability[~truth].mean()
        assert 0 <= probability.min() <= probability.max() <= 1
    assert found.right_share == pytest.approx(1 - wrong, abs=0.08)


def test_scores_are_out_of_fold():
    """The score of a pair that nothing explains is that of a wrong one, however well one fits."""
    rng = np.random.default_rng(0)
    sketches, images = rng.standard_normal((2, 100, 90))
    found = agreement(sketches, images, np.arange(100), np.arange(100))
    assert abs(found.sketch.mean()) < 4 * found.sketch.std() / 10


def test_mixture_of_known_parts():
    rng = np.random.default_rng(0)
    wrong = rng.standard_normal(20_000)
    scores = np.concatenate([rng.standard_normal(600), rng.normal(3, 1, 1400)])
    probability, share = mixture(scores, wrong)
    assert share == pytest.approx(0.7, abs=0.03)
    densities = [w * np.exp(-((scores - m) ** 2) / 2) for w, m in ((0.3, 0), (0.7, 3))]
    expected = densities[1] / sum(densities)
    assert np.abs(probability - expected).mean() < 0.04
    assert probability.mean() == pytest.approx(share, abs=0.02)
    assert (np.diff(probability[np.argsort(scores)]) >= 0).all()


def test_several_spaces_add_what_each_knows():
    *_, names, partner, right = given = pairs(wrong=0.3, noise=3.0)
    noise = np.random.default_rng(1).standard_normal((2, len(names), 30))
    alone = agreement(*given[:4])
    both = agreement(
        np.hstack([given[0], given[0] + noise[0]]),
        np.hstack([given[1], given[1] + noise[1]]),
        names,
        partner,
        spaces=((30, 30), (30, 30)),
    )
    assert roc_auc_score(right, both.sketch) > roc_auc_score(right, alone.sketch) - 0.02
    assert not np.array_equal(alone.sketch, both.sketch)


def test_samples_without_partner_are_not_judged():
    sketches, images, names, partner, _ = pairs(60)
    names = names.copy()
    names[3] = 1000
    found = agreement(sketches, images, names, partner)
    assert np.isnan(found.sketch[3])
    assert np.isnan(found.image[3])
    assert found.sketch_probability[3] == 1
    assert np.isfinite(np.delete(found.sketch, 3)).all()


def test_links_are_all_pairs_of_equal_targets():
    rng = np.random.default_rng(0)
    a, b = rng.integers(6, size=20), rng.integers(9, size=15)
    left, right = listed_links(a, b)
    assert set(zip(left, right, strict=True)) == {
        (i, j) for i in range(20) for j in range(15) if a[i] == b[j]
    }
    assert len(left) == len(set(zip(left, right, strict=True)))


def test_refusals():
    sketches, images, names, partner, _ = pairs(30)
    with pytest.raises(InputError, match="n_folds=20, but there are 30 pairs"):
        agreement(sketches, images, names, partner, n_folds=20)
    with pytest.raises(
        InputError, match="holds out some of the pairs to judge them, and there are 3"
    ):
        agreement(sketches[:3], images[:3], names[:3], partner[:3])
    with pytest.raises(InputError, match="share no value"):
        agreement(sketches, images, names, partner + 100, kind="pairs")
    with pytest.raises(InputError, match="one label"):
        agreement(sketches, images, names * 0, partner * 0)
    with pytest.raises(InputError, match="kind='both'"):
        agreement(sketches, images, names, partner, kind="both")


def test_the_likeliest_label_is_that_of_the_truth():
    *given, right = classes(wrong=0.2)
    truth = classes()[2:4]
    found = agreement(*given)
    for likeliest, true, labels, is_right in zip(
        (found.sketch_likeliest, found.image_likeliest), truth, given[2:], right, strict=True
    ):
        assert (likeliest == true).mean() > 0.9
        assert (likeliest == labels)[~is_right].mean() < 0.1


def test_a_space_that_does_not_vary_changes_nothing():
    sketches, images, names, partner, _ = pairs(60, wrong=0.3)
    flat = np.ones((60, 3))
    alone = agreement(sketches, images, names, partner)
    both = agreement(
        np.hstack([sketches, flat]),
        np.hstack([images, flat]),
        names,
        partner,
        spaces=((30, 3), (30, 3)),
    )
    np.testing.assert_allclose(both.sketch, alone.sketch, atol=1e-9)
