"""What every registered method must do."""

import json
from inspect import Parameter, signature

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from cppcl.errors import InputError, NotFittedError
from cppcl.methods import METHODS, make_method, method_class
from cppcl.retrieval.metrics import evaluate

FEW_ATOMS = {"n_atoms": 24, "n_rounds": 8, "alpha": 0.01}
HEADS = {"width": 64, "dimension": 16, "epochs": 20, "batch_size": 16}
QUICK = dict.fromkeys(("cprl", "jdl", "scdl", "cdl"), FEW_ATOMS) | {
    "dsh": {"function_weight": 10.0},  # instances, of which training has one sample each
    "infonce_heads": HEADS,
    "paced_heads": HEADS | {"n_alternations": 1, "alternation_epochs": 5, "cprl": FEW_ATOMS},
}
DIRECT = ("raw_cosine", "centred_cosine")
SUPERVISED = tuple(name for name in METHODS if name not in DIRECT)
methods = pytest.mark.parametrize("name", METHODS)


def two_views(n, dtype=np.float64, m_image=20, seed=0):
    """Pairs with a common content, seen through unrelated linear maps with some noise."""
    rng = np.random.default_rng(seed)
    maps = [rng.normal(size=(6, m)) for m in (20, m_image)]
    content = np.random.default_rng(seed + 1).normal(size=(n, 6))
    return [
        (content @ view + 0.1 * rng.normal(size=(n, view.shape[1])) + k).astype(dtype)
        for k, view in enumerate(maps)
    ]


def make(name, **options):
    return make_method(name, **QUICK.get(name, {}) | options)


def fitted(name, dtype=np.float64):
    sketches, images = two_views(60, dtype)
    return make(name).fit(sketches, images, np.arange(60), np.arange(60)), sketches, images


@methods
def test_options_are_keywords_with_defaults_that_json_holds(name):
    for parameter in signature(METHODS[name]).parameters.values():
        assert parameter.kind is Parameter.KEYWORD_ONLY
    options = json.loads(json.dumps(METHODS[name]().options()))
    assert METHODS[name](**options).options() == METHODS[name]().options()
    assert isinstance(METHODS[name].version, int)


@methods
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_have_one_length_and_are_floating(name, dtype):
    method, sketches, images = fitted(name, dtype)
    a, b = method.encode_sketches(sketches[:7]), method.encode_images(images[:5])
    assert a.shape[0] == 7
    assert b.shape == (5, a.shape[1])
    assert a.dtype in (np.float32, dtype)
    assert b.dtype == a.dtype
    assert np.isfinite(a).all()
    assert np.isfinite(b).all()


@methods
def test_a_code_depends_on_its_own_sample_alone(name):
    method, sketches, images = fitted(name)
    np.testing.assert_allclose(
        method.encode_sketches(sketches)[3:4], method.encode_sketches(sketches[3:4]), atol=1e-4
    )
    np.testing.assert_allclose(
        method.encode_images(images)[3:4], method.encode_images(images[3:4]), atol=1e-4
    )


@methods
def test_fitting_twice_gives_the_same_bytes(name):
    first, second = (fitted(name)[0].to_arrays() for _ in range(2))
    assert first.keys() == second.keys()
    for key in first:
        np.testing.assert_array_equal(first[key], second[key])


@methods
def test_fitting_leaves_its_input_alone(name):
    sketches, images = two_views(60)
    before = sketches.copy(), images.copy()
    method = make(name).fit(sketches, images, np.arange(60), np.arange(60))
    codes = method.encode_sketches(sketches)
    codes += 1
    np.testing.assert_array_equal(sketches, before[0])
    np.testing.assert_array_equal(images, before[1])


@methods
def test_arrays_restore_the_same_codes(name):
    method, sketches, images = fitted(name)
    arrays = method.to_arrays()
    assert all(isinstance(a, np.ndarray) and a.dtype != object for a in arrays.values())
    restored = make(name).from_arrays(arrays)
    np.testing.assert_array_equal(
        restored.encode_sketches(sketches), method.encode_sketches(sketches)
    )
    np.testing.assert_array_equal(restored.encode_images(images), method.encode_images(images))
    assert restored.history_.keys() == method.history_.keys()
    for key, values in method.history_.items():
        np.testing.assert_array_equal(restored.history_[key], values)


@methods
def test_history_is_arrays_of_one_length(name):
    lengths = {len(values) for values in fitted(name)[0].history_.values()}
    assert len(lengths) <= 1


