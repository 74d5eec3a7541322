"""Descriptors of contours against loops over pixels."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from cppcl.features.contours.strokes import normalised_strokes
from cppcl.features.descriptors.daisy import daisy
from cppcl.features.descriptors.keyshapes import vote_scales
from cppcl.features.descriptors.lks import Lks
from cppcl.features.descriptors.shelo import Helo, Shelo
from cppcl.features.descriptors.structure_tensor import StructureTensor
from cppcl.pictures.decoding import to_gray
from tests.oracles import contour_descriptors as oracle


def drawing(seed, width=2):
    """Curves and lines of one pen on white."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (220, 200), "white")
    pen = ImageDraw.Draw(image)
    x, y, radius = (int(rng.integers(*span)) for span in ((60, 160), (60, 140), (20, 50)))
    box = (x - radius, y - radius, x + radius, y + radius)
    pen.ellipse(box, outline="black", width=width)
    pen.line([tuple(map(int, point)) for point in rng.integers(20, 180, (4, 2))], "black", width)
    return np.asarray(image)


@pytest.mark.parametrize("shape", [(60, 90), (256, 256), (7, 40), (1, 30), (20, 1)])
def test_daisy(shape):
    rng = np.random.default_rng(0)
    mask = np.zeros(shape, dtype=bool)
    # Some marks reach the borders, where samples fall outside.
    mask[shape[0] // 2, : shape[1] // 2] = True
    mask[rng.integers(0, shape[0], 9), rng.integers(0, shape[1], 9)] = True
    rows, columns = np.nonzero(mask)
    cubes = oracle.daisy_cubes(mask)
    expected = [oracle.daisy_from(cubes, *place) for place in zip(rows, columns, strict=True)]
    descriptors = daisy(mask, rows, columns)
    assert descriptors.shape == (len(rows), 136)
    assert descriptors.dtype == np.float32
    np.testing.assert_allclose(descriptors, expected, atol=2e-5)
    # Pixels without a mark have descriptors too.
    rows, columns = np.array([0, shape[0] - 1]), np.array([shape[1] - 1, 0])
    expected = [oracle.daisy_from(cubes, *place) for place in zip(rows, columns, strict=True)]
    np.testing.assert_allclose(daisy(mask, rows, columns), expected, atol=2e-5)


@pytest.fixture(scope="module")
def fitted():
    pictures = [drawing(seed, 1 + seed % 3) for seed in range(8)]
    return Lks(n_keyshapes=40).fit(pictures).to_arrays()


@pytest.mark.parametrize(
    ("blocks", "n_nearest", "squared"),
    [(4, 10, True), (3, 10, False), (1, 1, True), (5, 40, True)],
)
def test_lks(fitted, blocks, n_nearest, squared):
    extractor = Lks(
        n_keyshapes=40, blocks=blocks, n_nearest=n_nearest, squared_distance=squared
    ).from_arrays(fitted)
    picture = drawing(21)
    expected = oracle.lks(
        normalised_strokes(picture),
        fitted["keyshapes"].astype(np.float64),
        vote_scales(fitted["statistics"], squared),
        blocks,
        n_nearest,
        squared,
    )
    row = extractor.transform([picture])[0]
    assert row.shape == (40 * blocks**2,)
    # A descriptor at equal distances from two keyshapes may vote for either of them.
    np.testing.assert_allclose(row, expected, atol=2e-3 if n_nearest < 40 else 1e-4)
    assert np.abs(row - expected).mean() < 2e-5


@pytest.mark.parametrize(("cells", "bins"), [(25, 72), (16, 9)])
def test_helo(cells, bins):
    picture = drawing(3)
    row = Helo(cells=cells, bins=bins).transform([picture])[0]
    expected = oracle.helo(normalised_strokes(picture), cells, bins)
    assert row.shape == (bins,)
    np.testing.assert_allclose(row, expected, atol=1e-6)
    assert np.count_nonzero(row) > 5


@pytest.mark.parametrize(
    ("options", "dimension"),
    [
        ({}, 1296),
        ({"vote": "sum"}, 1296),
        ({"root": False}, 1296),
        ({"cells": 16, "bins": 9, "blocks": 4, "least_magnitude": 0.3}, 144),
    ],
)
def test_shelo(options, dimension):
    picture = drawing(4)
    arguments = {"least" if key == "least_magnitude" else key: v for key, v in options.items()}
    row = Shelo(**options).transform([picture])[0]
    assert row.shape == (dimension,)
    np.testing.assert_allclose(
        row, oracle.shelo(normalised_strokes(picture), **arguments), atol=2e-3
    )


@pytest.mark.parametrize("cells", [20, 7])
def test_structure_tensor(cells):
    picture = drawing(5)
    extractor = StructureTensor(cells=cells)
    row = extractor.transform([picture])[0]
    assert row.shape == (3 * cells**2,)
    strokes = normalised_strokes(picture).astype(np.float64)
    np.testing.assert_allclose(row, oracle.structure_tensor(strokes, cells), atol=1e-5)

    rng = np.random.default_rng(0)
    noise = np.full((256, 256, 3), 200, dtype=np.uint8)
    noise[:, :128] = rng.integers(0, 256, (256, 128, 1))
    row = StructureTensor(cells=cells, contours="none").transform([noise])[0]
    expected = oracle.structure_tensor(to_gray(noise).astype(np.float64), cells)
    np.testing.assert_allclose(row, expected, atol=1e-5)
    norms = np.linalg.norm(row.reshape(-1, 3), axis=1)
    assert set(np.round(norms, 4)) == {0.0, 1.0}
