import numpy as np
import pytest
from scipy import stats

from cppcl.errors import InputError
from cppcl.retrieval import comparison
from cppcl.retrieval.comparison import (
    Difference,
    Interval,
    interval_over_splits,
    mean_interval,
    paired_difference,
)


def splits_of(seed, n_identities=25, n_splits=4, share=0.6):
    """Query numbers of random splits, and two methods' scores of them; some are not known."""
    random = np.random.default_rng(seed)
    of_identity = random.standard_normal(n_identities)
    queries, first, second = [], [], []
    for _ in range(n_splits):
        rows = random.permutation(np.flatnonzero(random.random(n_identities) < share))
        rows = rows if len(rows) else np.array([0])
        a = of_identity[rows] + random.standard_normal(len(rows))
        b = random.standard_normal(len(rows))
        a[1:][random.random(len(rows) - 1) < 0.1] = np.nan
        queries.append(1000 - 3 * rows)
        first.append(a)
        second.append(b)
    return first, second, queries


def by_loops(values, queries, n_draws, seed):
    """One draw after the other, one query after the other."""
    known = {
        int(q)
        for s, r in zip(values, queries, strict=True)
        for v, q in zip(s, r, strict=True)
        if np.isfinite(v)
    }
    identities = sorted(known)
    generator = np.random.default_rng(seed)
    means = []
    for _ in range(n_draws):
        drawn = [identities[i] for i in generator.integers(len(identities), size=len(identities))]
        of_splits = []
        for split, rows in zip(values, queries, strict=True):
            score_of = {int(q): v for q, v in zip(rows, split, strict=True) if np.isfinite(v)}
            found = [score_of[q] for q in drawn if q in score_of]
            if found:
                of_splits.append(sum(found) / len(found))
        means.append(sum(of_splits) / len(of_splits))
    return np.quantile(means, [0.025, 0.975])


# 3 identities in 4 small splits: in some draws none of a split's queries is there.
@pytest.mark.parametrize(("n_identities", "share"), [(25, 0.6), (3, 0.3), (40, 1.0)])
def test_agrees_with_loops_over_draws_and_queries(n_identities, share):
    first, second, queries = splits_of(0, n_identities, share=share)
    differences = [a - b for a, b in zip(first, second, strict=True)]
    expected = by_loops(differences, queries, 300, 7)
    found = paired_difference(first, second, queries, n_draws=300, seed=7)
    assert [found.low, found.high] == pytest.approx(list(expected), abs=1e-12)
    assert found.mean == pytest.approx(np.mean([np.nanmean(d) for d in differences]), abs=1e-12)
    expected = by_loops(first, queries, 300, 7)
    single = mean_interval(first, queries, n_draws=300, seed=7)
    assert [single.low, single.high] == pytest.approx(list(expected), abs=1e-12)
    assert single.mean == pytest.approx(np.mean([np.nanmean(s) for s in first]), abs=1e-12)


def test_one_split_is_the_ordinary_bootstrap_of_the_mean():
    values = np.random.default_rng(1).exponential(size=200)
    found = mean_interval([values], [np.arange(200)], n_draws=20_000)
    generator = np.random.default_rng(2)
    means = values[generator.integers(200, size=(20_000, 200))].mean(axis=1)
    # Of 20,000 draws a 2.5 % quantile is known to about 0.02 standard errors.
    error = values.std() / np.sqrt(200)
    assert [found.low, found.high] == pytest.approx(
        list(np.quantile(means, [0.025, 0.975])), abs=0.08 * error
    )
    assert found.mean == pytest.approx(values.mean())
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.05)


def test_the_same_queries_in_every_split_are_no_more_of_them():
    """As many splits as one likes of the same scores tell nothing new."""
    values, rows = np.random.default_rng(3).standard_normal(50), np.arange(50)
    one = mean_interval([values], [rows])
    many = mean_interval([values] * 9, [rows] * 9)
    assert [many.mean, many.low, many.high] == pytest.approx([one.mean, one.low, one.high])