@methods
def test_encoding_before_fitting_is_refused(name):
    with pytest.raises(InputError, match="fit"):
        make(name).encode_sketches(np.eye(3))
    with pytest.raises(InputError, match="fit"):
        make(name).to_arrays()


@methods
@pytest.mark.parametrize("side", ["sketch", "image"])
def test_features_that_are_not_finite_are_named(name, side):
    features = dict(zip(("sketch", "image"), two_views(60), strict=True))
    features[side][4, 2] = np.nan
    with pytest.raises(InputError, match=f"{side}.features.*row 4"):
        make(name).fit(features["sketch"], features["image"], np.arange(60), np.arange(60))


@methods
def test_other_widths_than_in_training_are_named(name):
    method, sketches, images = fitted(name)
    with pytest.raises(InputError, match=r"sketch.features.*19.*20"):
        method.encode_sketches(sketches[:, 1:])
    with pytest.raises(InputError, match=r"image.features.*19.*20"):
        method.encode_images(images[:, 1:])


@methods
def test_lengths_that_differ_are_named(name):
    sketches, images = two_views(60)
    with pytest.raises(InputError, match="sketch_labels has 59"):
        make(name).fit(sketches, images, np.arange(59), np.arange(60))
    with pytest.raises(InputError, match="image_labels has 61"):
        make(name).fit(sketches, images, np.arange(60), np.arange(61))


@pytest.mark.parametrize("name", SUPERVISED)
def test_new_pairs_are_found_in_unrelated_feature_spaces(name):
    sketches, images = two_views(260, m_image=15)
    ids = np.arange(260)
    method = make(name).fit(sketches[:200], images[:200], ids[:200], ids[:200])
    found = evaluate(
        method.encode_sketches(sketches[200:]),
        method.encode_images(images[200:]),
        ids[200:],
        ids[200:],
    )
    assert found.scores["rank_1"] > 0.5
    assert found.chance["rank_1"] < 0.02


@pytest.mark.parametrize("name", SUPERVISED)
def test_new_samples_of_known_classes_are_found(name):
    rng = np.random.default_rng(3)
    contents = rng.normal(size=(8, 6))
    features, labels = [], []
    for m, n_samples in ((20, [4, 12, 8, 8, 6, 10, 8, 8]), (15, [9, 8, 3, 12, 8, 8, 11, 8])):
        of_class = np.repeat(np.arange(8), 2 * np.array(n_samples))
        view = rng.normal(size=(6, m))
        features.append((contents[of_class] + 0.3 * rng.normal(size=(len(of_class), 6))) @ view)
        labels.append(of_class)
    train, test = ([of_side[k::2] for of_side in (*features, *labels)] for k in range(2))
    method = make(name).fit(*train)
    found = evaluate(method.encode_sketches(test[0]), method.encode_images(test[1]), *test[2:])
    assert found.scores["map"] > 0.65
    assert found.chance["map"] < 0.2


@pytest.mark.parametrize("name", SUPERVISED)
def test_links_stand_for_labels(name):
    sketches, images = two_views(60)
    ids = np.arange(60)
    labelled = make(name).fit(sketches, images, ids, ids)
    linked = make(name).fit(sketches, images, ids, -1 - ids, links=sparse.eye_array(60))
    for encoded in ("encode_sketches", "encode_images"):
        np.testing.assert_allclose(
            *(getattr(method, encoded)(images) for method in (labelled, linked)), atol=1e-5
        )
    with pytest.raises(InputError, match=r"links has shape \(60, 59\)"):
        make(name).fit(sketches, images, ids, ids, links=sparse.eye_array(60, 59))


@methods
def test_modalities_may_differ_in_dtype(name):
    sketches, images = two_views(60)
    method = make(name).fit(sketches.astype(np.float32), images, np.arange(60), np.arange(60))
    for codes in (method.encode_sketches(sketches), method.encode_images(images)):
        assert codes.dtype in (np.float32, np.float64)
        assert np.isfinite(codes).all()
        assert codes.any()


