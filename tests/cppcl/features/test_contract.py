"""What every registered extractor must do."""

import inspect
import json
import pickle
from functools import partial

import numpy as np
import pytest

from cppcl.errors import InputError, NotFittedError
from cppcl.features import EXTRACTORS, Hog, make_extractor

COMBINED = ["hog+lks"]
on_registered = pytest.mark.parametrize("name", sorted(EXTRACTORS))
on_all = pytest.mark.parametrize("name", sorted(EXTRACTORS) + COMBINED)
on_pictures = pytest.mark.parametrize("name", sorted(set(EXTRACTORS) - {"precomputed"}) + COMBINED)
on_learning = pytest.mark.parametrize(
    "name", sorted(name for name, extractor in EXTRACTORS.items() if extractor.learns) + COMBINED
)


@pytest.fixture(scope="module")
def fitted_once():
    """Extractors that learned, by name: learning is slow, and describing changes nothing."""
    return {}


@pytest.fixture
def fitted(name, make, drawings, inputs_of, fitted_once, taught):
    if not make(name).learns:
        return make(name).fit(inputs_of(name, drawings))
    if name not in fitted_once:
        fitted_once[name] = taught(make(name), inputs_of(name, drawings))
    return fitted_once[name]


@on_registered
def test_registered_under_its_name(name):
    extractor = EXTRACTORS[name]
    assert extractor.name == name
    assert extractor.version >= 1
    assert extractor.device in ("cpu", "gpu")
    assert isinstance(extractor.learns, bool)
    assert extractor.__doc__


@on_registered
def test_options_are_keyword_only_with_defaults(name):
    for option in inspect.signature(EXTRACTORS[name]).parameters.values():
        assert option.kind is option.KEYWORD_ONLY
        assert option.default is not option.empty


@on_registered
def test_parameters_are_the_options_as_json(name, make):
    parameters = make(name).parameters()
    assert set(parameters) == set(inspect.signature(EXTRACTORS[name]).parameters)
    assert json.loads(json.dumps(parameters)) == parameters
    if name != "adapter" and parameters.get("weights") is None:  # weights are named by content
        assert make_extractor(name, parameters) == make(name)


@on_all
def test_shape_type_and_dependence_on_the_picture(name, fitted, drawings, inputs_of):
    rows = fitted.transform(inputs_of(name, drawings))
    assert rows.shape == (len(drawings), fitted.dimension)
    assert rows.dtype == np.float32
    assert np.isfinite(rows).all()
    assert len(np.unique(rows, axis=0)) == len(drawings)


@on_learning
def test_learning_comes_first_and_is_reproducible(name, make, fitted, drawings, inputs_of, taught):
    with pytest.raises(NotFittedError, match="fit"):
        make(name).transform(inputs_of(name, drawings))
    with pytest.raises(NotFittedError, match="fit"):
        make(name).to_arrays()
    arrays = fitted.to_arrays()
    assert arrays
    again = taught(make(name), inputs_of(name, drawings)).to_arrays()
    assert {key: array.tobytes() for key, array in again.items()} == {
        key: array.tobytes() for key, array in arrays.items()
    }


@on_learning
def test_training_pictures_without_content_are_refused(name, make, taught):
    blank = np.full((40, 50, 3), 255, dtype=np.uint8)
    for pictures in ([], [blank] * 3):
        with pytest.raises(InputError, match=f"{len(pictures)} training pictures"):
            taught(make(name), pictures)


@on_learning
def test_it_is_told_apart_how_extractors_learn(name, make, drawings):
    """By pictures of one modality, or by those of both with their classes."""
    extractor = make(name)
    wrong = partial(extractor.fit, drawings)
    if not extractor.cross_modal:
        wrong = partial(Hog().fit_both, [], [])
    with pytest.raises(InputError, match="at once; call fit"):
        wrong()
    assert (extractor.branch("image") is extractor) is not extractor.cross_modal


