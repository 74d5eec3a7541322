"""The map of a gallery."""

import numpy as np

from cppcl.report.pacing import entry_rounds
from tasks.collection_map import NOT_PACED, RIGHT, WRONG, collection_map_of
from tasks.samples import open_pictures, open_split
from tasks.stages.encode import encode_features

OPTIONS = {"n_atoms": 4, "alpha": 0.01, "n_rounds": 3, "initialization": {"n_initial_rounds": 1}}


def test_sketches_stand_by_their_nearest_picture_and_wrong_ones_are_told(stages):
    place, codes = stages.workspace, stages.encode(stages.train("centred_cosine", {}, None))
    found = collection_map_of(place, codes)
    stored = place.store.open(codes)
    sketches, images = (stored.array(f"{m}_codes").astype(np.float64) for m in ("sketch", "image"))
    unit = [c / np.linalg.norm(c, axis=1, keepdims=True) for c in (sketches, images)]
    nearest = (unit[0] @ unit[1].T).argmax(axis=1)
    np.testing.assert_array_equal(found.nearest, nearest[found.sketches])
    table = open_pictures(place.store, stages.table).table
    groups = {m: np.array(table.column("groups", m)) for m in ("sketch", "image")}
    right = groups["image"][nearest] == groups["sketch"]
    np.testing.assert_array_equal(found.right, np.where(right, RIGHT, WRONG)[found.sketches])
    held_out = open_split(place.store, stages.split).test_sketches
    np.testing.assert_array_equal(found.sketches[found.held_out], np.sort(held_out))
    assert (found.image_rounds == NOT_PACED).all()
    # It is stored with the gallery: nothing is laid out again.
    again = collection_map_of(place, codes)
    for name, values in vars(found).items():
        np.testing.assert_array_equal(getattr(again, name), values)


def test_rounds_are_those_of_the_training(stages):
    place, trained = stages.workspace, stages.train("cprl", OPTIONS, stages.curricula())
    found = collection_map_of(place, stages.encode(trained))
    model, split = place.store.open(trained), open_split(place.store, stages.split)
    expected = np.full(12, NOT_PACED)
    expected[split.train_images] = entry_rounds(model.array("model.image_pacing_rounds"))
    np.testing.assert_array_equal(found.image_rounds, expected)
    assert set(found.sketch_rounds[found.held_out]) == {NOT_PACED}


def test_a_gallery_without_sketches_is_searched_by_those_of_the_training(stages):
    place, trained = stages.workspace, stages.train("centred_cosine", {}, None)
    home = collection_map_of(place, stages.encode(trained))
    gallery = encode_features(
        workspace=place,
        model=trained,
        sketch_features=None,
        image_features=stages.features["image"],
    ).reference
    np.testing.assert_array_equal(collection_map_of(place, gallery).nearest, home.nearest)
