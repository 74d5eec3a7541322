"""Whatever a public function is given: the right answer, or an error that names the argument."""

import importlib
import inspect
import signal
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from scipy import sparse

from cppcl.curriculum import (
    AllPairs,
    ChainedPairs,
    ExplicitPairs,
    Union,
    order_by_scores,
    pairs_from_scores,
)
from cppcl.curriculum.build import build_curriculum
from cppcl.curriculum.scores import draw_pairs, hash_pairs
from cppcl.errors import ConvergenceWarning, InputError
from cppcl.features import EXTRACTORS, make_extractor
from cppcl.learning.affinity import within_weights
from cppcl.learning.composition import Composition
from cppcl.learning.cprl import CPRL
from cppcl.learning.graph import Laplacian, number_labels
from cppcl.learning.options import Coding, Graph, Initialization
from cppcl.learning.preparation import Preparation
from cppcl.methods import METHODS, make_method, method_class
from cppcl.optim.pacing.options import Pacing
from cppcl.retrieval.comparison import interval_over_splits, mean_interval, paired_difference
from cppcl.retrieval.exact import nearest, rank_gallery
from cppcl.retrieval.gallery import Gallery
from cppcl.retrieval.hashing import IterativeQuantization
from cppcl.retrieval.metrics import average_precision, chance, evaluate
from cppcl.selection.folds import fewer_rows, fold_numbers, repeated_folds
from cppcl.selection.grid_search import combinations, grid_search
from cppcl.validation import LARGEST
from tests.attempts import tried


class Missing:
    """As the missing value of pandas: it compares to anything, and says nothing."""

    def __eq__(self, other):
        return self

    __ne__ = __lt__ = __gt__ = __le__ = __ge__ = __eq__

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")

    def __hash__(self):
        return 7


NA = Missing()
RNG = np.random.default_rng(0)
SKETCHES, IMAGES = RNG.normal(size=(9, 4)), RNG.normal(size=(9, 4))
LABELS = [0, 1, 2] * 3
TENSOR = torch.ones((9, 4), requires_grad=True)

HOSTILE = {
    "none": None,
    "text": "abc",
    "bytes": b"abc",
    "true": True,
    "zero": 0,
    "negative": -1,
    "fraction": 2.5,
    "nan": float("nan"),
    "infinite": float("inf"),
    "huge": 1e300,
    "negative huge": -1e300,
    "tiny": 1e-300,
    "endless": 10**30,
    "complex": 1 + 1j,
    "missing": NA,
    "object": object(),
    "type": int,
    "function": len,
    "mapping": {"a": 1},
    "set": {1, 2},
    "empty": [],
    "nested empty": [[]],
    "ragged": [[1, 2], [3]],
    "list of none": [None] * 9,
    "list of nan": [float("nan")] * 9,
    "list of missing": [NA] * 9,
    "list of text": list("abcabcabc"),
    "list of lists": [[0, 1]] * 9,
    "list of huge": [1e300] * 9,
    "list of endless": [10**30] * 9,
    "list of objects": [object()] * 9,
    "scalar array": np.array(3.0),
    "no rows": np.empty((0, 4)),
    "no columns": np.empty((9, 0)),
    "one row": np.ones((1, 4)),
    "cube": np.ones((9, 4, 2)),
    "of nan": np.full((9, 4), np.nan),
    "of infinity": np.full((9, 4), np.inf),
    "of huge": np.full((9, 4), 1e300),
    "of tiny": np.full((9, 4), 1e-300),
    "of zeros": np.zeros((9, 4)),
    "of single huge": np.full((9, 4), 3e38, np.float32),
    "of complex": np.ones((9, 4), complex),
    "of objects": np.full((9, 4), None),
    "of text": np.full((9, 4), "a"),
    "of times": np.zeros((9, 4), "datetime64[s]"),
    "masked": np.ma.masked_array(np.ones((9, 4)), np.eye(9, 4)),
    "masked list": np.ma.masked_array(np.ones(9), [1, *[0] * 8]),
    "sparse": sparse.csr_array(np.ones((9, 4))),
    "tensor with gradient": TENSOR,
    "tensor of bfloat16": torch.ones((9, 4), dtype=torch.bfloat16),
    "list of tensors": [torch.tensor(k) for k in LABELS],
}


