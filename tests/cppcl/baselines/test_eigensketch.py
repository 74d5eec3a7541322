import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from cppcl.baselines import Eigensketch

PLAIN = {"preparation": {"center": False, "unit_norm": False}}


def faces(n=30, m_s=50, m_i=40, seed=0):
    rng = np.random.default_rng(seed)
    content = rng.normal(size=(n, 8))
    return [
        content @ rng.normal(size=(8, m)) + 0.3 * rng.normal(size=(n, m)) + 1 for m in (m_s, m_i)
    ]


@pytest.mark.parametrize("n_directions", [29, 5])
def test_weights_of_training_photos_make_the_pseudo_sketch(n_directions):
    sketches, photos = faces()
    train, test = slice(0, 24), slice(24, 30)
    d = min(n_directions, 23)
    method = Eigensketch(n_directions=n_directions, **PLAIN).fit(
        sketches[train], photos[train], range(24), range(24)
    )
    eigenphotos = PCA(d).fit(photos[train])
    eigensketches = PCA(d).fit(sketches[train])
    # The photo in the span of eigenphotos is the mean plus training photos times weights.
    projected = eigenphotos.inverse_transform(eigenphotos.transform(photos[test]))
    basis = eigenphotos.inverse_transform(eigenphotos.transform(photos[train]))
    weights = (projected - eigenphotos.mean_) @ np.linalg.pinv(basis - eigenphotos.mean_)
    pseudo = eigensketches.mean_ + weights @ (sketches[train] - eigensketches.mean_)
    signs = np.sign(
        np.einsum(
            "nd,nd->d",
            method.encode_sketches(sketches[test]),
            eigensketches.transform(sketches[test]),
        )
    )
    for codes, expected in (
        (method.encode_sketches(sketches[test]), eigensketches.transform(sketches[test])),
        (method.encode_images(photos[test]), eigensketches.transform(pseudo)),
    ):
        np.testing.assert_allclose(codes * signs, expected, atol=1e-8)


def test_ridge_is_that_of_a_regression_of_sketches_on_photos():
    sketches, photos = faces()
    method = Eigensketch(ridge=0.2, **PLAIN).fit(sketches, photos, range(30), range(30))
    weight = 0.2 * 30 * np.linalg.eigvalsh(np.cov(photos.T, bias=True))[-1]
    regression = Ridge(weight).fit(photos, sketches)
    axes, offset = (method.to_arrays()[f"sketch_{name}"] for name in ("projection", "offset"))
    expected = (regression.predict(photos) - offset) @ axes
    np.testing.assert_allclose(method.encode_images(photos), expected, atol=1e-8)


def test_of_several_partners_the_mean_is_taken():
    sketches, photos = faces()
    ids = np.arange(30)
    twice, labels = np.vstack([sketches + 0.5, sketches - 0.5]), np.tile(ids, 2)
    pseudo_sketches = []
    for of_sketches, of_labels in ((sketches, ids), (twice, labels)):
        method = Eigensketch(**PLAIN).fit(of_sketches, photos, of_labels, ids)
        axes = method.to_arrays()["sketch_projection"]
        pseudo_sketches.append(method.encode_images(photos) @ axes.T)
    np.testing.assert_allclose(*pseudo_sketches, atol=1e-8)
