"""Options that the training data settle, where they are 'auto'."""

import numpy as np
import pytest

from cppcl import CPRL
from cppcl.errors import InputError
from cppcl.learning.preparation import Preparation


def classes(n_classes, n_sketches, n_images, seed=0):
    """Samples of classes whose centres the modalities share up to a rotation, and their labels."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, 60))
    rotation, _ = np.linalg.qr(rng.normal(size=(60, 60)))
    labels = [np.repeat(np.arange(n_classes), n) for n in (n_sketches, n_images)]
    sketches, images = (
        centres[of_side] + rng.normal(size=(len(of_side), 60)) for of_side in labels
    )
    return (sketches, images @ rotation), labels


@pytest.mark.parametrize(
    ("n_classes", "n_sketches", "n_images", "n_atoms", "soft_links"),
    [
        (5, 4, 3, 5, 3.0),
        (5, 1, 2, 5, 3.0),
        (100, 1, 1, 20, 0.0),  # a third of 60 features
        (38, 1, 1, 19, 0.0),
        # Several sketches of each picture: what is searched for later is another picture.
        (38, 2, 1, 19, 0.0),
        (20, 1, 1, 16, 0.0),
        (3, 1, 1, 3, 0.0),
        (1, 3, 3, 2, 3.0),
        (210, 1, 2, 200, 3.0),
    ],
)
def test_labels_settle_atoms_and_soft_links(n_classes, n_sketches, n_images, n_atoms, soft_links):
    features, labels = classes(n_classes, n_sketches, n_images)
    labels[0][-1], labels[1][0] = 900, 901  # of one modality alone
    features = [np.vstack([F, F[-1:]]) for F in features]
    labels = [np.append(labels[0], n_classes - 1), np.append(labels[1], 0)]
    model = CPRL(n_rounds=1).fit(*features, *labels)
    assert (model.n_atoms_, model.soft_links_) == (n_atoms, soft_links)
    arrays = model.to_arrays()
    again = CPRL(n_rounds=1).from_arrays(arrays)
    assert (again.n_atoms_, again.soft_links_) == (n_atoms, soft_links)
    np.testing.assert_array_equal(
        again.encode_sketches(features[0]), model.encode_sketches(features[0])
    )
    assert model.options() == CPRL(n_rounds=1).options()


def test_numbers_are_taken_as_they_are():
    features, labels = classes(5, 4, 3)
    model = CPRL(n_atoms=7, n_rounds=1, coding={"soft_links": 0.0}).fit(*features, *labels)
    assert (model.n_atoms_, model.soft_links_) == (7, 0.0)
    with pytest.raises(InputError, match="hold 7 atoms but the model was made with n_atoms=6"):
        CPRL(n_atoms=6).from_arrays(model.to_arrays())


def test_links_settle_atoms_and_only_labels_soft_links():
    features, labels = classes(5, 4, 3)
    links = np.equal.outer(*labels) * 1.0
    alone = CPRL(n_rounds=1).fit(*features, links=links)
    assert (alone.n_atoms_, alone.soft_links_) == (5, 0.0)
    labelled = CPRL(n_rounds=1).fit(*features, *labels, links=links)
    assert (labelled.n_atoms_, labelled.soft_links_) == (5, 3.0)
    pairs = CPRL(n_rounds=1).fit(*classes(38, 1, 1)[0], links=np.eye(38))
    assert (pairs.n_atoms_, pairs.soft_links_) == (19, 0.0)


def test_a_start_has_as_many_atoms_as_are_settled():
    features, labels = classes(5, 4, 3)
    start = CPRL(n_atoms=5, n_rounds=1).fit(*features, *labels)
    CPRL(n_rounds=1).fit(*features, *labels, start=start)
    start = CPRL(n_atoms=6, n_rounds=1).fit(*features, *labels)
    with pytest.raises(InputError, match="start has n_atoms=6, but this model n_atoms=5"):
        CPRL(n_rounds=1).fit(*features, *labels, start=start)


def test_a_training_with_settled_options_is_resumed():
    features, labels = classes(5, 4, 3)
    states = []
    whole = CPRL(n_rounds=3).fit(
        *features, *labels, callback=lambda done: states.append(done.to_arrays())
    )
    resumed = CPRL(n_rounds=3).fit(*features, *labels, resume_from=states[0])
    for name, array in whole.to_arrays().items():
        np.testing.assert_array_equal(resumed.to_arrays()[name], array)


def test_memory_is_that_of_the_most_atoms():
    assert CPRL().memory(50, 60, (8, 8)) == CPRL(n_atoms=50).memory(50, 60, (8, 8))
    assert CPRL().memory(500, 600, (8, 8)) == CPRL(n_atoms=200).memory(500, 600, (8, 8))


@pytest.mark.parametrize(("lowest", "power"), [(0.0, 0.5), (-0.1, 1.0)])
def test_features_without_negative_entries_settle_the_power(lowest, power):
    features = np.abs(np.random.default_rng(0).normal(size=(9, 4)))
    features[0, 0] = lowest
    found = Preparation(power="auto").fit(features)
    known = Preparation(power=power).fit(features)
    assert (found.power_, known.power_) == (power, power)
    again = Preparation(power="auto").from_arrays(found.to_arrays())
    for preparation in (found, again):
        np.testing.assert_array_equal(preparation.transform(-features), known.transform(-features))


@pytest.mark.parametrize(("n_images", "ridge"), [(1, 0.1), (2, 0.03)])
def test_labels_settle_the_ridge(n_images, ridge):
    features, labels = classes(20, 2, n_images)
    found = CPRL(n_rounds=1).fit(*features, *labels)
    known = CPRL(n_rounds=1, preparation={"ridge": ridge}).fit(*features, *labels)
    np.testing.assert_array_equal(found.sketch_dictionary_, known.sketch_dictionary_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_atoms": "many"}, "n_atoms='many' must be a whole number of at least 1, or 'auto'"),
        ({"coding": {"soft_links": -1}}, "soft_links=-1 must be a number .*, or 'auto'"),
        ({"preparation": {"power": 0}}, "power=0 must be a number above 0, or 'auto'"),
        ({"initialization": {"atom_start": "x"}}, "atom_start='x' is not one of .*'auto'"),
        ({"initialization": {"n_initial_rounds": -1}}, "n_initial_rounds=-1 .*, or 'auto'"),
    ],
)
def test_other_words_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        CPRL(**options)
