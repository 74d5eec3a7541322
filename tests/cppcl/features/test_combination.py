"""Extractors combined by name: their blocks, what they learn, and what is refused."""

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

from cppcl.errors import InputError, NotFittedError
from cppcl.features import CombinedExtractor, learning_part, make_extractor

LKS = {"n_keyshapes": 5, "n_nearest": 2, "blocks": 2}
SIFT = {"n_words": 6}


class Given:
    """An extractor that returns the rows that it was made with."""

    name, version, device, learns = "given", 3, "cpu", False

    def __init__(self, rows: np.ndarray, name: str = "given") -> None:
        self.rows, self.name = rows, name
        self.dimension = rows.shape[1]

    def parameters(self) -> dict[str, Any]:
        return {}

    def transform(self, pictures: Any) -> np.ndarray:
        return self.rows[: len(pictures)]


@pytest.fixture(scope="module")
def learned(drawings):
    return make_extractor("lks", LKS).fit(drawings)


def test_blocks_are_those_of_the_parts_at_unit_length_and_weighted(drawings, learned):
    combined = make_extractor(
        "lks+hog+pixels", {"lks": LKS, "pixels": {"size": [5, 4]}, "weights": [2, 0.5, 1]}
    ).fit(drawings)
    rows = combined.transform(drawings)
    parts = [learned, make_extractor("hog"), make_extractor("pixels", {"size": [5, 4]})]
    expected = np.hstack(
        [
            weight * normalize(part.transform(drawings).astype(np.float64))
            for part, weight in zip(parts, [2, 0.5, 1], strict=True)
        ]
    )
    assert rows.shape == (len(drawings), 20 + 1296 + 20) == (len(drawings), combined.dimension)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, expected, atol=1e-6)


@given(seed=st.integers(0, 99), weights=st.tuples(*[st.floats(0.125, 8)] * 2))
def test_cosines_are_means_of_those_of_the_parts(seed, weights):
    rng = np.random.default_rng(seed)
    parts = [Given(rng.normal(size=(6, m)).astype(np.float32), f"m{m}") for m in (4, 7)]
    rows = CombinedExtractor(parts=parts, weights=weights).transform([None] * 6)
    squares = np.square(weights)
    expected = sum(s * cosine_similarity(p.rows) for s, p in zip(squares, parts, strict=True))
    np.testing.assert_allclose(cosine_similarity(rows), expected / squares.sum(), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.sqrt(squares.sum()), rtol=1e-6)


def test_a_block_of_zeros_stays_so_and_extreme_values_count():
    first = np.array([[0, 0], [3e30, 4e30], [3e-30, -4e-30]], dtype=np.float32)
    second = np.array([[1, 0], [0, 0], [5, 12]], dtype=np.float32)
    combined = CombinedExtractor(parts=[Given(first, "a"), Given(second, "b")], weights=[1, 2])
    expected = [[0, 0, 2, 0], [0.6, 0.8, 0, 0], [0.6, -0.8, 10 / 13, 24 / 13]]
    np.testing.assert_allclose(combined.transform([None] * 3), expected, rtol=1e-6)


def test_the_learning_part_learns_what_it_would_alone(drawings, learned):
    combined = make_extractor("hog+lks", {"lks": LKS})
    assert combined.learns
    with pytest.raises(NotFittedError):
        combined.transform(drawings)
    own = combined.fit(drawings).to_arrays()
    alone = learned.to_arrays()
    assert {name: a.tobytes() for name, a in own.items()} == {
        name: a.tobytes() for name, a in alone.items()
    }
    assert combined.shapes == learned.shapes
    shared = make_extractor("hog+lks", {"lks": LKS}).from_arrays(alone)
    np.testing.assert_array_equal(shared.transform(drawings), combined.transform(drawings))


def test_several_parts_learn_each_for_itself(drawings, learned):
    options = {"lks": LKS, "sift": SIFT}
    combined = make_extractor("lks+hog+sift", options).fit(drawings)
    arrays = combined.to_arrays()
    assert set(arrays) == {"lks.keyshapes", "lks.statistics", "lks.patches", "sift.words"}
    assert {name: a.shape for name, a in arrays.items()} == combined.shapes
    np.testing.assert_array_equal(arrays["lks.keyshapes"], learned.to_arrays()["keyshapes"])
    again = make_extractor("lks+hog+sift", options).from_arrays(arrays)
    np.testing.assert_array_equal(again.transform(drawings), combined.transform(drawings))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(combined)).transform(drawings), again.transform(drawings)
    )
    with pytest.raises(InputError, match="another extractor"):
        again.from_arrays({"keyshapes": arrays["lks.keyshapes"]})
    with pytest.raises(InputError, match="another extractor or to other options"):
        again.from_arrays({"sift.words": arrays["sift.words"]})
    with pytest.raises(InputError, match=r"lks and sift both read .* give a list"):
        make_extractor("lks+hog+sift", options).fit(iter(drawings))
    make_extractor("lks+hog", {"lks": LKS}).fit(iter(drawings))


