"""Corrections for hubs, against their definitions written out."""

import numpy as np
import pytest
from scipy.special import logsumexp

from cppcl.retrieval.exact import nearest
from cppcl.retrieval.gallery import Gallery
from cppcl.retrieval.hubness import hub_offsets, images_with_hubness, sketches_with_hubness


@pytest.fixture
def unit() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    codes = [rng.normal(size=(n, 6)) + 0.5 for n in (9, 20, 30)]
    return [c / np.linalg.norm(c, axis=1, keepdims=True) for c in codes]


@pytest.mark.parametrize("correction", ["csls", "inverted_softmax"])
def test_the_cosine_of_longer_codes_ranks_by_the_corrected_cosine(unit, correction):
    queries, bank, gallery = unit
    offsets = hub_offsets(bank, gallery, correction, n_neighbors=4, temperature=0.2)
    cosine = queries @ gallery.T
    if correction == "csls":
        hub = np.sort(bank @ gallery.T, axis=0)[-4:].mean(axis=0)
        expected = 2 * cosine - hub
    else:
        hub = 0.2 * (logsumexp(bank @ gallery.T / 0.2, axis=0) - np.log(len(bank)))
        expected = cosine - hub
    np.testing.assert_allclose(offsets, hub, atol=1e-12)
    longer = sketches_with_hubness(queries, correction), images_with_hubness(gallery, offsets)
    norms = [np.linalg.norm(codes, axis=1) for codes in longer]
    for of_modality in norms:
        np.testing.assert_allclose(of_modality, of_modality[0], rtol=1e-12)
    scale = norms[0][0] * norms[1][0]
    order = np.argsort(-expected, axis=1)
    for found, similarity in (nearest(*longer, 30), Gallery(longer[1]).nearest(longer[0], 30)):
        np.testing.assert_array_equal(found, order)
        np.testing.assert_allclose(
            similarity * scale, np.take_along_axis(expected, order, 1), atol=1e-6
        )


def test_zero_codes_stay_zero_and_a_small_bank_is_taken_whole(unit):
    _, bank, gallery = unit
    assert not sketches_with_hubness(np.zeros((1, 6)), "csls").any()
    offsets = hub_offsets(bank[:2], gallery, "csls", n_neighbors=10)
    np.testing.assert_allclose(offsets, (bank[:2] @ gallery.T).mean(axis=0), atol=1e-12)
    zeros = np.zeros((1, 6))
    assert not images_with_hubness(zeros, hub_offsets(bank, zeros, "csls")).any()
