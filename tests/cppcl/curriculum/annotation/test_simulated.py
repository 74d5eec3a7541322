"""What a simulated annotator is asked, and how it answers."""

import numpy as np
import pytest

from cppcl.curriculum.annotation.simulated import BAND, simulated_answers
from cppcl.errors import InputError


def sketches(n=60, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(["a", "b", "c"], n // 3))
    return rng.normal(5, 2, n), rng.random((n, 6)), labels, [f"s{k}" for k in range(n)]


def test_every_pair_is_of_one_class_and_the_one_with_more_detail_is_easier():
    detail, features, labels, ids = sketches()
    answers = simulated_answers(detail, features, labels, ids)
    row = {name: k for k, name in enumerate(ids)}
    assert 30 <= len(answers) <= 60
    for answer in answers:
        a, b = row[answer.sample_a], row[answer.sample_b]
        assert labels[a] == labels[b]
        apart = abs(detail[a] - detail[b]) > BAND * detail.std()
        assert answer.easier == (("a" if detail[a] > detail[b] else "b") if apart else "skip")
    assert {answer.easier for answer in answers} == {"a", "b", "skip"}


def test_each_is_asked_about_with_its_nearest_by_brute_force():
    detail, features, labels, ids = sketches()
    asked = {(a.sample_a, a.sample_b) for a in simulated_answers(detail, features, labels, ids)}
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    expected = set()
    for k in range(len(ids)):
        others = [j for j in range(len(ids)) if j != k and labels[j] == labels[k]]
        j = max(others, key=lambda j: unit[j] @ unit[k])
        expected.add((ids[min(j, k)], ids[max(j, k)]))
    assert asked == expected


def test_nothing_is_asked_about_what_is_not_known():
    detail, features, labels, ids = sketches()
    detail[::2] = np.nan
    answers = simulated_answers(detail, features, labels, ids)
    known = {name for name, value in zip(ids, detail, strict=True) if value == value}
    assert answers
    assert {name for a in answers for name in (a.sample_a, a.sample_b)} <= known
    assert simulated_answers(np.full(60, np.nan), features, labels, ids) == []


def test_lengths_must_agree():
    detail, features, labels, ids = sketches()
    with pytest.raises(InputError, match="have 59, 60, 60 and 60 entries"):
        simulated_answers(detail[1:], features, labels, ids)