def apart(values, n_draws, generator):
    """Interval from queries that are drawn in each split for itself."""
    means = [
        split[generator.integers(len(split), size=(n_draws, len(split)))].mean(axis=1)
        for split in values
    ]
    low, high = np.quantile(np.mean(means, axis=0), [0.025, 0.975])
    return Interval(0.0, low, high)


def test_coverage_of_a_known_mean():
    """Sketches differ, and are asked in several splits: 95 intervals of 100 hold the mean."""
    random = np.random.default_rng(11)
    n_trials, mean = 400, 0.3
    held = held_apart = 0
    for trial in range(n_trials):
        of_identity = mean + random.standard_normal(200)
        queries = [random.choice(200, 100, replace=False) for _ in range(6)]
        values = [of_identity[q] + 0.5 * random.standard_normal(100) for q in queries]
        held += mean_interval(values, queries, n_draws=400, seed=trial).holds(mean)
        held_apart += apart(values, 400, random).holds(mean)
    # 95 % and three standard errors of it in so many trials.
    assert 0.917 <= held / n_trials <= 0.983
    assert held_apart / n_trials < 0.80


def test_splits_are_counted_and_verdicts_follow_the_interval():
    rows = [np.arange(4)] * 3
    first = [np.array([1.0, 1, 1, 1]), np.array([1.0, 0, 1, 0]), np.array([0.0, 0, 0, 1])]
    second = [np.array([0.0, 1, 1, 1]), np.array([0.0, 1, 0, 1]), np.array([0.0, 1, 0, 1])]
    found = paired_difference(first, second, rows)
    assert (found.ahead, found.level, found.behind) == (1, 1, 1)
    assert Difference(0.2, 0.1, 0.3, 3, 0, 0).verdict == "ahead"
    assert Difference(-0.2, -0.3, -0.1, 0, 0, 3).verdict == "behind"
    assert Difference(0.2, -0.1, 0.3, 3, 0, 0).verdict == "level"
    assert Difference(0.2, 0.0, 0.3, 3, 0, 0).verdict == "level"
    assert [Interval(0.5, 0.4, 0.6).holds(v) for v in (0.4, 0.6, 0.39, 0.61)] == [1, 1, 0, 0]


def test_draws_are_seeded_and_blocks_do_not_show(monkeypatch):
    first, _, queries = splits_of(5)
    found = mean_interval(first, queries, n_draws=500, seed=3)
    assert mean_interval(first, queries, n_draws=500, seed=3) == found
    assert mean_interval(first, queries, n_draws=500, seed=4) != found
    monkeypatch.setattr(comparison, "_WEIGHTS_AT_ONCE", 7 * 25)
    in_blocks = mean_interval(first, queries, n_draws=500, seed=3)
    assert [in_blocks.low, in_blocks.high] == pytest.approx([found.low, found.high], abs=0.05)
    assert in_blocks.mean == found.mean


def test_wrong_input_is_named():
    rows = [np.arange(3), np.arange(2)]
    values = [np.zeros(3), np.zeros(2)]
    with pytest.raises(InputError, match="values hold no split"):
        mean_interval([], [])
    with pytest.raises(InputError, match=r"\[3, 2\] scores a split and queries \[3, 3\] numbers"):
        mean_interval(values, [np.arange(3), np.arange(3)])
    with pytest.raises(InputError, match="split 1 has no query with a score"):
        mean_interval([np.zeros(3), np.full(2, np.nan)], rows)
    with pytest.raises(InputError, match=r"first .* \[3, 2\] queries a split, second of \[2, 3\]"):
        paired_difference(values, values[::-1], rows)


def test_the_interval_over_splits_is_students():
    values = [0.1, 0.3, 0.2, 0.25]
    found = interval_over_splits(values)
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert [found.mean, found.low, found.high] == pytest.approx([0.2125, low, high], abs=1e-12)
    for wrong in ([0.1], [], [0.1, np.nan], 0.1):
        with pytest.raises(InputError, match="values"):
            interval_over_splits(wrong)