def admissible():
    return order_by_scores(np.arange(9.0), LABELS)


def fit(**arguments):
    options = {"n_rounds": 2, "n_atoms": 3}
    model = CPRL(**options).fit(**arguments)
    return [model.encode_sketches(SKETCHES), model.encode_images(IMAGES)]


def fit_baseline(name, **arguments):
    model = make_method(name).fit(**arguments)
    return [model.encode_sketches(SKETCHES), model.encode_images(IMAGES)]


SAMPLES = {
    "sketch_features": SKETCHES,
    "image_features": IMAGES,
    "sketch_labels": LABELS,
    "image_labels": LABELS,
}
LINKS = np.eye(9)
QUERY = {"query_codes": SKETCHES, "gallery_codes": SKETCHES}
PUBLIC = {
    "nearest": (nearest, QUERY | {"k": 3, "metric": "l2", "chunk": 4}),
    "rank_gallery": (
        lambda **given: [order for _, order in rank_gallery(**given)],
        QUERY | {"metric": "l2", "seed": 0, "chunk": 4},
    ),
    "Gallery": (Gallery, {"codes": SKETCHES, "metric": "l2"}),
    "Gallery.nearest": (Gallery(SKETCHES).nearest, {"query_codes": SKETCHES, "k": 3}),
    "evaluate": (
        evaluate,
        QUERY
        | {"query_labels": LABELS, "gallery_labels": LABELS, "metric": "cosine"}
        | {"ranks": (1, 5), "precisions": (3,), "seed": 0, "chunk": 4},
    ),
    "chance": (
        chance,
        {"query_labels": LABELS, "gallery_labels": LABELS, "ranks": (1,), "precisions": (3,)},
    ),
    "average_precision": (average_precision, {"relevance": [0, 1, 0]}),
    "mean_interval": (
        mean_interval,
        {"values": [np.arange(9.0)], "queries": [np.arange(9)], "n_draws": 20, "seed": 0},
    ),
    "paired_difference": (
        paired_difference,
        {"first": [np.arange(9.0)], "second": [np.ones(9)], "queries": [np.arange(9)]}
        | {"n_draws": 20, "seed": 0},
    ),
    "interval_over_splits": (interval_over_splits, {"values": [0.1, 0.2, 0.4]}),
    "IterativeQuantization.fit": (
        IterativeQuantization.fit,
        {"codes": SKETCHES, "bits": 2, "n_rounds": 3, "seed": 0},
    ),
    "IterativeQuantization.transform": (
        IterativeQuantization.fit(SKETCHES, 2).transform,
        {"codes": SKETCHES},
    ),
    "Laplacian.from_links": (
        Laplacian.from_links,
        {"links": LINKS, "within": None, "normalize": "sym", "dtype": np.float64},
    ),
    "Laplacian.from_labels": (
        Laplacian.from_labels,
        {"sketch_labels": LABELS, "image_labels": LABELS, "within": None, "normalize": "none"}
        | {"dtype": np.float32},
    ),
    "Laplacian": (Laplacian, {"left": LINKS, "right": LINKS}),
    "number_labels": (lambda labels: number_labels(labels), {"labels": LABELS}),
    "within_weights": (
        within_weights,
        {"features": SKETCHES, "labels": LABELS, "kind": "knn", "n_neighbors": 2, "sigma": 1.0},
    ),
    "CPRL.fit": (
        fit,
        SAMPLES | {"sketch_curriculum": None, "image_curriculum": None, "links": None},
    ),
    "CPRL.encode_sketches": (
        CPRL(n_rounds=2).fit(**SAMPLES).encode_sketches,
        {"features": SKETCHES},
    ),
    "Preparation.fit": (Preparation(whiten=True).fit_transform, {"features": SKETCHES}),
    "ExplicitPairs": (ExplicitPairs, {"pairs": [[0, 1]], "n_samples": 9}),
    "Union": (Union, {"parts": [ExplicitPairs([[0, 1]], 9)]}),
    "order_by_scores": (
        order_by_scores,
        {"scores": np.arange(9.0), "labels": LABELS, "delta": 0.5, "delta_unit": "deviation"}
        | {"scope": "auto"},
    ),
    "pairs_from_scores": (
        pairs_from_scores,
        {"scores": np.arange(9.0), "labels": LABELS, "delta": 0.5, "delta_unit": "deviation"}
        | {"scope": "auto", "rho": 0.5, "maximum_pairs": 5, "seed": 0},
    ),
    "draw_pairs": (
        partial(draw_pairs, admissible()),
        {"rho": 0.5, "maximum_pairs": 5, "seed": 0},
    ),
    "hash_pairs": (
        partial(hash_pairs, admissible()),
        {"ids": list("abcdefghi"), "rho": 0.5, "maximum_pairs": 5, "seed": 0},
    ),
    "build_curriculum": (
        build_curriculum,
        {"scores": np.arange(9.0), "labels": LABELS, "source": "scores", "pair_form": "all"}
        | {"delta": 0.5, "delta_unit": "deviation", "scope": "auto", "rho": 0.5},
    ),
    "fold_numbers": (
        fold_numbers,
        {"sketch_labels": LABELS, "image_labels": LABELS, "held_out": "samples", "n_folds": 3}
        | {"seed": 0},
    ),
    "repeated_folds": (
        repeated_folds,
        {"sketch_labels": LABELS, "image_labels": LABELS, "n_repeats": 2, "seed": 0},
    ),
    "fewer_rows": (
        fewer_rows,
        {"sketch_labels": LABELS, "image_labels": LABELS, "sketch_groups": LABELS}
        | {"image_groups": LABELS, "held_out": "classes", "most_rows": 3, "seed": 0},
    ),
    "grid_search": (
        partial(grid_search, METHODS["ridge_cca"]),
        SAMPLES
        | {"grid": {"ridge": [0.1, 1.0]}, "held_out": "samples", "n_folds": 2, "n_repeats": 1}
        | {"metric": "cosine", "warm_start": False, "seed": 0},
    ),
    "combinations": (combinations, {"grid": {"ridge": [0.1]}}),
    "method_class": (method_class, {"name": "cprl"}),
    "make_method": (make_method, {"name": "cprl", "composition": None}),
    "make_extractor": (make_extractor, {"name": "hog", "options": None}),
} | {
    f"{name}.fit": (partial(fit_baseline, name), SAMPLES | {"links": None})
    for name in METHODS
    if name not in ("cprl", "infonce_heads", "paced_heads")
}

