import numpy as np
import pytest
import torch
from scipy import sparse

from cppcl.baselines import InfoNCEHeads
from cppcl.baselines.heads import links_of_pairs
from cppcl.baselines.links import class_links, given_links
from cppcl.errors import InputError
from cppcl.optim.contrastive import contrastive_loss

SMALL = {"width": 16, "dimension": 4, "epochs": 3, "batch_size": 8, "temperature": 0.1}


def two_views(n=30, m_s=6, m_i=6, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 3))
    return [shared @ rng.normal(size=(3, m)) + 0.1 * rng.normal(size=(n, m)) for m in (m_s, m_i)]


def unit(codes):
    return torch.nn.functional.normalize(torch.from_numpy(codes), dim=1)


def test_loss_of_pairs_is_the_cross_entropy_of_both_directions():
    a, b = (unit(view) for view in two_views())
    similarities, rows = a @ b.T / 0.2, torch.arange(30)
    cross_entropy = torch.nn.functional.cross_entropy
    expected = (cross_entropy(similarities, rows) + cross_entropy(similarities.T, rows)) / 2
    found = contrastive_loss(a, b, torch.eye(30, dtype=torch.float64), 0.2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_loss_of_several_positives_is_their_weighted_mean():
    rng = np.random.default_rng(1)
    a, b = (unit(view) for view in two_views(5))
    weights = rng.random((5, 5)) * (rng.random((5, 5)) < 0.5) + np.eye(5)
    expected = 0.0
    for codes, others, links in ((a, b, weights), (b, a, weights.T)):
        for p in range(5):
            terms = [float(torch.exp(codes[p] @ others[q] / 0.3)) for q in range(5)]
            expected -= sum(links[p] / links[p].sum() * np.log(np.array(terms) / sum(terms))) / 10
    found = contrastive_loss(a, b, torch.from_numpy(weights), 0.3)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_positives_of_a_batch_are_the_links_of_its_samples():
    weights = np.array([[1.0, 0, 2], [0, 3, 0]])
    pairs = np.array([[0, 1, 0], [2, 1, 0]])
    found = links_of_pairs(given_links(weights, 2, 3), pairs)
    np.testing.assert_array_equal(found, weights[np.ix_(pairs[0], pairs[1])])
    found = links_of_pairs(class_links(list("ab"), list("aba")), pairs)
    np.testing.assert_array_equal(found, [[1, 0, 1], [0, 1, 0], [1, 0, 1]])


def test_codes_are_those_of_the_layers():
    sketches, images = two_views()
    method = InfoNCEHeads(**SMALL).fit(sketches, images, range(30), range(30))
    arrays = method.to_arrays()
    head = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4, bias=False)
    ).double()
    state = {"0.weight": "hidden", "0.bias": "bias", "2.weight": "output"}
    head.load_state_dict(
        {name: torch.from_numpy(arrays[f"image_{ours}"].T) for name, ours in state.items()}
    )
    prepared = torch.from_numpy(images - images.mean(axis=0))
    with torch.no_grad():
        expected = head(torch.nn.functional.normalize(prepared, dim=1))
    np.testing.assert_allclose(method.encode_images(images), expected, atol=1e-9)


def test_heads_start_equal_where_features_are_as_many_and_training_moves_them():
    sketches, images = two_views()
    data = sketches, images, range(30), range(30)
    still = InfoNCEHeads(**SMALL, learning_rate=1e-9).fit(*data).to_arrays()
    np.testing.assert_allclose(still["sketch_output"], still["image_output"], atol=1e-6)
    learned = InfoNCEHeads(**SMALL | {"epochs": 30}).fit(*data)
    losses = learned.history_["loss"]
    assert losses.shape == (30,)
    assert losses[-1] < 0.5 * losses[0]
    assert np.abs(learned.to_arrays()["sketch_output"] - still["sketch_output"]).max() > 1e-3


def test_samples_without_partner_do_not_count():
    sketches, images = two_views()
    expected = InfoNCEHeads(**SMALL, preparation={"center": False}).fit(
        sketches[:20], images[:20], range(20), range(20)
    )
    links = sparse.eye_array(30, 20)
    found = InfoNCEHeads(**SMALL, preparation={"center": False}).fit(
        sketches, images[:20], range(30), range(20), links=links
    )
    np.testing.assert_allclose(
        found.encode_images(images), expected.encode_images(images), atol=1e-5
    )


def test_what_it_cannot_do_is_named():
    sketches, images = two_views()
    data = sketches, images, range(30), range(30)
    with pytest.raises(InputError, match=r"dropout=1\.0 must be a number of at least 0, below 1"):
        InfoNCEHeads(dropout=1.0)
    with pytest.raises(InputError, match="device='neither' is none that torch knows"):
        InfoNCEHeads(device="neither")
    away = InfoNCEHeads(device="cuda:99")
    assert away.uses_gpu
    with pytest.raises(InputError, match=r"device='cuda:99' cannot be used here.*device='cpu'"):
        away.fit(*data)
    with pytest.raises(InputError, match="image_features: all 30 rows are alike"):
        InfoNCEHeads(**SMALL).fit(sketches, np.ones((30, 6)), range(30), range(30))
    with pytest.raises(InputError, match=r"diverged in epoch \d+ with learning_rate=1000000000"):
        InfoNCEHeads(**SMALL, learning_rate=1e9).fit(*data)
