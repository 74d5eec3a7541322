"""Which pictures validate a training."""

import numpy as np

from cppcl.features import make_extractor
from cppcl.features.base import SilentClass
from cppcl.features.training.passes import divided


def test_pseudo_sketches_are_not_asked_with():
    pictures = np.random.default_rng(0).integers(0, 255, (160, 24, 24, 3)).astype(np.uint8)
    classes = np.tile(np.arange(80), 2).tolist()
    silent = [SilentClass(number) for number in classes[80:]]
    sketches = list(zip(pictures, classes[:80] + silent, strict=True))
    extractor = make_extractor("adapter", {"features": "pixels"})
    views = {
        "sketch": extractor._views("sketch", sketches),
        "image": extractor._views("image", list(zip(pictures, classes, strict=True))),
    }
    training, held = divided(views, 0.1, 0)
    assert held is not None
    asked = held["sketch"].targets
    assert len(asked) == 8  # the real sketch of each class that is held out
    kept = views["sketch"].maps[:80][asked]
    np.testing.assert_array_equal(np.sort(held["sketch"].maps, 0), np.sort(kept, 0))
    assert len(held["image"].targets) == 16
    assert not np.isin(training["sketch"].targets, asked).any()
    assert len(training["sketch"].targets) == 144
    real = extractor._views("sketch", list(zip(pictures, classes, strict=True)))
    assert extractor._fingerprint(views) != extractor._fingerprint(views | {"sketch": real})