for curriculum in (ExplicitPairs([[0, 1]], 9), AllPairs(admissible()), ChainedPairs(admissible())):
    for name, rest in (("value", {}), ("smoothed_gradient", {"eps": 0.1})):
        PUBLIC[f"{type(curriculum).__name__}.{name}"] = (
            getattr(curriculum, name),
            {"v": np.ones(9)} | rest,
        )
    PUBLIC[f"{type(curriculum).__name__}.restrict"] = (curriculum.restrict, {"rows": np.arange(3)})

OPTIONS = {
    kind.__name__: kind
    for kind in (CPRL, Pacing, Graph, Initialization, Coding, Preparation, Composition)
} | {name: kind for name, kind in (METHODS | EXTRACTORS).items() if name != "cprl"}


LIMIT = 60
"""Seconds that a call may take, the first of which may compile."""


def out_of_time(number, frame):
    raise TimeoutError(f"more than {LIMIT} s")


@pytest.fixture(autouse=True)
def bounded_in_time():
    before = signal.signal(signal.SIGALRM, out_of_time)
    yield
    signal.signal(signal.SIGALRM, before)


def numbers_of(found):
    """Floating arrays in a result, whatever it is."""
    if isinstance(found, np.ndarray | np.generic | float):
        return [np.asarray(found)] if np.asarray(found).dtype.kind == "f" else []
    if sparse.issparse(found):
        return [found.data]
    if isinstance(found, dict):
        return numbers_of(list(found.values()))
    if isinstance(found, list | tuple):
        return [array for part in found for array in numbers_of(part)]
    return numbers_of([*vars(found).values()]) if hasattr(found, "__dict__") else []


