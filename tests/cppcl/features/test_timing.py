"""Times are medians of what a clock says, on pictures that are the same everywhere."""

import numpy as np
import pytest

from cppcl.features import EXTRACTORS, make_extractor, timing
from cppcl.features.timing import as_if_learned, example, milliseconds
from cppcl.pictures.strokes import stroke_mask


class Describes:
    """Notes what it is asked."""

    def __init__(self):
        self.asked = []

    def transform(self, pictures):
        self.asked.append([picture.shape for picture in pictures])


def test_median_of_repeats_after_one_that_does_not_count(monkeypatch):
    ticks = iter([0.0, 0.003, 1.0, 1.001, 2.0, 2.050])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(ticks))
    extractor = Describes()
    assert milliseconds(extractor, example("sketch"), repeats=3) == pytest.approx(3.0)
    assert extractor.asked == [[(256, 256, 3)]] * 4


def test_examples_are_a_line_drawing_and_a_picture_of_many_colours():
    sketch, photograph = example("sketch"), example("photograph")
    assert sketch.shape == photograph.shape == (256, 256, 3)
    assert sketch.dtype == photograph.dtype == np.uint8
    assert 0.02 < stroke_mask(sketch).mean() < 0.08
    assert len(np.unique(photograph.reshape(-1, 3), axis=0)) > 1000
    assert not photograph.flags.writeable


def test_what_learns_by_a_class_of_its_own_gets_arrays_too():
    class Learns:
        learns, shapes = True, {"mean": (2, 3)}

        def from_arrays(self, arrays):
            self.given = {name: array.shape for name, array in arrays.items()}
            return self

    assert as_if_learned(Learns()).given == Learns.shapes


@pytest.mark.parametrize("name", sorted(set(EXTRACTORS) - {"precomputed", "cnn"}))
def test_every_extractor_describes_the_examples(name, make):
    extractor = as_if_learned(make(name))
    rows = extractor.transform([example("sketch"), example("photograph")])
    assert rows.shape == (2, extractor.dimension)
    assert np.isfinite(rows).all()


def test_made_up_numbers_are_the_same_every_time():
    one, two = (as_if_learned(make_extractor("lks")).to_arrays() for _ in range(2))
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
    assert make_extractor("hog") == as_if_learned(make_extractor("hog"))
