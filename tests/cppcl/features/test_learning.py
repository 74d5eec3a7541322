from dataclasses import dataclass

import numpy as np

from cppcl.features.learning import LearningExtractor, UniformSample


@dataclass(frozen=True, kw_only=True)
class Mean(LearningExtractor):
    size: int = 3

    @property
    def shapes(self):
        return {"mean": (self.size,)}

    def fit(self, pictures):
        return self.from_arrays({"mean": np.mean(list(pictures), axis=0)})


def test_what_was_learned_is_kept_apart_from_options():
    fitted = Mean().fit([[1, 2, 3], [3, 4, 5]])
    np.testing.assert_array_equal(fitted.to_arrays()["mean"], [2, 3, 4])
    assert fitted.to_arrays()["mean"].dtype == np.float32
    assert fitted.parameters() == {"size": 3}
    assert fitted == Mean()
    assert hash(fitted) == hash(Mean())
    assert "mean" not in repr(fitted)


def test_restored_arrays_are_copies():
    arrays = {"mean": np.zeros(3, dtype=np.float32)}
    extractor = Mean().from_arrays(arrays)
    arrays["mean"][:] = 7
    np.testing.assert_array_equal(extractor.learned("mean"), 0)


def test_a_sample_that_fits_is_everything_in_order():
    sample = UniformSample(10, np.random.default_rng(0))
    sample.add(np.arange(4), np.arange(8).reshape(4, 2))
    sample.add(np.arange(4, 10), np.arange(8, 20).reshape(6, 2))
    first, second = sample.rows()
    np.testing.assert_array_equal(first, np.arange(10))
    np.testing.assert_array_equal(second, np.arange(20).reshape(10, 2))


def test_an_empty_sample():
    assert UniformSample(10, np.random.default_rng(0)).rows() == ()


def test_a_sample_is_uniform_and_keeps_rows_together():
    rng = np.random.default_rng(0)
    counts = np.zeros(400)
    n_runs = 600
    for _ in range(n_runs):
        sample = UniformSample(40, rng)
        for first in range(0, 400, 25):
            numbers = np.arange(first, first + 25)
            sample.add(numbers, -numbers)
        kept, negative = sample.rows()
        assert len(kept) == 40
        assert (np.diff(kept) > 0).all()
        np.testing.assert_array_equal(negative, -kept)
        counts[kept] += 1
    # Each row is kept in a tenth of the runs: 60 times, with a deviation of 7.3.
    assert np.abs(counts - n_runs / 10).max() < 4.5 * np.sqrt(n_runs * 0.1 * 0.9)
    blocks = counts.reshape(16, 25).mean(axis=1)
    assert np.abs(blocks - n_runs / 10).max() < 5