@pytest.mark.parametrize(
    "name", [name for name in METHODS if "seed" in signature(METHODS[name]).parameters]
)
def test_another_seed_learns_otherwise(name):
    sketches, images = two_views(60)
    first, second = (
        make(name, seed=seed).fit(sketches, images, np.arange(60), np.arange(60)).to_arrays()
        for seed in (0, 1)
    )
    assert any(not np.array_equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        (name, option)
        for name in METHODS
        for option, parameter in signature(METHODS[name]).parameters.items()
        if type(parameter.default) in (int, float, str)
    ],
)
def test_values_out_of_range_are_named(name, option):
    default = signature(METHODS[name]).parameters[option].default
    wrong = ["neither"] if isinstance(default, str) else [-1]
    wrong += [float("nan")] if isinstance(default, float) else []
    for value in wrong:
        with pytest.raises(InputError, match=f"{option.removeprefix('whitening_')}={value!r}"):
            make_method(name, **{option: value})


@pytest.mark.parametrize("name", SUPERVISED)
def test_labels_that_nothing_shares_are_refused(name):
    sketches, images = two_views(20)
    with pytest.raises(InputError, match="share no value"):
        make(name).fit(sketches, images, np.arange(20), 100 + np.arange(20))


def test_unknown_names_offer_the_nearest():
    with pytest.raises(InputError, match="'ridge_ca' is not known; did you mean 'ridge_cca'"):
        method_class("ridge_ca")
    with pytest.raises(InputError, match="there is cprl, raw_cosine"):
        method_class("zzzz")
    with pytest.raises(InputError, match="no option 'ridgee'; did you mean 'ridge'"):
        make_method("class_cca", ridgee=1)
    assert method_class("class_cca").__name__ == "ClassCCA"


@methods
def test_a_clone_has_the_same_options_and_learns_the_same(name):
    method, sketches, images = fitted(name)
    again = clone(method)
    assert type(again) is METHODS[name]
    assert again.options() == method.options()
    assert list(again.get_params(deep=False)) == list(signature(METHODS[name]).parameters)
    with pytest.raises(NotFittedError):
        again.encode_sketches(sketches)
    again.fit(sketches, images, np.arange(60), np.arange(60))
    assert again.options() == method.options()
    np.testing.assert_array_equal(again.encode_images(images), method.encode_images(images))


@methods
def test_options_that_are_set_are_checked_and_used(name):
    method, sketches, images = fitted(name)
    with pytest.raises(InputError, match="has no option 'whitten'"):
        method.set_params(whitten=True)
    if name in DIRECT:
        return
    before = method.options()
    with pytest.raises(InputError, match="n_components=0"):
        method.set_params(preparation__whiten=True, preparation__n_components=0)
    assert method.options() == before
    ids = np.arange(60)
    method.set_params(preparation__whiten=True, preparation__n_components=4).fit(
        sketches, images, ids, ids
    )
    expected = make(name, preparation={"whiten": True, "n_components": 4}).fit(
        sketches, images, ids, ids
    )
    codes = method.encode_images(images)
    np.testing.assert_array_equal(codes, expected.encode_images(images))
    assert not np.array_equal(codes, fitted(name)[0].encode_images(images))


@methods
def test_labels_that_say_nothing_are_named(name):
    sketches, images = two_views(60)
    for missing in (None, float("nan")):
        with pytest.raises(InputError, match=f"image_labels: label {missing} of row 59"):
            make(name).fit(sketches, images, range(60), [*range(59), missing])


@methods
def test_a_method_says_what_it_needs(name):
    method = make(name)
    assert isinstance(method.uses_curricula, bool)
    assert isinstance(method.uses_gpu, bool)
    assert isinstance(method.paces, bool)
    assert method.code_bits == (method.bits if name == "dsh" else None)
    assert bool(method.curriculum_modalities) == method.uses_curricula
    assert set(method.curriculum_modalities) <= {"sketch", "image"}
    small, large = (method.memory(n, n, (20, 20)) for n in (60, 6000))
    assert 0 < small < large


def test_curricula_are_used_by_their_weight_and_a_gpu_by_the_device():
    assert make("cprl").uses_curricula
    assert not make("cprl", pacing={"mu": 0}).uses_curricula
    gpu = make("cprl", device="cuda", coding={"code_solver": "gradient"})
    assert [gpu.uses_gpu, make("cprl").uses_gpu] == [True, False]
    using = [name for name in METHODS if make(name).uses_curricula]
    assert using == ["cprl", "paced_heads"]
    assert [name for name in METHODS if not make(name).learns] == ["raw_cosine"]
    assert make("cprl", pacing={"curricula": "image"}).curriculum_modalities == ("image",)
    assert make("cprl", pacing={"curricula": "image", "mu": 0}).curriculum_modalities == ()
    assert [make("cprl").paces, make("cprl", pacing={"regularizer": "none"}).paces] == [
        True,
        False,
    ]