def names_for(argument, valid):
    """What an error may name: a list that does not fit another may be told by either."""
    if argument in ("options", "grid", "composition"):
        return [argument, "'a'"]
    if isinstance(valid[argument], list | np.ndarray):
        return [name for name in valid if isinstance(valid[name], list | np.ndarray)]
    return [argument]


def complaint(call, names, value):
    """What is wrong with a call: an error not of ours or that does not name the argument, NaN."""
    tried()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        signal.setitimer(signal.ITIMER_REAL, LIMIT)
        try:
            found = call()
        except InputError as error:
            named = any(name in str(error) for name in names)
            return None if named else f"does not name it: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    if any(np.isnan(array).any() for array in numbers_of(found)) and "nan" not in value:
        return f"NaN among {found!r:.200}"
    return None


def complaints(make, valid):
    return [
        f"{argument}={value}: {wrong}"
        for argument in valid
        for value, hostile in HOSTILE.items()
        if (
            wrong := complaint(
                partial(make, **(valid | {argument: hostile})), names_for(argument, valid), value
            )
        )
    ]


@pytest.mark.parametrize("name", PUBLIC)
def test_an_argument_is_used_or_named(name):
    function, valid = PUBLIC[name]
    assert complaint(partial(function, **valid), [], "") is None
    assert complaints(function, valid) == []


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_used_or_named(name):
    kind = OPTIONS[name]
    valid = {
        option: parameter.default
        for option, parameter in inspect.signature(kind).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    assert [
        f"{option}={value}: {wrong}"
        for option in valid
        for value, hostile in HOSTILE.items()
        if (wrong := complaint(partial(kind, **{option: hostile}), [option], value))
    ] == []


def test_distances_whose_squares_vanish_rank_as_any_others():
    gallery = np.array([[3e-300, 0.0], [1e-300, 0.0], [2e-300, 0.0], [0.0, 1.0]])
    for found, distances in (
        nearest([[0.0, 0.0]], gallery, 4, metric="l2"),
        Gallery(gallery, metric="l2").nearest([[0.0, 0.0]], 4),
        nearest([[0.0, 0.0]], gallery[:3], 4, metric="l2"),
        Gallery(gallery[:3], metric="l2").nearest([[0.0, 0.0]], 4),
    ):
        assert found[0, :3].tolist() == [1, 2, 0]
        np.testing.assert_allclose(-distances[0, :3], [1e-300, 2e-300, 3e-300], rtol=1e-12)
    ((_, order),) = rank_gallery([[0.0, 0.0]], gallery, metric="l2")
    assert order.tolist() == [[1, 2, 0, 3]]


@pytest.mark.parametrize(
    "search", [nearest, lambda q, g, k, metric: Gallery(g, metric=metric).nearest(q, k)]
)
def test_similarities_beyond_single_precision_are_double(search):
    codes = np.array([[3e38, 3e38], [1e38, 2e38]], np.float32)
    found, overlaps = search(codes[:1], codes, 2, metric="intersection")
    assert found.tolist() == [[0, 1]]
    np.testing.assert_allclose(overlaps, [[6e38, 3e38]], rtol=1e-6)
    _, distances = search(codes[:1], -codes, 2, metric="l2")
    np.testing.assert_allclose(
        -distances, [[np.hypot(4e38, 5e38), np.hypot(6e38, 6e38)]], rtol=1e-6
    )
    assert search(codes[:1] / 1e38, codes / 1e38, 2, metric="l2")[1].dtype == np.float32


@pytest.mark.parametrize(
    "convert", [list, np.array, torch.tensor, lambda labels: [*map(torch.tensor, labels)]]
)
def test_labels_of_any_kind_say_the_same(convert):
    expected = evaluate(SKETCHES, IMAGES, LABELS, LABELS).scores
    assert evaluate(SKETCHES, IMAGES, convert(LABELS), LABELS).scores == expected
    codes = [fit(**SAMPLES | {"sketch_labels": labels}) for labels in (LABELS, convert(LABELS))]
    np.testing.assert_array_equal(codes[0], codes[1])


@pytest.mark.parametrize("missing", [None, float("nan"), NA])
@pytest.mark.parametrize("side", ["sketch", "image"])
def test_a_missing_label_is_refused_alike_everywhere(missing, side):
    labels = {"sketch": LABELS, "image": LABELS} | {side: [*LABELS[:8], missing]}
    with pytest.raises(InputError, match=rf"{side}_labels: label .* of row 8 says nothing"):
        fit(**SAMPLES | {f"{m}_labels": given for m, given in labels.items()})
    with pytest.raises(InputError, match=r"_labels: label .* of row 8 says nothing"):
        evaluate(SKETCHES, IMAGES, labels["sketch"], labels["image"])


STOPPED = ("infonce_heads", "paced_heads", "jdl", "scdl", "cdl")
"""Methods that stop before they converge, where rounding shows."""


@pytest.mark.parametrize("size", [2.0**100, 2.0**-100])
@pytest.mark.parametrize("name", [name for name in METHODS if name not in STOPPED])
def test_the_size_of_features_changes_nothing(name, size):
    def codes(scale):
        given = {m: SAMPLES[m].astype(np.float32) * np.float32(scale) for m in list(SAMPLES)[:2]}
        method = make_method(name, **({"n_rounds": 2} if name == "cprl" else {}))
        method.fit(**SAMPLES | given)
        return method.encode_sketches(given["sketch_features"])

    np.testing.assert_allclose(cosines(codes(size)), cosines(codes(1)), atol=1e-3)


def cosines(codes):
    codes = codes.astype(np.float64)
    norms = np.linalg.norm(codes, axis=1, keepdims=True)
    unit = np.divide(codes, norms, where=norms > 0, out=np.zeros_like(codes))
    return unit @ unit.T


@pytest.mark.parametrize(
    "option", ["alpha", "beta", "pacing__gamma0", "pacing__eta", "pacing__mu"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_weight_that_is_taken_trains(option, dtype):
    features = SKETCHES.astype(dtype), IMAGES.astype(dtype)
    model = CPRL(n_rounds=3).set_params(**{option: LARGEST}).fit(*features, LABELS, LABELS)
    assert np.isfinite(model.encode_images(features[1])).all()
    with pytest.raises(InputError, match=rf"{option.split('__')[-1]}=1e\+300 must be"):
        CPRL().set_params(**{option: 1e300})


@pytest.mark.parametrize("given", [[(0, 1)], [[0, 1]], np.array([[0, 1]])])
def test_a_list_of_pairs_is_no_curriculum(given):
    with pytest.raises(
        InputError, match=r"sketch_curriculum .* give cppcl\.curriculum\.ExplicitPairs"
    ):
        fit(**SAMPLES | {"sketch_curriculum": given})


MODULES = """
retrieval.exact retrieval.gallery retrieval.metrics retrieval.comparison retrieval.hashing
curriculum.pairs curriculum.orders curriculum.semiorder curriculum.scores curriculum.union
curriculum.build learning.graph learning.affinity learning.preparation learning.composition
learning.composed_method
selection.folds selection.grid_search methods features
"""
BEHIND_CHECKS = """
check_pacing checked_codes constructed curriculum_arrays curriculum_from_arrays
exact_similarities floating_type gather_scores in_type_of joined label_array learning_part
n_kept prepared_rows principal_axes read_composition row_norms score_by_name score_fold
score_job search_jobs signs sorted_labels summarise unit_rows zero_codes
"""
"""Functions that other modules call with what is checked already."""


def test_every_public_function_is_tried():
    found = {
        name
        for module in map(importlib.import_module, (f"cppcl.{name}" for name in MODULES.split()))
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and name[0] != "_"
    }
    assert found - set(BEHIND_CHECKS.split()) <= PUBLIC.keys()
    assert found >= set(BEHIND_CHECKS.split())