def test_what_learns_for_an_extractor():
    options = {"lks": LKS, "sift": SIFT, "weights": [1, 2, 3]}
    assert learning_part("lks", LKS) == ("lks", LKS)
    assert learning_part("hog") == ("hog", {})
    assert learning_part("hog+pixels", {"weights": [1, 2]}) == ("hog+pixels", {"weights": [1, 2]})
    assert learning_part("hog+lks", {"lks": LKS, "hog": None}) == ("lks", LKS)
    assert learning_part("hog+lks", {"lks": None}) == ("lks", {})
    assert learning_part("lks+hog+sift", options) == ("lks+sift", {"lks": LKS, "sift": SIFT})
    # What is learned depends on the order of parts in nothing but the names of arrays.
    assert learning_part("sift+lks", {"lks": LKS}) == ("sift+lks", {"lks": LKS})


def test_parameters_say_all_options_and_make_it_again():
    combined = make_extractor("hog+pixels", {"pixels": {"size": [5, 4]}})
    parameters = combined.parameters()
    assert json.loads(json.dumps(parameters)) == parameters
    assert set(parameters) == {"hog", "pixels", "weights"}
    assert parameters["weights"] == [1.0, 1.0]
    assert parameters["pixels"] == make_extractor("pixels", {"size": [5, 4]}).parameters()
    again = make_extractor("hog+pixels", parameters)
    assert again.parameters() == parameters
    other = make_extractor("hog+pixels", {**parameters, "weights": [1, 2]})
    assert other.parameters() != parameters


def test_version_rises_with_those_of_the_parts_and_device_is_the_most_wanted():
    combined = make_extractor("hog+lks")
    hog, lks = combined.parts
    assert combined.version == hog.version + lks.version
    assert (combined.name, combined.device, combined.learns) == ("hog+lks", "cpu", True)
    assert make_extractor("hog+cnn").device == "gpu"
    assert not make_extractor("hog+cnn").learns


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("lks+cn", {}, r"no feature extractor 'cn' in 'lks\+cn'.*'cnn'"),
        ("hog+", {}, r"no feature extractor '' in 'hog\+'"),
        ("hog + lks", {}, r"no feature extractor 'hog ' .*'hog'"),
        ("hog+lks+hog", {}, r"'hog\+lks\+hog' names 'hog' twice"),
        ("hog+precomputed", {}, r"cannot hold 'precomputed', .* side by side"),
        ("hog+lks", {"weights": [1]}, r"weights=\[1\] of 'hog\+lks'.*hog, lks"),
        ("hog+lks", {"weights": [1, 2, 3]}, "weights="),
        ("hog+lks", {"weights": 1}, "weights=1"),
        ("hog+lks", {"weights": [1, -0.5]}, r"weight of lks=-0\.5"),
        ("hog+lks", {"weights": [float("nan"), 1]}, "weight of hog=nan"),
        ("hog+lks", {"weights": [True, 1]}, "weight of hog=True"),
        ("hog+lks", {"weights": [0, 0.0]}, "all are 0"),
        ("hog+lks", {"wieghts": [1, 2]}, r"'hog\+lks' has no option 'wieghts'.*'weights'"),
        ("hog+lks", {"blocks": 3}, r"no option 'blocks'.* under its name"),
        ("hog+lks", {"lks": {"bloks": 3}}, "'lks' has no option 'bloks'.*'blocks'"),
        ("hog+lks", {"lks": {"blocks": 0}}, "blocks=0"),
        ("hog+lks", {"lks": 3}, "option lks=3"),
    ],
)
def test_what_is_refused_is_named(name, options, words):
    with pytest.raises(InputError, match=words):
        make_extractor(name, options)


def test_one_part_and_a_score_make_no_combination():
    with pytest.raises(InputError, match="'hog' has 1 parts"):
        CombinedExtractor(parts=(make_extractor("hog"),))
    with pytest.raises(InputError, match=r"'hog\+edgeness': 'edgeness' gives a single number"):
        assert make_extractor("hog+edgeness").dimension


def test_a_network_beside_what_learns_nothing(drawings):
    """It learns as it would alone, and its branch describes; beside a learner it is refused."""
    options = {"epochs": 1, "batch_size": 4}
    labelled = [(picture, number // 2) for number, picture in enumerate(drawings)]
    combined = make_extractor("hog+siamese", {"siamese": options})
    assert combined.cross_modal
    combined.fit_both(labelled, labelled)
    alone = make_extractor("siamese", options).fit_both(labelled, labelled)
    for modality in ("sketch", "image"):
        rows = combined.branch(modality).transform(drawings)
        expected = alone.branch(modality).transform(drawings)
        np.testing.assert_allclose(rows[:, 1296:], expected, atol=1e-6)
    assert combined.memory_of_learning(9) == alone.memory_of_learning(9) > 2**29
    with pytest.raises(InputError, match=r"'lks\+siamese': lks and siamese all learn"):
        make_extractor("lks+siamese")
