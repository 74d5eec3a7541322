"""The method: noise, kernels, curricula, links, and what is refused."""

import numpy as np
import pytest
from scipy import sparse

from cppcl.curriculum import ExplicitPairs
from cppcl.errors import InputError
from cppcl.hashing.dsh import DSH
from cppcl.retrieval.metrics import evaluate


def classes(n=30, n_classes=6, wrong=0.0, seed=0):
    """Features of both modalities with the given and the true labels."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, 12))
    true = [rng.permutation(np.arange(n * n_classes) % n_classes) for _ in range(2)]
    features = [
        centres[of] + 0.9 * rng.normal(size=(len(of), 12)) + k for k, of in enumerate(true)
    ]
    given = [of.copy() for of in true]
    for of in given:
        rows = rng.permutation(len(of))[: round(wrong * len(of))]
        of[rows] = (of[rows] + rng.integers(1, n_classes, len(rows))) % n_classes
    return features, given, true


def score(method, seed=1):
    (sketches, images), _, true = classes(seed=0)
    rng = np.random.default_rng(seed)
    new = [F + 0.5 * rng.normal(size=F.shape) for F in (sketches, images)]
    codes = method.encode_sketches(new[0]), method.encode_images(new[1])
    return evaluate(*codes, *true).scores["map"]


@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_codes_are_bits_that_tell_classes_apart(kind):
    features, given, _ = classes()
    method = DSH(bits=24, functions={"kind": kind, "n_anchors": 100}).fit(*features, *given)
    codes = method.encode_images(features[1].astype(np.float32))
    assert codes.shape == (180, 24)
    assert codes.dtype == np.float32
    assert set(np.unique(codes)) == {-1, 1}
    assert score(method) > 0.75
    again = DSH(bits=24, functions={"kind": kind, "n_anchors": 100}).from_arrays(
        method.to_arrays()
    )
    np.testing.assert_array_equal(
        again.encode_sketches(features[0]), method.encode_sketches(features[0])
    )


def test_dissimilarity_sets_what_codes_of_different_classes_aim_at():
    features, given, _ = classes(n_classes=2)
    # The least that two classes can have is what the publication asks of any number.
    first, second = (
        DSH(bits=8, dissimilarity=name).fit(*features, *given).to_arrays()
        for name in ("attainable", "opposite")
    )
    assert all(np.array_equal(first[name], second[name]) for name in first)
    features, given, _ = classes()
    first, second = (
        DSH(bits=8, dissimilarity=name).fit(*features, *given).history_["objective"][0]
        for name in ("attainable", "opposite")
    )
    assert first < second


@pytest.mark.parametrize(
    "options",
    [{"sample_weights": "agreement"}, {"pacing": {"regularizer": "B", "loss": "agreement"}}],
)
def test_agreement_mends_wrong_labels(options):
    features, given, true = classes(wrong=0.4)
    plain = DSH(bits=32).fit(*features, *given)
    judged = DSH(bits=32, **options).fit(*features, *given)
    assert score(judged) > score(plain) + 0.03
    arrays = judged.to_arrays()
    assert 0.5 < arrays["right_share"][0] < 0.75
    if judged.paces:
        v = arrays["sketch_pacing_rounds"]
        right = given[0] == true[0]
        assert v.shape == (len(judged.history_["gamma"]), 180)
        assert v[-1, right].mean() > v[-1, ~right].mean() + 0.3


def test_curricula_order_what_is_taken_up():
    features, given, _ = classes()
    free = DSH(bits=8, pacing={"regularizer": "B"}).fit(*features, *given)
    v = free.to_arrays()["sketch_pacing_rounds"][0]
    pairs = np.argsort(v)[::-1].reshape(-1, 2)[:20][:, ::1]  # the sooner one is called harder
    ordered = DSH(bits=8, pacing={"regularizer": "B", "mu": 1000.0}).fit(
        *features, *given, ExplicitPairs(pairs, 180)
    )
    assert ordered.uses_curricula
    after = ordered.to_arrays()["sketch_pacing_rounds"][0]
    assert (v[pairs[:, 0]] > v[pairs[:, 1]] + 1e-6).any()
    assert (after[pairs[:, 0]] <= after[pairs[:, 1]] + 1e-6).all()


def test_samples_without_links_take_no_part():
    features, _, true = classes()
    links = (true[0][:, None] == true[1]).astype(float)
    links[:5] = 0
    linked = DSH(bits=16).fit(*features, *true, links=links)
    rest = DSH(bits=16).fit(features[0], features[1], *true)
    assert not np.array_equal(linked.to_arrays()["intercept"], rest.to_arrays()["intercept"])
    with pytest.raises(InputError, match="links leave out samples"):
        DSH(pacing={"regularizer": "B"}).fit(*features, *true, links=links)
    with pytest.raises(InputError, match="sample_weights='agreement' judges labels"):
        DSH(sample_weights="agreement").fit(*features, *true, links=sparse.csr_array(links))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pacing": {"coupling": "trace"}}, "pacing.coupling='trace'"),
        (
            {"pacing": {"regularizer": "B"}, "sample_weights": "agreement"},
            "sample_weights='agreement' are fixed",
        ),
    ],
)
def test_options_that_contradict_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        DSH(**options)


def test_one_class_is_refused():
    features, given, _ = classes()
    with pytest.raises(InputError, match="all samples are of one class"):
        DSH().fit(*features, *(np.zeros_like(of) for of in given))