@on_all
def test_no_pictures_give_no_rows(name, fitted):
    rows = fitted.transform([])
    assert rows.shape == (0, fitted.dimension)
    assert rows.dtype == np.float32


@on_all
def test_same_pictures_give_same_bytes(name, make, fitted, drawings, inputs_of):
    inputs = inputs_of(name, drawings[:3])
    rows = fitted.transform(inputs)
    assert rows.tobytes() == fitted.transform(inputs).tobytes()
    again = make(name).from_arrays(fitted.to_arrays())
    assert rows.tobytes() == again.transform(inputs).tobytes()


@on_all
def test_rows_do_not_depend_on_batching(name, fitted, drawings, inputs_of):
    inputs = inputs_of(name, drawings)
    rows = fitted.transform(inputs)
    for size in (1, 3):
        batches = [fitted.transform(inputs[k : k + size]) for k in range(0, len(inputs), size)]
        np.testing.assert_allclose(np.concatenate(batches), rows, atol=1e-5, rtol=0)
    order = np.random.default_rng(0).permutation(len(inputs))
    shuffled = fitted.transform([inputs[k] for k in order])
    np.testing.assert_allclose(shuffled, rows[order], atol=1e-5, rtol=0)


@on_all
def test_survives_pickling(name, fitted, drawings, inputs_of):
    inputs = inputs_of(name, drawings[:2])
    rows = fitted.transform(inputs)
    content = pickle.dumps(fitted)
    if not fitted.learns:
        assert len(content) < 1000, "what was loaded travels along"
    np.testing.assert_array_equal(pickle.loads(content).transform(inputs), rows)


@on_all
def test_odd_pictures_give_finite_numbers(name, fitted, odd_pictures, inputs_of):
    rows = fitted.transform(inputs_of(name, list(odd_pictures.values())))
    finite = np.isfinite(rows).all(axis=1)
    assert dict.fromkeys(odd_pictures, True) == dict(zip(odd_pictures, finite, strict=True))


@on_pictures
def test_views_and_read_only_pictures(name, fitted, drawings):
    view = drawings[0][::-2, ::-1]
    assert not view.flags.c_contiguous
    rows = fitted.transform([view])
    copy = np.ascontiguousarray(view)
    copy.flags.writeable = False
    np.testing.assert_array_equal(fitted.transform([copy]), rows)
    fortran = np.asfortranarray(view)
    np.testing.assert_array_equal(fitted.transform([fortran]), rows)


@on_all
def test_does_not_write_into_its_input(name, fitted, drawings, inputs_of):
    inputs = [np.array(row) for row in inputs_of(name, drawings[:2])]
    before = [row.copy() for row in inputs]
    rows = fitted.transform(inputs)
    for row, was in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(row, was)
        assert not np.shares_memory(rows, row)


@on_pictures
@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((5, 5), dtype=np.uint8),
        np.zeros((5, 5, 4), dtype=np.uint8),
        np.zeros((5, 5, 3), dtype=np.float32),
        np.zeros((0, 5, 3), dtype=np.uint8),
        "picture.png",
    ],
    ids=["grey", "alpha", "float", "empty", "path"],
)
def test_what_is_no_picture_is_named(name, fitted, drawings, wrong):
    with pytest.raises(InputError, match=r"picture 1 is .*uint8 RGB"):
        fitted.transform([drawings[0], wrong])


@on_all
def test_arrays_of_another_extractor_are_refused(name, fitted):
    with pytest.raises(InputError, match="another extractor"):
        fitted.from_arrays({"keyshapes_of_another": np.zeros(3)})


@on_all
def test_says_what_memory_it_needs_and_takes(name, make):
    extractor = make(name)
    small, large = (extractor.memory(side) for side in (32, 256))
    assert 0 < small.model == large.model
    assert 0 < small.working < large.working
    assert extractor.takes_pictures is (name != "precomputed")
