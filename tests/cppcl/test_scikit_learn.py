"""What users of scikit-learn try: tags, pipelines, searches, attributes, wrong options."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import cppcl
from cppcl import CPRL, PairedMethod
from cppcl.baselines.canonical import RidgeCCA
from cppcl.errors import InputError, NotFittedError
from cppcl.learning.preparation import Preparation
from cppcl.methods import METHODS, make_method
from cppcl.optim.pacing.options import Pacing
from cppcl.retrieval.exact import nearest

methods = pytest.mark.parametrize("name", METHODS)
QUICK = {"n_atoms": 6, "n_rounds": 2, "alpha": 0.01}


@pytest.fixture(scope="module")
def views():
    """40 pairs of 5 classes: 12 features of a sketch, 9 of an image, and classes."""
    rng = np.random.default_rng(0)
    classes = np.arange(40) % 5
    content = 3 * rng.normal(size=(5, 6))[classes] + rng.normal(size=(40, 6))
    sketches, images = (content @ rng.normal(size=(6, m)) for m in (12, 9))
    return sketches, images, classes


@methods
def test_tags_say_that_labels_are_needed(name):
    tags = get_tags(make_method(name))
    assert tags.target_tags.required
    assert tags.estimator_type is None


@pytest.mark.parametrize("kind", [CPRL, RidgeCCA, Preparation, Pacing])
def test_an_unknown_option_is_a_value_error_with_the_nearest(kind):
    known = kind.option_names()[0]
    wrong = known + "s"
    for make in (lambda: kind(**{wrong: 1}), lambda: kind().set_params(**{wrong: 1})):
        with pytest.raises(ValueError, match=f"no option '{wrong}'; did you mean '{known}'"):
            make()


def test_transform_and_score_are_those_of_codes(views):
    sketches, images, classes = views
    model = RidgeCCA(n_directions=3).fit(sketches, images, classes, classes)
    codes, of_images = model.transform(sketches[:4], images)
    np.testing.assert_array_equal(codes, model.encode_sketches(sketches[:4]))
    np.testing.assert_array_equal(of_images, model.encode_images(images))
    np.testing.assert_array_equal(codes, model.transform(sketches[:4]))
    found, _ = nearest(codes, of_images, 40)
    right = classes[found] == classes[:4, None]
    precisions = np.cumsum(right, axis=1) / np.arange(1, 41)
    expected = (precisions * right).sum(axis=1) / right.sum(axis=1)
    score = model.score(sketches[:4], images, classes[:4], classes)
    assert score == pytest.approx(expected.mean(), abs=1e-12)


def test_what_was_learned_are_attributes(views):
    sketches, images, classes = views
    model = CPRL(**QUICK)
    for name in ("n_features_in_", "sketch_dictionary_", "sketch_pacing_", "anything_"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(model, name)
    with pytest.raises(SklearnNotFittedError):
        check_is_fitted(model)
    model.fit(sketches, images, classes, classes)
    check_is_fitted(model)
    assert model.n_features_in_ == (12, 9)
    assert model.sketch_dictionary_.shape[0] == model.n_atoms_ == 6
    assert model.image_pacing_.shape == (40,)
    with pytest.raises(AttributeError, match="'sketch_dictionery_'; did you mean 'sketch_dict"):
        model.sketch_dictionery_  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'dictionary'"):
        model.dictionary  # noqa: B018


@methods
def test_every_learned_array_is_an_attribute(name, views):
    sketches, images, classes = views
    short = QUICK if name in ("cprl", "jdl", "scdl", "cdl") else {}
    model = make_method(name, **short)
    if name in ("raw_cosine", "centred_cosine", "eigensketch"):
        images = images @ np.random.default_rng(1).normal(size=(9, 12))
    model.fit(sketches, images, classes, classes)
    assert model.n_features_in_ == (12, images.shape[1])
    for array, values in model._arrays.items():
        assert f"{array}_" in dir(model)
        shown = getattr(model, f"{array}_")
        assert np.size(shown) <= values.size  # a property may show a number as one


def test_pairs_are_searched_by_grid_search_in_a_pipeline(views):
    sketches, images, classes = views
    pairs = np.hstack([sketches, images])
    paired = PairedMethod(CPRL(**QUICK), n_sketch_features=12)
    grid = {"pairedmethod__method__n_atoms": [2, 6], "pairedmethod__method__pacing__eta": [2.0]}
    search = GridSearchCV(make_pipeline(StandardScaler(), paired), grid, cv=2)
    search.fit(pairs, classes)
    best = search.best_estimator_[-1]
    assert best.method_.n_atoms_ == search.best_params_["pairedmethod__method__n_atoms"]
    assert not best.method._preparations  # it is a copy that was fitted
    assert search.best_score_ > 0.5  # chance is 0.2
    assert search.transform(pairs).shape == (40, 2 * best.method_.n_atoms_)


def test_a_pair_is_an_instance_where_nothing_is_said(views):
    sketches, images, _ = views
    pairs = np.hstack([sketches, images[:, :9], np.zeros((40, 3))])
    paired = PairedMethod(RidgeCCA(n_directions=3)).fit(pairs[:30])
    alone = RidgeCCA(n_directions=3).fit(pairs[:30, :12], pairs[:30, 12:], range(30), range(30))
    codes = paired.transform(pairs[30:])
    np.testing.assert_array_equal(codes[:, :3], alone.encode_sketches(pairs[30:, :12]))
    np.testing.assert_array_equal(codes[:, 3:], alone.encode_images(pairs[30:, 12:]))
    expected = alone.score(pairs[30:, :12], pairs[30:, 12:], range(10), range(10))
    assert paired.score(pairs[30:]) == expected
    scores = cross_val_score(paired, pairs, cv=2)
    assert (scores > 0.3).all()  # chance: 0.18


@pytest.mark.parametrize(
    ("options", "columns", "message"),
    [
        ({}, 7, "7 columns, which are not two parts"),
        ({"n_sketch_features": 8}, 8, "n_sketch_features=8 leaves no column"),
        ({"n_sketch_features": 0}, 8, "n_sketch_features=0"),
    ],
)
def test_columns_that_cannot_be_divided_are_refused(options, columns, message):
    with pytest.raises(InputError, match=message):
        PairedMethod(CPRL(), **options).fit(np.ones((4, columns)), [0, 1, 0, 1])


def test_pairs_before_fitting_and_of_another_width_are_refused(views):
    sketches, images, _ = views
    pairs = np.hstack([sketches, images])
    paired = PairedMethod(RidgeCCA(), n_sketch_features=12)
    with pytest.raises(NotFittedError, match="call fit"):
        paired.transform(pairs)
    with pytest.raises(InputError, match="20 columns; in training it had 21"):
        paired.fit(pairs).transform(pairs[:, 1:])


def test_a_search_over_a_method_alone_says_what_to_do(views):
    sketches, _, classes = views
    search = GridSearchCV(CPRL(**QUICK), {"alpha": [0.01, 0.1]}, cv=2)
    with pytest.raises(ValueError, match=r"takes cppcl\.PairedMethod\(method\)"):
        search.fit(sketches, classes)


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert cppcl.__version__ == version("cppcl")
