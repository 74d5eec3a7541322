import numpy as np
import pytest
from scipy.ndimage import correlate

from cppcl.features.scores.saliency import (
    SALIENT,
    SCALES,
    saliency_map,
    saliency_maps,
    window_saliencies,
)
from cppcl.features.scores.windows import random_windows, to_pixels


def spot(side: int = 64, at: tuple[int, int] = (40, 20)) -> np.ndarray:
    rng = np.random.default_rng(0)
    picture = np.uint8(np.clip(120 + rng.normal(0, 4, (side, side, 3)), 0, 255))
    y, x = at
    picture[y - 4 : y + 4, x - 4 : x + 4] = (250, 30, 200)
    return picture


def test_equals_the_definition_channel_by_channel():
    """By complex spectra and a disk made by counting, at the side of the picture itself."""
    picture = spot(32)
    y, x = np.mgrid[-3:4, -3:4]
    disk = (np.hypot(x, y) <= 3) / (np.hypot(x, y) <= 3).sum()
    found = saliency_map(picture, 32)
    place = np.minimum(np.arange(1, 33), np.arange(32, 0, -1)) / 33 / 0.25
    fade = np.where(place < 1, (1 - np.cos(np.pi * place)) / 2, 1)
    for channel, plain in zip(found, np.moveaxis(picture / 255.0, -1, 0), strict=True):
        spectrum = np.fft.fft2(plain.mean() + fade[:, None] * fade * (plain - plain.mean()))
        log, phase = np.log(np.abs(spectrum)), np.angle(spectrum)
        residual = log - correlate(log, np.full((3, 3), 1 / 9), mode="wrap")
        values = np.abs(np.fft.ifft2(np.exp(residual + 1j * phase))) ** 2
        values = correlate(values, disk, mode="reflect")
        values = (values - values.min()) / np.ptp(values)
        np.testing.assert_allclose(channel, values, atol=1e-10)


@pytest.mark.parametrize("side", SCALES)
def test_what_stands_out_is_salient(side):
    picture = spot()
    for channel in saliency_map(picture, side):
        assert channel.shape == (side, side)
        assert channel.min() == 0
        assert channel.max() == 1
        row, column = np.unravel_index(channel.argmax(), channel.shape)
        assert abs((row + 0.5) / side - 40 / 64) < 0.15
        assert abs((column + 0.5) / side - 20 / 64) < 0.15


def test_opposite_borders_of_different_colours_are_not_salient():
    """A slope jumps where the picture is continued by itself; the spot is what stands out."""
    slope = np.linspace(0, 100, 64)
    picture = np.uint8(spot(at=(32, 32)) / 2 + slope[:, None, None] + slope[None, :, None] / 5)
    for side in SCALES:
        for channel in saliency_map(picture, side):
            row, column = np.unravel_index(channel.argmax(), channel.shape)
            assert abs((row + 0.5) / side - 0.5) < 0.2
            assert abs((column + 0.5) / side - 0.5) < 0.2


def test_a_flat_channel_has_no_saliency():
    picture = spot()
    picture[..., 1] = 77
    maps = saliency_maps(picture)
    assert all(not of_scale[1].any() and of_scale[0].any() for of_scale in maps)
    masses = window_saliencies(maps, random_windows(5, 0))
    assert not masses[1::3].any()
    assert masses[::3].any()


def test_masses_equal_counting():
    maps = saliency_maps(spot())
    windows = random_windows(40, 2)
    found = window_saliencies(maps, windows)
    assert found.shape == (15, 40)
    row = 0
    for side, of_scale in zip(SCALES, maps, strict=True):
        for channel in of_scale:
            salient = np.where(channel >= SALIENT, channel, 0)
            for k, (left, top, right, bottom) in enumerate(to_pixels(windows, side, side)):
                inside = salient[top:bottom, left:right]
                mass = inside.sum() / salient.sum() * (inside > 0).mean()
                assert found[row, k] == pytest.approx(mass, abs=1e-12)
            row += 1
    assert 0.05 < found.max() <= 1
