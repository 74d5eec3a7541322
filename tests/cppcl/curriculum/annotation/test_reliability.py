"""Agreement of annotators, and running counts."""

import itertools
from collections import Counter

import numpy as np
import pytest

from cppcl.curriculum.annotation.answered_pairs import pairs_from_answers
from cppcl.curriculum.annotation.answers import GivenAnswer
from cppcl.curriculum.annotation.reliability import (
    Tally,
    krippendorff_alpha,
    reliability,
    work_of_annotators,
)

# Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011: sections A to C. A row an
# observer, a column a unit, "." where an observer gave nothing.
PUBLISHED = [
    (["0100000010", "1110010000"], 0.095),
    (["aabbdcccedda", "babbbccceddd"], 0.692),
    (
        ["1233214 12".replace(" ", "") + "...", "1233224125.3", ".3332342251.", "12332441251."],
        0.743,
    ),
]


def counts_of(observers):
    values = sorted(set("".join(observers)) - {"."})
    return [[unit.count(value) for value in values] for unit in zip(*observers, strict=True)]


@pytest.mark.parametrize(("observers", "alpha"), PUBLISHED, ids=["binary", "nominal", "missing"])
def test_alpha_of_the_published_examples(observers, alpha):
    assert krippendorff_alpha(counts_of(observers)) == pytest.approx(alpha, abs=5e-4)


@pytest.mark.parametrize("seed", range(3))
def test_alpha_is_one_of_equal_answers_and_about_zero_of_random_ones(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, (3000, 1))
    alike = np.array([np.bincount(unit, minlength=3) for unit in np.repeat(values, 3, axis=1)])
    assert krippendorff_alpha(alike) == 1
    random = np.array([np.bincount(u, minlength=3) for u in rng.integers(0, 3, (3000, 3))])
    assert krippendorff_alpha(random) == pytest.approx(0, abs=0.04)
    lone = np.eye(3, dtype=int)[values[:, 0]]
    assert krippendorff_alpha(np.concatenate([random, lone])) == krippendorff_alpha(random)


def test_alpha_is_not_defined_where_nothing_varies():
    assert np.isnan(krippendorff_alpha([[2, 0], [3, 0]]))
    assert np.isnan(krippendorff_alpha([[1, 0], [0, 1]]))


def by_definition(answers):
    """Alpha over ordered pairs of answers, both directions of each pair of samples."""
    units = {}
    for answer in answers:
        if answer.easier != "skip":
            units.setdefault(answer.pair, []).append(answer.easier_sample == answer.pair[0])
    units = [said for said in units.values() if len(said) > 1]
    units += [[not value for value in said] for said in units]
    observed = sum(
        (a != b) / (len(said) - 1) for said in units for a, b in itertools.permutations(said, 2)
    )
    values = [value for said in units for value in said]
    expected = sum(a != b for a, b in itertools.permutations(values, 2)) / (len(values) - 1)
    return 1 - observed / expected


def answers_of(seed, agreement=0.8):
    rng = np.random.default_rng(seed)
    given = []
    for a, b in itertools.combinations("stuvw", 2):
        for who in ("x", "y", "z"):
            if rng.random() < 0.8:
                right = rng.random() < agreement
                easier = "skip" if rng.random() < 0.1 else ("a" if right else "b")
                given.append(GivenAnswer(a, b, easier, who))
    return given


@pytest.mark.parametrize("seed", range(5))
def test_alpha_equals_its_definition_whatever_the_sides(seed):
    given = answers_of(seed)
    found = reliability(given)
    assert found.alpha == pytest.approx(by_definition(given), abs=1e-12)
    mirrored = [
        GivenAnswer(
            g.sample_b, g.sample_a, {"a": "b", "b": "a"}.get(g.easier, "skip"), g.annotator
        )
        for g in given
    ]
    assert reliability(mirrored) == found
    renamed = [
        GivenAnswer(chr(230 - ord(g.sample_a)), chr(230 - ord(g.sample_b)), g.easier, g.annotator)
        for g in given
    ]
    assert reliability(renamed).alpha == pytest.approx(found.alpha)


def test_alpha_at_its_ends():
    both = [GivenAnswer("s", "t", "a", who) for who in "xy"]
    assert reliability(both).alpha == 1
    assert reliability(both).n_pairs == 1
    assert reliability([both[0], GivenAnswer("s", "t", "b", "y")]).alpha < 0
    assert reliability([both[0], GivenAnswer("s", "t", "skip", "y")]).alpha is None
    assert reliability([]).n_pairs == 0


def test_work_of_each_annotator():
    given = [
        GivenAnswer("s", "t", "a", "x", 2.0),
        GivenAnswer("s", "u", "skip", "x", 4.0),
        GivenAnswer("s", "v", "b", "x", 9.0),
        GivenAnswer("s", "t", "a", "y"),
    ]
    x, y = work_of_annotators(given)
    assert (x.annotator, x.n_answers, x.n_skipped, x.seconds) == ("x", 3, 1, 4.0)
    assert (y.annotator, y.n_answers, y.n_skipped, y.seconds) == ("y", 1, 0, None)


def test_a_tally_equals_a_count_from_the_beginning():
    rng = np.random.default_rng(2)
    ids = [f"s/{k}" for k in range(6)]
    every = list(itertools.permutations([*ids, "elsewhere"], 2))
    answers, seen = [], set()
    for _ in range(150):
        a, b = every[rng.integers(len(every))]
        who = "xyz"[rng.integers(3)]
        if (who, frozenset((a, b))) not in seen:
            seen.add((who, frozenset((a, b))))
            answers.append(GivenAnswer(a, b, ("a", "b", "skip")[rng.integers(3)], who))
    tally = Tally(ids)
    for number, answer in enumerate(answers, start=1):
        tally.add(answer)
        here = [g for g in answers[:number] if "elsewhere" not in g.pair]
        assert tally.reliability() == reliability(here)
    rows = {name: k for k, name in enumerate(ids)}
    pairs = [tuple(sorted(rows[name] for name in g.pair)) for g in here]
    assert tally.times_answered == Counter(pairs)
    for who in "xyz":
        mine = {p: g for p, g in zip(pairs, here, strict=True) if g.annotator == who}
        assert tally.given[who] == mine
    expected = pairs_from_answers(answers, ids).pairs.pairs
    np.testing.assert_array_equal(tally.pairs().pairs, expected)
    assert tally.reliability().n_pairs > 5
