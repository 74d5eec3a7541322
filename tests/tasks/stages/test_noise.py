"""A split with noise: training sees what is said, evaluation the truth."""

import numpy as np
import pytest

from storage import Recipe
from tasks.samples import open_pictures, open_split, targets, training_samples
from tasks.stages.evaluate import open_test_set
from tasks.stages.split import split_table
from tasks.stages.train import train_method


@pytest.fixture
def noisy(stages):
    stages.clean = stages.split
    stages.split = split_table(
        workspace=stages.workspace,
        table=stages.table,
        rule="instance",
        options={"n_train": 7},
        seed=0,
        noise={"wrong_pairs": 0.4, "wrong_labels": 0.0},
    ).reference
    return stages


def samples(stages, split=None, **options):
    return training_samples(
        stages.workspace.store,
        table=stages.table,
        split=split or stages.split,
        features=stages.features,
        target="groups",
        **options,
    )


def test_training_sees_what_is_said(noisy):
    store = noisy.workspace.store
    table = open_pictures(store, noisy.table).table
    true, said = samples(noisy, noisy.clean), samples(noisy)
    for before, after in zip(true, said, strict=True):
        np.testing.assert_array_equal(before.rows, after.rows)
        assert before.right.all()
    np.testing.assert_array_equal(true[0].labels, said[0].labels)
    assert said[0].right.all()
    assert (true[1].labels != said[1].labels).sum() == 3
    np.testing.assert_array_equal(said[1].right, true[1].labels == said[1].labels)
    np.testing.assert_array_equal(said[1].labels, said[1].groups)
    assert sorted(true[1].labels) == sorted(said[1].labels)
    rows = open_split(store, noisy.split)
    for part in ("train_sketches", "test_images"):
        np.testing.assert_array_equal(
            getattr(rows, part), getattr(open_split(store, noisy.clean), part)
        )
    test = open_test_set(
        store,
        noisy.encode(noisy.train("centred_cosine", {}, None)),
        noisy.split,
        noisy.table,
        "groups",
    )
    np.testing.assert_array_equal(
        test.gallery_labels, targets(table, "image", "groups", rows.test_images)
    )


def test_the_bound_leaves_wrong_ones_out(noisy):
    sketches, images = samples(noisy, only_right=True)
    assert len(sketches.rows) == len(images.rows) == 4
    np.testing.assert_array_equal(sorted(sketches.labels), sorted(images.labels))
    table = open_pictures(noisy.workspace.store, noisy.table).table
    np.testing.assert_array_equal(images.labels, targets(table, "image", "groups", images.rows))
    assert sketches.kept.sum() == 4
    recipe = noisy.training("ridge_cca", {"n_directions": 2})
    bound = Recipe(
        "train", recipe.version, {**recipe.parameters, "only_right": True}, dict(recipe.inputs)
    )
    assert bound.reference != recipe.reference
    found = train_method(workspace=noisy.workspace, recipe=bound).reference
    store = noisy.workspace.store
    assert store.open(found).names
    assert not np.allclose(
        store.open(found).array("model.sketch_projection"),
        store.open(train_method(workspace=noisy.workspace, recipe=recipe).reference).array(
            "model.sketch_projection"
        )[:, :2],
    )


def test_splits_without_noise_keep_their_keys(stages):
    clean = split_table(
        workspace=stages.workspace,
        table=stages.table,
        rule="instance",
        options={"n_train": 7},
        seed=0,
        noise={"wrong_pairs": 0.0, "wrong_labels": 0.0},
    )
    assert clean.cached
    assert clean.reference == stages.split
