"""Precision within a Hamming radius against enumeration."""

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.retrieval import hamming
from cppcl.retrieval.hamming import precision_within
from cppcl.retrieval.metrics import CONVENTION, evaluate


def draw(seed=0, n_bits=6):
    rng = np.random.default_rng(seed)
    queries, gallery = (rng.choice([-1, 1], (n, n_bits)).astype(np.int8) for n in (12, 30))
    queries[3] = gallery[4] = 0
    return queries, gallery, rng.integers(0, 3, 12), rng.integers(0, 3, 30)


@pytest.mark.parametrize("radius", [0, 1, 2, 6])
def test_it_is_the_share_of_relevant_codes_in_the_ball(radius, monkeypatch):
    monkeypatch.setattr(hamming, "_CHUNK", 70)
    queries, gallery, of_queries, of_gallery = draw()
    expected = []
    for query, label in zip(queries, of_queries, strict=True):
        ball = [
            other == label
            for code, other in zip(gallery, of_gallery, strict=True)
            if query.any() and code.any() and (query != code).sum() <= radius
        ]
        expected.append(np.mean(ball) if ball else 0)
    found = precision_within(queries, gallery, of_queries, of_gallery, radius)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found[3] == 0


def test_it_is_among_the_scores_where_it_is_asked_for():
    queries, gallery, of_queries, of_gallery = draw(n_bits=3)
    found = evaluate(queries, gallery, of_queries, of_gallery, radius=1)
    within = precision_within(queries, gallery, of_queries, of_gallery, 1)
    assert found.scores["precision_within_1"] == pytest.approx(within.mean())
    assert found.n_bits == 3
    assert found.convention.startswith(CONVENTION)
    assert "Hamming" in found.convention
    sizes = np.bincount(of_gallery)
    assert found.chance["precision_within_1"] == pytest.approx(np.mean(sizes[of_queries]) / 30)
    plain = evaluate(queries, gallery, of_queries, of_gallery)
    assert plain.n_bits is None
    assert plain.convention == CONVENTION
    assert plain.scores == {k: v for k, v in found.scores.items() if "within" not in k}


def test_codes_that_are_not_binary_are_named():
    queries, gallery, of_queries, of_gallery = draw()
    wrong = gallery.astype(float)
    wrong[7, 2] = 0.5
    with pytest.raises(InputError, match=r"gallery_codes row 7 holds 0\.5"):
        evaluate(queries, wrong, of_queries, of_gallery, radius=2)
    with pytest.raises(InputError, match="radius=-1"):
        evaluate(queries, gallery, of_queries, of_gallery, radius=-1)
