"""Suspects: which pairs and labels there are, and in which order."""

from __future__ import annotations

import numpy as np

from cppcl.audit.suspects import suspects_of
from cppcl.learning.agreement import Agreement


def made(kind, sketch, image, p, q, likeliest=((), ())):
    arrays = [np.array(values, dtype=float) for values in (sketch, image, p, q)]
    return Agreement(kind, *arrays, 0.8, *map(np.array, likeliest))


def test_pairs_go_by_probability_then_by_score():
    nan = np.nan
    found = made("pairs", [0.5, 0.1, 0.2, nan], [0.5, 0.2, 0.1], [0.9, 1, 1, 1], [0.9, 1, 1])
    suspects = suspects_of(found, ["a", "b", "c", "alone"], ["a", "c", "b"])
    assert [(one.sketch, one.image) for one in suspects] == [(0, 0), (1, 2), (2, 1)]
    assert [one.given for one in suspects] == ["a", "b", "c"]
    assert np.allclose([one.probability_wrong for one in suspects], [0.1, 0, 0])


def test_every_one_of_several_is_a_suspect_beside_the_one():
    found = made("pairs", [0.1, 0.2, 0.3], [0.2, 0.4, 0.5], [1, 1, 1], [1, 1, 1])
    suspects = suspects_of(found, ["a", "a", "b"], ["a", "b", "b"])
    pairs = [(one.sketch, one.image) for one in suspects]
    assert pairs == [(0, 0), (1, 0), (2, 1), (2, 2)]
    assert [one.score for one in suspects] == [0.1, 0.2, 0.4, 0.5]


def test_a_label_is_of_one_sample_and_has_a_likelier_one():
    found = made("labels", [-1, -3], [-2], [1, 0.2], [0.5], (["cat", "dog"], ["dog"]))
    suspects = suspects_of(found, ["cat", "cat"], ["dog"])
    shown = [(one.sketch, one.image, one.given, one.suggested) for one in suspects]
    assert shown == [(1, None, "cat", "dog"), (None, 0, "dog", ""), (0, None, "cat", "")]
